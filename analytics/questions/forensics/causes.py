"""What an incident came from and what it cost: elections that lost records, and other causes.

Numbers and codes; `reports/incident_summary.py` has the words. What no record shows is not there:
when a broker died, or who wanted the election.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import polars as pl
import pyarrow as pa

from analytics.contracts import polars_rows, table_of, table_of_frame
from analytics.dump.files.model import METADATA_LOG, OTHER_TOPIC
from analytics.questions.timeline.words import CANNOT_TELL, LOST, LOW, badness
from analytics.replay.dump.followed_lines import parsed_time
from analytics.replay.log.ends_at import leading
from schemas import CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE

if TYPE_CHECKING:
    from analytics.questions.forensics.incident import Window
    from analytics.questions.forensics.removals import Removals
    from analytics.replayed.replayed_workspace import ReplayedWorkspace
    from analytics.tables.parted_table import PartedTable
    from schemas.manifest import Manifest

CAUSES, COSTS = "incident_causes", "incident_costs"
_OF_COORDINATORS: Final = (CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE)
Row = Mapping[str, Any]
Place = tuple[str, int]
"""Internal topic and partition."""

# Elections that lost records, or may have: what the logs and the metadata log show of them.


@dataclass(frozen=True)
class Election:
    """The election of a leader that lacked records, or of which nobody can tell.

    Attributes:
        place: Of which internal partition.
        copy: Which alone has the records that were lost; None where no copy in the dump has them.
        diverges_at: The first offset that was lost; from it on, records may have been.
        lost_records: How many were; None without a copy.
        broker: Who was elected; None where the dump does not say.
        at: When, or no later than when.
        not_before: Where only bounds are known, the time before which it was not.
        is_exact: The metadata log shows the time.
        unclean: None where the dump does not say.
        surviving_copy: Has what survived.
        groups_only_there: Groups that no record of the surviving line names.
        why: Without a copy: why it cannot be told what was lost.
    """

    place: Place
    copy: str | None
    diverges_at: int
    lost_records: int | None
    broker: int | None
    at: datetime | None
    not_before: datetime | None
    is_exact: bool
    unclean: bool | None
    surviving_copy: str | None = None
    groups_only_there: tuple[str, ...] = ()
    why: str | None = None

    def may_be_in(self, begin: datetime, end: datetime) -> bool:
        """Return whether it may have been between two instants."""
        first = self.not_before if self.not_before is not None else self.at
        return (self.at is None or self.at >= begin) and (first is None or first <= end)


def elections_of(state: ReplayedWorkspace, window: Window) -> list[Election]:
    """Return the elections of a time that lost records of internal topics, or may have."""
    leaders = _leaders(state)
    followed = {(each.topic, each.partition, each.copy) for each in state.lines}
    found = [*_lost_lines(state.manifest, leaders, followed), *_unjudged(state.manifest, leaders)]
    return [each for each in found if each.may_be_in(window.begin, window.end)]


def _leaders(state: ReplayedWorkspace) -> dict[tuple[str, int, int], int]:
    """Return who led internal partitions, by leader epoch."""
    columns = ["topic", "partition", "leader_epoch", "leader"]
    rows = [
        row
        for name in ("coordinator_epochs", "partition_leaders")
        for row in state.tables.read(name, columns).to_pylist()
    ]
    # A partition without a leader has -1 (`PartitionRegistration`).
    return {
        (row["topic"], row["partition"], row["leader_epoch"]): row["leader"]
        for row in rows
        if row["leader"] is not None and row["leader"] >= 0
    }


def _lost_lines(
    manifest: Manifest,
    leaders: Mapping[tuple[str, int, int], int],
    followed: set[tuple[str, int, str]],
) -> Iterable[Election]:
    for each in manifest.get("divergences", ()):
        topic, partition, epoch = each["topic"], each["partition"], each["surviving_leader_epoch"]
        # What a clean election leaves behind no coordinator ever answered.
        if (
            each["unclean"] is False
            or each.get("shown_by") == OTHER_TOPIC
            or (topic, partition, each["copy"]) in followed
            or topic not in _OF_COORDINATORS
        ):
            continue
        is_exact = each["election_shown_by"] == METADATA_LOG
        at = parsed_time(each["elected_at"])
        yield Election(
            (topic, partition),
            each["copy"],
            each["diverges_at"],
            each["lost_records"],
            None if epoch is None else leaders.get((topic, partition, epoch)),
            at,
            at if is_exact else parsed_time(each["lost_to_timestamp"]),
            is_exact,
            each["unclean"],
            each["surviving_copy"],
            tuple(each.get("groups_only_there") or ()),
        )


def _unjudged(
    manifest: Manifest, leaders: Mapping[tuple[str, int, int], int]
) -> Iterable[Election]:
    for row in leading(manifest):
        place = row["topic"], row["partition"]
        for each in row.get("unjudged_elections") or ():
            epoch, at = each["leader_epoch"], parsed_time(each["at"])
            yield Election(
                place,
                None,
                each["first_offset"],
                None,
                None if epoch is None else leaders.get((*place, epoch)),
                at,
                at,
                # Of others the first record of the leader is what there is.
                bool(each.get("is_unclean")),
                True if each.get("is_unclean") else None,
                why=each["why"],
            )


def last_records(manifest: Manifest) -> dict[str, datetime]:
    """Return the time of the last record of internal topics that each copy has."""
    found: dict[str, datetime] = {}
    for each in manifest["partitions"]:
        copy, at = each["copy"], parsed_time(each["last_timestamp"])
        if copy is not None and at is not None and each["topic"] in _OF_COORDINATORS:
            found[copy] = max(at, found.get(copy, at))
    return found


# What they cost groups, and what else cost them something.

_READ: Final = (
    *("group_id", "verdict", "topic", "partition", "at"),
    *("was", "committed_at", "cost", "confidence", "rung", "record", "reason"),
)
_LOG: Final = r"^(?P<log>.*)-(?P<number>\d+)@(?P<offset>\d+)$"
_OFFSET: Final = ("topic", "partition")
_OF_COSTS: Final = ("group_id", "verdict", "copy", *_OFFSET)
_AMOUNTS: Final = (
    *("lost_commits", "unsure_commits", "removals"),
    *("records_again", "records_skipped"),
)
"""Numbers that are summed up."""


def costs_of_offsets(verdicts: PartedTable, elections: Sequence[Election]) -> pl.DataFrame:
    """Return what each cause cost each offset of a group.

    Args:
        verdicts: Rows of `offset_verdicts` of the groups and the time asked about.
        elections: Of that time.

    Returns:
        `_OF_COSTS` (`copy` is of a loss by an election), `_AMOUNTS`, `is_at_least`.
    """
    lines = _lines(elections)
    parts = [_costs(polars_rows(piece), lines) for piece in verdicts.scan(list(_READ))]
    return (
        pl.concat(parts)
        .group_by(_OF_COSTS)
        .agg(pl.col(*_AMOUNTS).sum(), pl.col("is_at_least").any())
        .sort("group_id", badness(pl.col("verdict")), "copy", *_OFFSET, nulls_last=True)
    )


_LINES: Final = pl.Schema(
    {
        "log": pl.String(),
        "number": pl.Int32(),
        "copy": pl.String(),
        "diverges_at": pl.Int64(),
        "elected_at": pl.Datetime("us", "UTC"),
        "lost_records": pl.Int64(),
    }
)


def _lines(elections: Sequence[Election]) -> pl.DataFrame:
    rows = [
        (*each.place, each.copy, each.diverges_at, each.at, each.lost_records)
        for each in elections
        if each.copy is not None
    ]
    return pl.DataFrame(rows, _LINES, orient="row")


def _costs(verdicts: pl.DataFrame, lines: pl.DataFrame) -> pl.DataFrame:
    """Return `costs_of_offsets` of some rows, of which a group may have others."""
    cost, is_loss = pl.col("cost"), pl.col("verdict") == LOST
    # Share groups have no commits: of what they lose no time is there.
    was_committed = pl.col("was").is_not_null() & pl.col("committed_at").is_not_null()
    is_commit = was_committed & pl.col("topic").is_not_null()
    is_taken = is_commit & (is_loss | pl.col("verdict").is_in(_REMOVALS))
    is_unsure = (pl.col("confidence") == LOW).fill_null(value=False)
    is_untold = cost.is_null() & (pl.col("was").is_not_null() | (pl.col("verdict") == CANNOT_TELL))
    told = _with_copies(verdicts, lines).with_columns(
        _IS_REMOVAL.cast(pl.Int64).alias("removals"),
        is_taken.cast(pl.Int64).alias("lost_commits"),
        (is_taken & is_unsure).cast(pl.Int64).alias("unsure_commits"),
        pl.when(cost > 0).then(cost).otherwise(0).alias("records_again"),
        pl.when(cost < 0).then(-cost).otherwise(0).alias("records_skipped"),
        is_untold.alias("is_at_least"),
    )
    return told.group_by(_OF_COSTS).agg(pl.col(*_AMOUNTS).sum(), pl.col("is_at_least").any())


_IS_OF_OFFSET: Final = pl.col("topic").is_not_null()
"""Else it is about the whole group."""
_REMOVALS: Final = ("expired", "group_deleted", "offset_deleted", "topic_deleted")
"""Verdicts that take a committed offset away for good, beside a loss by an election."""
_IS_REMOVAL: Final = (
    (pl.col("verdict") == CANNOT_TELL)
    & pl.col("rung").eq_missing("deletion")
    & pl.col("at").is_not_null()
)
"""A tombstone removed the offset in the time, and nothing tells by what it was written.

