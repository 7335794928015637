"""Lines of the offsets topic that did not survive, and what they had committed, read with Arrow."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from analytics.contracts import polars_rows
from analytics.decode.elections import registered_by
from analytics.decode.selection import names_wanted
from analytics.decode.unjudged_elections import Evidence, Unjudged, copies_of, elections_of
from analytics.dump.copies.leadership import Registered
from analytics.dump.files.model import METADATA_LOG, OTHER_TOPIC
from analytics.questions.timeline.words import PLACE, VERDICTS
from analytics.replay.dump.choices import are_elections_clean, assumed_in, iso_time
from analytics.replay.dump.followed_lines import read_before_swaps
from analytics.replay.log.ends_at import elections_since, ends_at, leading
from analytics.replay.log.log_times import Frame, Frames, frames_of_rows
from analytics.replay.log.rules import replay_rules
from analytics.replay.offsets.commit_rows import (
    COMMIT_FIELDS,
    COMMITS,
    MARKER_FIELDS,
    MARKERS,
    with_offsets_in_force,
)
from analytics.replay.offsets.effective_commits import COMMIT, ended_commits
from analytics.replayed.records import Records
from analytics.tables.decoded_records import records_folder
from analytics.tables.stored_tables import StoredTables
from analytics.workspace import BEFORE_SWAPS, DECODED, DIVERGED, reading
from schemas import CLUSTER_METADATA, CONSUMER_OFFSETS

if TYPE_CHECKING:
    from analytics.replayed.replayed_workspace import ReplayedWorkspace
    from schemas.manifest import DivergenceEntry

# What a line of history that did not survive had committed last, place by place.

LAST: Final = pl.Schema(
    {
        **{name: VERDICTS[name] for name in PLACE},
        "committed_offset": pl.Int64(),
        "record_offset": pl.Int64(),
        "timestamp": VERDICTS["at"],
    }
)
"""What `last_on_line` returns."""
OTHER_TYPES: Final = pl.Schema({"group_id": pl.String(), "other_type": pl.String()})
"""Of groups, what they were on a lost line."""


@dataclass(frozen=True)
class LostLine:
    """A line of one internal partition that parts from the one that survived.

    Attributes:
        copy: Whose log has it.
        partition: Of `__consumer_offsets`.
        diverges_at: The first offset at which it differs.
        leader_epoch: Of the leader whose election made it a lost one; None where it is not known.
        elected_at: When that was, or no later than when; None where the dump does not say.
        elected_after: Where only bounds are known, the time before which it was not.
        committed_below: The offset below which its records are known to have been committed; None
            where all of them were.
        last: What each place had at its end (`last_on_line`).
        lacks: Which records of either line the dump lacks, in a sentence; None where none.
        other_topic: The id of the topic that the line is of, where that is another one of the same
            name: it was deleted and made again.
        types: `OTHER_TYPES` of groups of which the surviving line says another one.
    """

    copy: str
    partition: int
    diverges_at: int
    leader_epoch: int | None
    elected_at: datetime | None
    last: pl.DataFrame
    lacks: str | None = None
    elected_after: datetime | None = None
    committed_below: int | None = None
    types: pl.DataFrame = field(default_factory=OTHER_TYPES.to_frame)
    other_topic: str | None = None


def last_on_line(ended: pl.DataFrame, diverges_at: int) -> pl.DataFrame:
    """Return the last change of each place that took effect on a line.

    A commit in a transaction takes effect with its COMMIT marker; what another commit made later
    has replaced by then it does not replace (``OffsetMetadataManager``).

    Args:
        ended: Of `ended_commits`: commits of the line, and those before it that may have been
            pending there.
        diverges_at: The first offset of the line.

    Returns:
        `LAST`, in the order of `PLACE`; `committed_offset` is null where the offset was deleted.
    """
    is_of_line = pl.coalesce("end_offset", "record_offset") >= diverges_at
    effective = ended.filter(is_of_line & (~pl.col("waits") | (pl.col("outcome") == COMMIT)))
    last = effective.sort("record_offset").unique(PLACE, keep="last").sort(PLACE)
    last = last.with_columns(pl.col("committed_at").alias("timestamp"))
    return last.select(pl.col(name).cast(kind) for name, kind in LAST.items())


_TYPES = {
    "group_metadata": "classic",
    "consumer_group_metadata": "consumer",
    "share_group_metadata": "share",
    "streams_group_metadata": "streams",
}
"""Which records say of which type a group is."""

_OF_TYPE = ("key", "is_tombstone")
_NEEDED = (
    *("coordinator_partition", "group_id", "topic", "partition", "record_offset", "committed_at"),
    *("is_tombstone", "committed_offset", "producer_id", "is_transactional"),
)
_COMMIT_FIELDS = {name: COMMIT_FIELDS[name] for name in _NEEDED}
_ENDS = ("coordinator_partition", "producer_id", "end_offset", "end_at", "outcome")
_MARKER_FIELDS = {name: MARKER_FIELDS[name] for name in _ENDS}

Row = Mapping[str, Any]


def lost_lines(state: ReplayedWorkspace, evidence: Mapping[int, Evidence]) -> list[LostLine]:
    """Return the lines that did not survive, with what the groups asked about had there.

    Args:
        state: A replayed workspace.
        evidence: Of elections, by partition of the offsets topic.
    """
    return [
        _line(state, row, evidence.get(row["partition"], Evidence()))
        for row in lost_of_topic(state, CONSUMER_OFFSETS)
    ]


def in_force_then(state: ReplayedWorkspace, until: datetime) -> dict[int, Unjudged]:
    """Return the partitions whose coordinator had, or may have had, a line that was lost later.

    Args:
        state: A replayed workspace.
        until: The last instant asked about, within what was replayed.
    """
    found = _perhaps_in_force_then(state, until)
    for row in lost_of_topic(state, CONSUMER_OFFSETS):
        begins, ends = row["lost_from_timestamp"], row["elected_at"]
        if (begins is None or begins <= until) and (ends is None or until < ends):
            reason = (
                f"copy {row['copy']} has what was in force then, which an election cost later: "
                f"ask with --as-of {iso_time(until)}"
            )
            found[row["partition"]] = Unjudged(None, reason)
    return found


def _perhaps_in_force_then(state: ReplayedWorkspace, until: datetime) -> dict[int, Unjudged]:
    """Return the partitions of which an election after an instant may have lost commits unseen."""
    if are_elections_clean(assumed_in(state.manifest)):
        return {}
    time_ms = round(until.timestamp() * 1000)
    manifest = state.manifest_of_history
    ends = ends_at(state.source, manifest, time_ms, (CONSUMER_OFFSETS,))
    return {
        row["partition"]: Unjudged(None, each.why)
        for row in leading(manifest)
        if row["topic"] == CONSUMER_OFFSETS
        for each in elections_since(row, ends)
    }


def lost_of_topic(state: ReplayedWorkspace, topic: str) -> list[Row]:
    """Return the lines of an internal topic that were in force once and are not followed."""
    followed = {(each.topic, each.partition, each.copy) for each in state.lines}
    every = StoredTables(state.tables.workspace)
    rows = every.read("divergences", where=pc.field("topic") == topic).to_pylist()
    # What a clean election leaves behind no coordinator ever answered.
    return [
        row
        for row in rows
        if row["unclean"] is not False
        and (row["topic"], row["partition"], row["copy"]) not in followed
    ]


def _line(state: ReplayedWorkspace, row: Row, evidence: Evidence) -> LostLine:
    lost, shared = f"{DIVERGED}/{row['copy']}/{DECODED}", DECODED
    start = row["diverges_at"]
    before, on_line = pc.field("offset") < start, pc.field("offset") >= start
    pending = before & (pc.field("producer_id") >= 0)
    commits = [commits_in(state, row, shared, pending), commits_in(state, row, lost, on_line)]
    markers = [markers_in(state, row, shared, before), markers_in(state, row, lost, on_line)]
    ended = ended_commits(pl.concat(commits), pl.concat(markers), replay_rules(state.release))
    told_at = evidence.elected_at(row["surviving_leader_epoch"])
    is_exact = told_at is not None or row["election_shown_by"] == METADATA_LOG
    return LostLine(
        copy=row["copy"],
        partition=row["partition"],
        diverges_at=start,
        leader_epoch=row["surviving_leader_epoch"],
        elected_at=told_at or row["elected_at"],
        elected_after=None if is_exact else row["lost_to_timestamp"],
        committed_below=committed_below(state, row),
        last=last_on_line(ended, start),
        lacks=lacks_of_lines(state, row),
        types=_types(state, row),
        other_topic=_other_topic(state, row),
    )


def committed_below(state: ReplayedWorkspace, line: Row) -> int | None:
    """Return the offset below which the records of a lost line are known to have been committed.

    Where the metadata log shows an unclean election, all of them may have been: None.
    """
    if line["unclean"]:
        return None
    told = _in_manifest(state, line)
    return 0 if told is None else told.get("high_watermark") or 0


def is_committed(state: ReplayedWorkspace, line: Row) -> bool:
    """Return whether all records of a lost line are known to have been committed."""
    below, told = committed_below(state, line), _in_manifest(state, line)
    end = None if told is None else told.get("end_offset")
    return below is None or (end is not None and below >= end)


def _in_manifest(state: ReplayedWorkspace, line: Row) -> DivergenceEntry | None:
    place = line["topic"], line["partition"], line["copy"]
    return next(
        (
            each
            for each in state.manifest.get("divergences", ())
            if (each["topic"], each["partition"], each["copy"]) == place
        ),
        None,
    )


def lacks_of_lines(state: ReplayedWorkspace, line: Row) -> str | None:
    """Return which records of a line, or of the surviving one, the dump lacks."""
    sentences = [
        f"copy {each['copy']}: {each['lacks']}"
        for each in state.manifest["partitions"]
        if (each["topic"], each["partition"]) == (line["topic"], line["partition"])
        and each.get("lacks")
        and (each.get("copy") == line["copy"] or each.get("is_leading", True))
    ]
    return "; ".join(sentences) or None


def _other_topic(state: ReplayedWorkspace, line: Row) -> str | None:
    """Return the id of the topic that a line is of; None where it is the present one."""
    told = _in_manifest(state, line)
    if told is None or told.get("shown_by") != OTHER_TOPIC:
        return None
    place = line["topic"], line["partition"], line["copy"]
    ids = (
        each.get("topic_id")
        for each in state.manifest["partitions"]
        if (each["topic"], each["partition"], each["copy"]) == place
    )
    return next((each for each in ids if each), None) or "unknown"


def _types(state: ReplayedWorkspace, line: Row) -> pl.DataFrame:
    """Return the types of groups at the end of a line where the surviving one has others."""
    folder, where = (
        f"{DIVERGED}/{line['copy']}/{DECODED}",
        pc.field("offset") >= line["diverges_at"],
    )
    records = [
        _typed(rows, group_type)
        for name, group_type in _TYPES.items()
        if (rows := records_of_line(state, line, f"{folder}/{name}", _OF_TYPE, where)) is not None
    ]
    if not records:
        return OTHER_TYPES.to_frame()
    last = pl.concat(records).sort("offset", "other_type").unique("group_id", keep="last")
    now = polars_rows(state.tables.read("groups", ["group_id", "group_type"]))
    last = last.filter(pl.col("other_type") != "").join(now, "group_id")
    is_another = pl.col("other_type") != pl.col("group_type")
    return last.filter(is_another).select(OTHER_TYPES.names())


def _typed(records: pa.Table, group_type: str) -> pl.DataFrame:
    """Return groups of records with the type that these say; none where they take it away."""
    key = records["key"].combine_chunks()
    named = {each.name for each in key.type}
    names = [pc.struct_field(key, each) for each in ("group_id", "group") if each in named]
    group = pl.Series("group_id", pc.coalesce(*names), pl.String)
    rows = pl.DataFrame({"offset": pl.from_arrow(records["offset"]), "group_id": group})
    is_tombstone = pl.Series(pl.from_arrow(records["is_tombstone"]))
    is_said = pl.when(is_tombstone).then(pl.lit("")).otherwise(pl.lit(group_type))
    return rows.with_columns(is_said.alias("other_type"))


def commits_in(
    state: ReplayedWorkspace, line: Row, folder: str, where: pc.Expression
) -> pl.DataFrame:
    """Return commits of the groups and topics asked about.

    Args:
        state: A replayed workspace.
        line: Has `topic` and `partition` of the internal partition.
        folder: Of decoded tables.
        where: Which records.
    """
    name = f"{folder}/offset_commit"
    rows = with_offsets_in_force(_rows(state, line, name, where, _COMMIT_FIELDS, COMMITS))
    wanted = state.tables.selection
    groups, topics = (rows[name].unique().to_list() for name in ("group_id", "topic"))
    return rows.filter(
        pl.col("group_id").is_in(names_wanted(groups, wanted.groups, wanted.exclude_groups)),
        pl.col("topic").is_in(names_wanted(topics, wanted.topics)),
    )


def markers_in(
    state: ReplayedWorkspace, line: Row, folder: str, where: pc.Expression
) -> pl.DataFrame:
    """Return the markers of an internal partition; arguments as of `commits_in`."""
    return _rows(state, line, f"{folder}/control_markers", where, _MARKER_FIELDS, MARKERS)


def _rows(
    state: ReplayedWorkspace,
    line: Row,
    name: str,
    where: pc.Expression,
    fields: Mapping[str, str],
    schema: pl.Schema,
) -> pl.DataFrame:
    """Return fields of records as columns of a schema; no rows where the workspace has none."""
    columns = dict.fromkeys(field.partition(".")[0] for field in fields.values())
    records = records_of_line(
        state, line, name, [each for each in columns if each != "offset"], where
    )
    kinds = {name: schema[name] for name in fields}
    if records is None:
        return pl.DataFrame(schema=kinds)
    plain = records.flatten().select(list(fields.values())).rename_columns(list(fields))
    return pl.DataFrame(plain).select(pl.col(name).cast(kind) for name, kind in kinds.items())


def records_of_line(
    state: ReplayedWorkspace, line: Row, name: str, columns: Sequence[str], where: pc.Expression
) -> pa.Table | None:
    """Return records of a partition at the instant in order; None where the workspace has none.

    What happened is in the segments that swap files take the place of.
    """
    source = state.source
    place = line["topic"], line["partition"]
    if name.startswith(f"{DECODED}/") and place in read_before_swaps(state.manifest_of_history):
        name = f"{BEFORE_SWAPS}/{name}"
    path = records_folder(source, name)
    if path is None:
        return None
    with reading(path):
        records = ds.dataset(path, filesystem=source.filesystem, format="parquet")
    where &= (pc.field("topic") == line["topic"]) & (pc.field("partition") == line["partition"])
    end = state.as_of["offsets"].get(f"{line['topic']}-{line['partition']}")
    if end is not None:
        where &= pc.field("offset") < end
    if (time := state.as_of["time"]) is not None:
        stamp = pa.scalar(datetime.fromisoformat(time), records.schema.field("timestamp").type)
        where &= pc.field("timestamp").is_null() | (pc.field("timestamp") <= stamp)
    with reading(path):
        return records.to_table(columns=["offset", *columns], filter=where).sort_by("offset")


# What tells of the elections of coordinators, where the metadata log or records do.
#
# A cut by a time is a cut of the log (`analytics.replay.log.log_times`): where the times of the
# metadata log go back around it, partitions whose elections one cut has and the other has not are
# uncertain.

_SNAPSHOT: Final = ".checkpoint"


def coordinator_evidence(
    state: ReplayedWorkspace, until: datetime | None = None, frames: Frames | None = None
) -> dict[int, Evidence]:
    """Return what tells of the elections of each partition of the offsets topic.

    Args:
        state: A replayed workspace.
        until: The last instant that counts; None is that of the workspace.
        frames: Where logs whose times go back are cut at that instant; None as the workspace says.
    """
    cuts = frames_of_rows(state.frames) if frames is None else frames
    of_metadata = cuts.get((CLUSTER_METADATA, 0))
    registered = _registered(state, until, of_metadata)
    epochs = _epochs(state, until, cuts)
    every = StoredTables(state.tables.workspace)
    lost = every.read("divergences", where=pc.field("topic") == CONSUMER_OFFSETS).to_pylist()
    found: dict[int, Evidence] = {}
    of_topic = [each for each in state.manifest["partitions"] if each["topic"] == CONSUMER_OFFSETS]
    for number in {each["partition"] for each in of_topic}:
        rows = registered.get(number, [])
        told = _by(rows)
        found[number] = Evidence(
            elections=elections_of(told.led),
            is_replicated=told.is_replicated,
            copies=copies_of(state.manifest, CONSUMER_OFFSETS, number),
            epochs=epochs.get(number),
            lost=[
                (each["lost_leader_epoch"], each["surviving_leader_epoch"])
                for each in lost
                if each["partition"] == number
            ],
            uncertain=_uncertain(rows, of_metadata),
        )
    return found


def _by(rows: list[Row]) -> Registered:
    return registered_by(rows) if rows else Registered()


def _uncertain(rows: list[Row], frame: Frame | None) -> str | None:
    """Return why elections may have been later than the instant; None where both cuts agree."""
    if frame is None or frame.is_certain:
        return None
    certain = [each for each in rows if _is_before(each, frame.certain_end)]
    if elections_of(_by(certain).led) == elections_of(_by(rows).led):
        return None
    return frame.why(CLUSTER_METADATA, 0)


def _is_before(record: Row, end: int) -> bool:
    """Return whether a record is before an offset of the metadata log, or of a snapshot."""
    return record["offset"] < end or _is_of_snapshot(record)


def _is_of_snapshot(record: Row) -> bool:
    return str(record["segment"]).endswith(_SNAPSHOT)


def _epochs(
    state: ReplayedWorkspace, until: datetime | None, frames: Frames
) -> dict[int, dict[int, datetime | None]]:
    """Return the leader epochs of each surviving log, and when their leaders came.

    Epochs in which nobody wrote are known of the end of the dump only.
    """
    found: dict[int, dict[int, datetime | None]] = defaultdict(dict)
    for each in state.manifest["partitions"]:
        if each["topic"] == CONSUMER_OFFSETS and each.get("is_leading", True):
            named = [epoch["epoch"] for epoch in each.get("leader_epochs") or ()]
            if named:
                is_end = state.is_end and until is None
                found[each["partition"]].update(dict.fromkeys(named) if is_end else {})
    every = StoredTables(state.tables.workspace)
    of_topic = pc.field("topic") == CONSUMER_OFFSETS
    for row in every.read("coordinator_epochs", where=of_topic).to_pylist():
        first, frame = row["from_timestamp"], frames.get((CONSUMER_OFFSETS, row["partition"]))
        if frame is not None and row["from_offset"] is not None:
            is_in_time = row["from_offset"] < frame.possible_end
        else:
            is_in_time = until is None or first is None or first <= until
        if is_in_time:
            found[row["partition"]][row["leader_epoch"]] = row["elected_at"] or first
    return found


def _registered(
    state: ReplayedWorkspace, until: datetime | None, frame: Frame | None
) -> dict[int, list[Row]]:
    """Return what the metadata log says of each partition of the offsets topic."""
    every = StoredTables(state.tables.workspace)
    of_topic = pc.field("topic") == CONSUMER_OFFSETS
    ids = every.read("topics", ["topic_id"], of_topic)["topic_id"].drop_null()
    wanted = pc.field("value", "topic_id").isin(pa.array(ids.to_pylist(), pa.string()))
    found: dict[int, list[Row]] = defaultdict(list)
    for name in ("partition_record", "partition_change_record"):
        for row in Records(state).table(name, ["segment", "value"], wanted).to_pylist():
            if _is_in_time(row, until, frame):
                found[row["value"]["partition_id"]].append(row)
    return found


def _is_in_time(record: Row, until: datetime | None, frame: Frame | None) -> bool:
    """Return whether a record is before the later of the two cuts; snapshots tell of no time."""
    if frame is not None:
        return _is_before(record, frame.possible_end)
    at = record["timestamp"]
    return until is None or at is None or at <= until or _is_of_snapshot(record)
