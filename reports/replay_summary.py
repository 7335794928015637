"""What `replay` prints when it is done: the instant, the release, and the rows of each table."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from reports.columns import columns
from reports.missing_records import missing_records

if TYPE_CHECKING:
    from collections.abc import Mapping


def render(manifest: Mapping[str, Any], as_of: Mapping[str, Any], output_format: str) -> str:
    """Return the summary in ``text`` or ``json``.

    Args:
        manifest: Of the workspace; its section ``replay`` is what is shown.
        as_of: The instant as answers have it.
        output_format: ``text`` or ``json``.
    """
    replay = manifest["replay"]
    if output_format == "json":
        answer = {
            "schema_version": manifest["schema_version"],
            "as_of": as_of,
            "input": manifest["created_from"],
            "kafka_version": replay["kafka_version"],
            "lines": replay.get("lines", []),
            "missing": missing_records(manifest),
            "assumed": replay.get("assumed", []),
            "rows": [{"table": name, "rows": rows} for name, rows in replay["rows"].items()],
        }
        return json.dumps(answer, indent=1, ensure_ascii=False)
    return "\n".join(
        [
            *columns(("TABLE", "ROWS"), list(replay["rows"].items())),
            "",
            *(f"assumed: {each}" for each in replay.get("assumed", ())),
            f"as of {_instant(replay['as_of'])}, by the rules of Kafka {replay['kafka_version']}",
            *(f"missing: {each}" for each in missing_records(manifest)),
        ]
    )


def _instant(as_of: Mapping[str, Any]) -> str:
    named = [f"{name} at {end}" for name, end in as_of["offsets"].items()]
    if as_of["time"] is not None:
        named.insert(0, str(as_of["time"]))
    return ", ".join(named) or "the end of the dump"
