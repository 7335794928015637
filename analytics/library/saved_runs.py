"""A run whose tables are saved: which cluster, which instant, what was read and how it was asked.

The same has the same id (`run_of`), whatever files are called and whichever release of groupscope
reads them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import date, datetime
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from analytics.errors import SettingRefusedError
from analytics.gaps.group_completeness import GroupCompleteness
from analytics.gaps.internal_topics import filters_of
from analytics.redaction.redactor import WITHHELD
from analytics.replay.log.ends_at import leading
from analytics.replayed.given_settings import BrokerSettings
from analytics.replayed.replayed_workspace import ReplayedWorkspace, answered_instant
from analytics.tables.stored_tables import StoredTables
from analytics.version import VERSION
from schemas import CONSUMER_OFFSETS
from schemas.manifest import cluster_ids

if TYPE_CHECKING:
    from schemas.manifest import DataPartitionEntry, Manifest, PartitionEntry

_NAME: Final = re.compile(r"[\w-][\w.:-]*")
"""Of a cluster: it becomes the name of a folder, and stands in SQL."""
_DIGITS: Final = 20
_TELL_GROUPS: Final = ("groups", "topics")
FILE_SETTINGS: Final = frozenset({"end_offsets", "expectations", "redact", "since"})
"""Settings that name a file or a folder: what is in it counts, not what it is called."""


@dataclass(frozen=True)
class Run:
    """What tables are saved of.

    Attributes:
        cluster: Its name, or its id.
        run_id: The same whenever the same was read and asked.
        as_of: The instant; None where no record has a time.
        row: The columns of `saved_runs` by name, but for those and `saved_tables`.
    """

    cluster: str
    run_id: str
    as_of: datetime | None
    row: Mapping[str, Any]


def run_of(
    state: ReplayedWorkspace,
    question: str,
    settings: Any = None,  # noqa: ANN401 - of each question its own
    *,
    cluster: str | None = None,
    chosen: Mapping[str, Sequence[str]] | None = None,
    is_redacted: bool = False,
) -> Run:
    """Return the run that a replayed workspace, and what was asked of it, are.

    Args:
        state: The workspace.
        question: "replay", "audit", or the name of a question.
        settings: How it was asked; a file that is named counts by what is in it.
        cluster: What the cluster is called; None is the id that the dump has.
        chosen: Names and patterns of groups and topics that were asked about, by option; None is
            what the workspace's tables are read by.
        is_redacted: The tables have no names in them: nor have settings and filters.

    Raises:
        SettingRefusedError: The dump does not say of which cluster it is, and nobody does; or a
            name is none that can be kept.
    """
    manifest = state.manifest
    ids = cluster_ids(manifest["copies"])
    name = _checked(cluster if cluster is not None else _only_id(ids))
    asked = _canonical(plain_settings(settings))
    time = answered_instant(state)["time"]
    chosen = state.tables.selection.options if chosen is None else chosen
    digest = _digest(
        {
            "cluster": name,
            "dump": dump_identity(state),
            "asked": [question, asked, {option: list(names) for option, names in chosen.items()}],
        }
    )
    filters = _with(filters_of(manifest), chosen)
    if is_redacted:
        asked = _canonical({"sha256": _digest(asked)})
        filters = {option: [WITHHELD] for option in filters}
    return Run(
        name,
        # A digest of digits alone would be taken for a number where folders are read.
        f"run-{digest[:_DIGITS]}",
        None if time is None else datetime.fromisoformat(time),
        {
            "question": question,
            "settings": asked,
            "kafka_version": state.release,
            "groupscope_version": VERSION,
            "cluster_ids": ids,
            "is_end": state.is_end,
            "filters": [
                f"{option}={each}" for option in sorted(filters) for each in filters[option]
            ],
            "lacks": lacking(manifest),
            "whole_partitions": whole_partitions(state),
        },
    )


def _with(
    filters: Mapping[str, Sequence[Any]], more: Mapping[str, Sequence[Any]]
) -> dict[str, list[Any]]:
    """Return filters together, each value once."""
    return {
        name: list(dict.fromkeys((*filters.get(name, ()), *more.get(name, ()))))
        for name in (*filters, *more)
    }


def _only_id(ids: Sequence[str]) -> str:
    """Return the id of the dump's cluster.

    Raises:
        SettingRefusedError: There is none, or there are several.
    """
    if len(ids) == 1:
        return ids[0]
    why = f"it has copies of {', '.join(ids)}" if ids else "no meta.properties in it says so"
    raise SettingRefusedError(
        f"cannot tell of which cluster the dump is ({why}): name it to save tables (--cluster NAME)"
    )


def _checked(name: str) -> str:
    if _NAME.fullmatch(name) is None:
        raise SettingRefusedError(
            f"cluster {name!r}: a name that tables are saved under has letters, digits, - _ . : "
            "only, and begins with none of the last two"
        )
    return name


def lacking(manifest: Manifest) -> list[dict[str, Any]]:
    """Return the partitions of internal topics that a dump lacks, wholly or records of them.

    Rows of `topic`, `partition` and `words`.
    """
    absent = [
        {"topic": topic, "partition": number, "words": f"{topic}-{number} is not in the dump"}
        for topic, numbers in manifest["absent_partitions"].items()
        for number in numbers
    ]
    lost = [
        {"topic": each["topic"], "partition": each["partition"], "words": each["lacks"]}
        for each in manifest["partitions"]
        if each.get("is_leading", True) and each.get("lacks")
    ]
    return [*absent, *lost]


def whole_partitions(state: ReplayedWorkspace) -> list[int] | None:
    """Return the partitions of the offsets topic that show all of their groups.

    None where tables that tell were not made.
    """
    every = replace(state, tables=StoredTables(state.tables.workspace))
    if not every.tables.has(*_TELL_GROUPS):
        return None
    uncertain: set[int] = set()
    for each in GroupCompleteness(every).of_all():
        several = each.parameters.get("partitions", ())
        numbers = several if isinstance(several, tuple) else ()
        numbers = numbers if each.partition is None else (*numbers, each.partition)
        if not numbers:
            # It is about any.
            return []
        uncertain.update(map(int, numbers))
    present = {
        each["partition"] for each in leading(every.manifest) if each["topic"] == CONSUMER_OFFSETS
    }
    return sorted(present - uncertain)


def dump_identity(state: ReplayedWorkspace) -> dict[str, Any]:
    """Return what was read of a dump, and which of it counts: no path, no name of this machine."""
    manifest = state.manifest
    logs = map(_of_log, manifest["partitions"])
    data_logs = map(_of_data_log, manifest.get("data_partitions", ()))
    replay = manifest["replay"]
    return {
        "clusters": sorted({str(each.get("cluster_id")) for each in manifest["copies"]}),
        "partitions": sorted(map(_canonical, (*logs, *data_logs))),
        "options": manifest["options"],
        "replay": {
            "as_of": replay["as_of"],
            "lines": replay.get("lines"),
            "kafka_version": replay["kafka_version"],
            "assumed": replay.get("assumed"),
            "topic_ids": replay.get("topic_ids"),
            "filters": replay.get("filters"),
        },
        "is_redacted": bool(manifest.get("redacted")),
        **({"snapshots": snapshots} if (snapshots := manifest.get("snapshots")) else {}),
    }


def _of_log(row: PartitionEntry) -> dict[str, Any]:
    return {
        "topic": row["topic"],
        "partition": row["partition"],
        "copy": row.get("copy"),
        "log_start_offset": row.get("log_start_offset"),
        "high_watermark": row.get("high_watermark"),
        "log_end_offset": None,
        "first_offset": row.get("first_offset"),
        "end_offset": row.get("end_offset"),
        "records": row.get("records"),
        "files": [
            {"name": each["name"], "size": each.get("size"), "sha256": each.get("sha256")}
            for each in row.get("files", ())
        ],
    }


def _of_data_log(row: DataPartitionEntry) -> dict[str, Any]:
    return {
        "topic": row["topic"],
        "partition": row["partition"],
        "copy": row.get("copy"),
        "log_start_offset": row.get("log_start_offset"),
        "high_watermark": None,
        "log_end_offset": row.get("log_end_offset"),
        "first_offset": None,
        "end_offset": None,
        "records": None,
        "files": [],
    }


def plain_settings(value: Any, name: str = "") -> Any:  # noqa: ANN401 - of each setting its own
    """Return settings as JSON has them, the same for the same whatever files are called.

    Args:
        value: A setting, or settings by name.
        name: Of the setting: `FILE_SETTINGS` count by what is in them.

    Raises:
        TypeError: A setting is of a kind that has no such form.
    """
    plain = value
    match value:
        case None | bool() | int() | float():
            pass
        case str() if name in FILE_SETTINGS:
            content = _content_of(Path(value))
            plain = value if content is None else f"sha256:{content}"
        case str():
            pass
        case date():
            plain = value.isoformat()
        case ReplayedWorkspace():
            plain = _digest(dump_identity(value))
        case partial():
            # How states at other instants are made of the same dump.
            plain = None
        case _:
            plain = _plain_collection(value)
    return plain


def settings_digest(request: Mapping[str, Any]) -> str | None:
    """Return by which settings of Kafka an audit was asked; null by those of the dump alone.

    Args:
        request: Its settings, as `plain_settings` has them.
    """
    if set(request) == {"sha256"}:
        return str(request["sha256"])
    given = request["given"]
    settings = {
        "brokers": given["brokers"],
        **{name: given["from_file"][name] for name in ("values", "groups")},
        "retention_minutes": request["retention_minutes"],
    }
    return _digest(settings) if any(settings.values()) else None


def _plain_collection(value: Any) -> Any:  # noqa: ANN401 - likewise
    match value:
        case BrokerSettings():
            return {"node": value.node, "values": dict(value.values)}
        case Mapping():
            return {str(name): plain_settings(each, str(name)) for name, each in value.items()}
        case Sequence():
            return [plain_settings(each) for each in value]
        case set() | frozenset():
            return sorted((plain_settings(each) for each in value), key=_canonical)
        case _ if is_dataclass(value):
            named = ((each.name, getattr(value, each.name)) for each in fields(value))
            return {name: plain_settings(each, name) for name, each in named}
    raise TypeError(f"{value!r} is no setting that a run can be told by")


def _content_of(path: Path) -> str | None:
    """Return the SHA-256 of what a file, or the files in a folder, have; None of no file."""
    try:
        if not path.exists():
            return None
    except (OSError, ValueError):
        return None
    digest = sha256()
    for each in [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file()):
        digest.update(str(each.relative_to(path)).encode() + b"\0")
        digest.update(sha256(each.read_bytes()).digest())
    return digest.hexdigest()


def _canonical(value: Any) -> str:  # noqa: ANN401 - what JSON has
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _digest(value: Any) -> str:  # noqa: ANN401 - what JSON has
    return sha256(_canonical(value).encode()).hexdigest()