One whose time is not known may be of another time.
"""


def _with_copies(verdicts: pl.DataFrame, lines: pl.DataFrame) -> pl.DataFrame:
    """Add the copy that alone has the record of a loss: `copy`.

    A whole group that was lost has no record: it is of the copy that its other losses are of, else
    of the one that had most.
    """
    place = pl.col("record").str.extract_groups(_LOG)
    rows = verdicts.with_row_index("row").with_columns(
        place.struct.field("log"),
        place.struct.field("number").cast(pl.Int32),
        place.struct.field("offset").cast(pl.Int64),
    )
    lost = rows.filter(pl.col("verdict") == LOST)
    on_lines = lost.join(lines, ["log", "number"]).filter(pl.col("offset") >= pl.col("diverges_at"))
    best = on_lines.sort(
        pl.col("elected_at") != pl.col("at"), pl.col("lost_records"), descending=[False, True]
    ).unique("row", keep="first", maintain_order=True)
    named = rows.join(best.select("row", "copy"), "row", "left", maintain_order="left")
    most = lines.sort("lost_records", descending=True)["copy"].first() if lines.height else None
    of_group = pl.col("copy").drop_nulls().first().over("group_id")
    other = pl.coalesce(of_group, pl.lit(most, pl.String))
    is_lost = pl.col("verdict") == LOST
    return named.with_columns(pl.when(is_lost).then(pl.coalesce("copy", other)).alias("copy")).drop(
        "row", "log", "number", "offset"
    )


def untold_reasons(verdicts: PartedTable) -> tuple[str | None, int]:
    """Return the reason that most of what cannot be told has, and how many others there are.

    That nothing tells what removed an offset is no such reason: removals are counted.
    """
    untold = verdicts.where((pl.col("verdict") == CANNOT_TELL) & ~_IS_REMOVAL)
    parts = [
        polars_rows(each)["reason"].drop_nulls()
        for each in untold.scan(["verdict", "rung", "reason"])
    ]
    counts = pl.concat(parts).value_counts(sort=True, name="rows")
    if counts.is_empty():
        return None, 0
    first = counts.sort("rows", "reason", descending=[True, False])["reason"].first()
    return str(first), counts.height - 1


def causes_of(
    costs: pl.DataFrame,
    elections: Sequence[Election],
    last: Mapping[str, datetime],
    untold: tuple[str | None, int],
    removals: Removals,
) -> pa.Table:
    """Return `incident_causes`.

    Args:
        costs: Of `costs_of_offsets`.
        elections: Of the time.
        last: Of `last_records`.
        untold: Of `untold_reasons`.
        removals: What was removed beside offsets: nothing tells by what.
    """
    sums = costs.group_by("verdict", "copy", maintain_order=True).agg(
        pl.col("group_id").n_unique().cast(pl.Int64).alias("groups"),
        pl.col("group_id").filter(pl.col("lost_commits") > 0).n_unique().alias("commit_groups"),
        pl.struct("group_id", *_OFFSET).filter(_IS_OF_OFFSET).n_unique().alias("offsets"),
        pl.struct("group_id", *_OFFSET).filter(_HAS_REMOVALS).n_unique().alias("removed_offsets"),
        pl.col("group_id").filter(_HAS_REMOVALS).n_unique().alias("removed_groups"),
        pl.col(*_AMOUNTS).sum(),
        pl.col("is_at_least").any(),
    )
    of_costs = {(row["verdict"], row["copy"]): row for row in sums.iter_rows(named=True)}
    apart = [] if removals.are_none else [(CANNOT_TELL, None)]
    keys = dict.fromkeys([*of_costs, *((_cause_of(each)) for each in elections), *apart])
    rows = [
        {
            **_NOTHING,
            **of_costs.get(key, {}),
            **(_counts_of(removals) if key in apart else {}),
            **_election_facts(key, elections, last),
            "verdict": key[0],
            "copy": key[1],
            "reason": untold[0] if key[0] == CANNOT_TELL else None,
            "other_reasons": untold[1] if key[0] == CANNOT_TELL else 0,
        }
        for key in keys
    ]
    for row in rows:
        if row["verdict"] == CANNOT_TELL and row["reason"] is None:
            row["reason"] = next((each.why for each in elections if each.copy is None), None)
    return table_of(CAUSES, sorted(rows, key=_dearest_first))


_HAS_REMOVALS: Final = pl.col("removals") > 0
_NOTHING: Final = {
    **dict.fromkeys(("groups", "commit_groups", "offsets", *_AMOUNTS), 0),
    **dict.fromkeys(("removed_offsets", "removed_groups"), 0),
    **dict.fromkeys(("deleted_states", "state_groups", "groups_without_offsets"), 0),
    "is_at_least": False,
}
_OF_ELECTIONS: Final = {
    **dict.fromkeys(("last_record_at", "lost_records", "partitions", "partitions_without_leader")),
    **dict.fromkeys(("elected_from", "elected_to", "election_shown_by", "unclean")),
    "surviving_copy": None,
}


def _counts_of(removals: Removals) -> dict[str, int]:
    return {
        "deleted_states": removals.share_partitions,
        "state_groups": removals.share_groups,
        "groups_without_offsets": removals.groups,
    }


def _cause_of(election: Election) -> tuple[str, str | None]:
    return (CANNOT_TELL, None) if election.copy is None else (LOST, election.copy)


def _election_facts(
    key: tuple[str, str | None], elections: Sequence[Election], last: Mapping[str, datetime]
) -> dict[str, Any]:
    """Return the columns of `incident_causes` that are about elections."""
    own = [each for each in elections if _cause_of(each) == key]
    if not own:
        return {**_OF_ELECTIONS, "elected_brokers": []}
    times = [each.at for each in own if each.at is not None]
    shown = "metadata_log" if all(each.is_exact for each in own) else "first_record"
    copy = key[1]
    return {
        "last_record_at": None if copy is None else last.get(copy),
        "lost_records": None if copy is None else sum(each.lost_records or 0 for each in own),
        "partitions": len({each.place for each in own}),
        "elected_brokers": sorted({each.broker for each in own if each.broker is not None}),
        "partitions_without_leader": len({each.place for each in own if each.broker is None}),
        "elected_from": min(times, default=None),
        "elected_to": max(times, default=None),
        "election_shown_by": shown if times else None,
        "unclean": True if all(each.unclean for each in own) else None,
        "surviving_copy": next((each.surviving_copy for each in own), None),
    }


_TAKEN_AWAY: Final = ("lost_commits", "removed_offsets", "deleted_states")


def _dearest_first(row: Row) -> tuple[Any, ...]:
    """Return what sorts causes: elections first, known ones before others, then by their cost.

    What took offsets away costs more than what moved them, though nothing tells by what they were
    removed. Commits that were lost are known of each; how many records are read again often is not,
    and that is not none.
    """
    is_untold = row["verdict"] == CANNOT_TELL
    is_election = row["partitions"] is not None
    return (
        not is_election,
        is_untold if is_election else not any(row[each] for each in _TAKEN_AWAY),
        is_untold,
        -row["lost_commits"],
        -row["records_again"],
        -(row["lost_records"] or 0),
        row["verdict"],
        row["copy"] or "",
    )


def group_costs(
    groups: Sequence[str],
    costs: pl.DataFrame,
    elections: Sequence[Election],
    restored: pl.DataFrame,
) -> pa.Table:
    """Return `incident_costs` of the groups of an incident, what it cost most first.

    Args:
        groups: All of them.
        costs: Of `costs_of_offsets`.
        elections: Of the time.
        restored: `group_id`, `restore` and `refused` of `restore_groups`.
    """
    only = {
        group: each.copy
        for each in elections
        for group in each.groups_only_there
        if each.copy is not None
    }
    named = pl.DataFrame({"group_id": groups}, {"group_id": pl.String()})
    sums = costs.group_by("group_id", maintain_order=True).agg(
        pl.struct(_OFFSET).filter(_IS_OF_OFFSET).n_unique().cast(pl.Int64).alias("offsets"),
        pl.col(*_AMOUNTS).sum(),
        pl.col("is_at_least").any(),
        pl.col("verdict").unique(maintain_order=True).str.join(", ").alias("verdicts"),
    )
    given = restored.group_by("group_id").agg(pl.col("restore", "refused").sum())
    rows = (
        named.join(sums, "group_id", "left")
        .join(given, "group_id", "left")
        .with_columns(
            pl.col("offsets", *_AMOUNTS, "restore", "refused").fill_null(0),
            pl.col("is_at_least").fill_null(value=False),
            pl.col("verdicts").fill_null(""),
            pl.col("group_id")
            .replace_strict(only, default=None, return_dtype=pl.String)
            .alias("only_on"),
        )
    )
    order = [
        *("records_again", "records_skipped", "lost_commits", "offsets"),
        "group_id",
    ]
    dearest = rows.sort(order, descending=[True, True, True, True, False])
    return table_of_frame(COSTS, dearest)
