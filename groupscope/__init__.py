"""The one name to import from: `from groupscope import open_dump`.

In a checkout the code lies beside this package, in four others; in a wheel it lies in this one
(docs/decisions/0020). Imports of these names work in both. `open_dump` is the door for notebooks
and jobs of others, `open_runs` that to compare audits, `KafkaDump` that for Spark's own readers;
`ship_packages` gives executors that lack groupscope what runs here. Nothing heavy is loaded before
it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from analytics import __getattr__ as _loaded
from analytics.version import VERSION

if TYPE_CHECKING:
    from analytics import (
        ComparedRuns,
        Dump,
        KafkaDump,
        State,
        open_dump,
        open_runs,
        ship_packages,
    )

__version__ = VERSION
__all__ = [
    "ComparedRuns",
    "Dump",
    "KafkaDump",
    "State",
    "__version__",
    "open_dump",
    "open_runs",
    "ship_packages",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - of what is asked for
    if name in __all__:
        return _loaded(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
