"""Bytes to tables to answers: `wire`, `dump`, `decode`, then `replay` and `evaluate`.

`open_dump` is the door for notebooks and jobs of others, `open_runs` that to compare audits,
`KafkaDump` that for Spark's own readers; Spark's side is loaded when it is used.
`ship_packages` gives executors that lack groupscope what runs here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from analytics.library.audited_runs import ComparedRuns, open_runs
    from analytics.library.data_source import KafkaDump
    from analytics.library.dump import Dump, open_dump
    from analytics.library.state import State
    from analytics.package_archive import ship_packages

__all__ = [
    "ComparedRuns",
    "Dump",
    "KafkaDump",
    "State",
    "open_dump",
    "open_runs",
    "ship_packages",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - of what is asked for
    if name in {"Dump", "open_dump"}:
        from analytics.library import dump  # noqa: PLC0415 - heavy

        return getattr(dump, name)
    if name in {"ComparedRuns", "open_runs"}:
        from analytics.library import audited_runs  # noqa: PLC0415 - likewise

        return getattr(audited_runs, name)
    if name == "KafkaDump":
        from analytics.library.data_source import KafkaDump  # noqa: PLC0415 - likewise

        return KafkaDump
    if name == "State":
        from analytics.library.state import State  # noqa: PLC0415

        return State
    if name == "ship_packages":
        from analytics.package_archive import ship_packages  # noqa: PLC0415

        return ship_packages
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
