"""Which committed offsets of the past groups are given back, and which are refused, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import polars as pl
import pyarrow.compute as pc

from analytics.contracts import polars_rows
from analytics.engine.cut_tables import Cut
from analytics.engine.part_runs import PartAnswer, PartAnswers
from analytics.errors import SettingRefusedError
from analytics.gaps.group_completeness import GroupCompleteness
from analytics.gaps.group_selection import HOMES, select_groups
from analytics.gaps.internal_topics import topics_left_out
from analytics.questions.diff.changes import LEFT_OUT_TOPICS
from analytics.questions.diff.question import incomplete_groups
from analytics.questions.question import Answer, Question
from analytics.questions.restore.plan import (
    AND,
    COMMITTED,
    KEY,
    PLAN_ORDER,
    REFUSED,
    UNCHANGED,
    UNCLEAN,
    UNSURE,
    DataLog,
    Logs,
    State,
    restore_plan,
    share_plan,
)
from analytics.questions.restore.plan import RESTORE as GIVEN_BACK
from analytics.replay.history.partition_history import unclean_takeovers
from analytics.replay.metadata_log import metadata_log
from analytics.replay.topics import METADATA_LOG, RECORD, SOURCES
from analytics.replayed.end_offsets import end_offsets_at, true_copies
from analytics.replayed.records import Records
from analytics.replayed.whole_groups import parts_of_both
from analytics.tables.parted_table import PartedTables
from analytics.tables.stored_tables import StoredTables
from schemas.releases import release_key

if TYPE_CHECKING:
    from analytics.replayed.replayed_workspace import ReplayedWorkspace
    from schemas.manifest import DataPartitionEntry, Manifest

OFFSETS, OF_GROUPS = "restore_plan", "restore_groups"
AT_ONCE: Final = 600_000
"""So many rows of whole groups of both states are judged together, about."""
STREAMS_FILES_FROM: Final = "4.2"
"""The first release whose kafka-streams-groups has --from-file."""
_CONSUMER_PROTOCOLS: Final = ("", "consumer")
_IN_TRANSACTIONS: Final = "in_transactions"
_NEEDED: Final = {
    "groups": (
        *("group_id", "group_type", "protocol_type", "state", "member_count"),
        *("coordinator_partition", "complete", "missing"),
    ),
    "committed_offsets": COMMITTED,
    "pending_offsets": (*KEY, "transactional_id", "missing"),
    "share_partitions": (*KEY, "start_offset"),
}
"""What is read of each group in both states."""
_IN_FORCE: Final = {"committed_offsets": pc.is_valid(pc.field("committed_offset"))}
"""A commit below 0 is none: there is nothing to bring back, and nothing that is there."""
_OF_LOG: Final = ("topic", "partition", "log_start_offset", "log_end_offset")


@dataclass(frozen=True)
class RestoreSettings:
    """What offsets are given back to.

    Attributes:
        against: The state of the present.
        end_offsets: A file that says where logs end at present.
        include_live: Groups that have moved on since are rewound, too.
    """

    against: ReplayedWorkspace | None = None
    end_offsets: str | None = None
    include_live: bool = False


def restore(state: ReplayedWorkspace, settings: RestoreSettings) -> Answer:
    """Return what becomes of each committed offset of the past, and of each group.

    Raises:
        SettingRefusedError: There is no state of the present.
        InputUnreadableError: `end_offsets` is not what it has to be.
        WorkspaceError: A table cannot be read.
    """
    if settings.against is None:
        raise SettingRefusedError("nothing to restore: `against` has to be the present state")
    made = _judged(state, settings.against, settings)
    return Answer(
        PartedTables(made.tables),
        select_groups(state, columns=HOMES),
        rows_cannot_tell=any(made.sums),
    )


@dataclass(frozen=True)
class _Side:
    """What of a state is the same for all groups.

    Attributes:
        manifest: Of the workspace.
        completeness: What is not known of groups.
        topics: As `topics_there` returns them.
        knows_topics: A topic that is not among them is not there.
        logs: Of the data partitions.
    """

    manifest: Manifest
    completeness: GroupCompleteness
    topics: pl.DataFrame
    knows_topics: bool
    logs: Logs

    def of_part(
        self,
        rows: Mapping[str, pl.DataFrame],
        word: str,
        incomplete: pl.DataFrame,
        left_out: pl.DataFrame,
    ) -> State:
        """Return what the plan of some whole groups is made of."""
        return State(
            committed=rows[f"{word}_committed_offsets"],
            pending=rows[f"{word}_pending_offsets"],
            topics=self.topics,
            incomplete_groups=incomplete,
            logs=self.logs,
            knows_topics=self.knows_topics,
            left_out_topics=left_out,
        )


@dataclass(frozen=True)
class _Restoring:
    """What is the same for all groups.

    Attributes:
        past: The state that offsets are taken from.
        present: The one they are given back to.
        release: Of the present.
        unclean: Of `unclean_elections`.
        include_live: Groups that have moved on since are rewound.
    """

    past: _Side
    present: _Side
    release: str
    unclean: pl.DataFrame
    include_live: bool


def _judged(
    past: ReplayedWorkspace, present: ReplayedWorkspace, settings: RestoreSettings
) -> PartAnswers:
    """Return the tables, and of each part whether it has rows that cannot be told."""
    restoring = _Restoring(
        _side(past, past_logs(past)),
        _side(present, present_logs(present, settings.end_offsets)),
        present.release,
        unclean_elections(present),
        settings.include_live,
    )
    states, runner = (past.tables, present.tables), past.runner
    with parts_of_both(states, _NEEDED, _IN_FORCE, AT_ONCE, runner.folder) as parts:
        return runner.run(partial(plan_of_part, restoring), parts, {OFFSETS: PLAN_ORDER})


def _side(state: ReplayedWorkspace, logs: Logs) -> _Side:
    topics = polars_rows(
        StoredTables(state.tables.workspace).read(
            "topics", ["topic", "topic_id", "partitions", "deleted_at", "source"]
        )
    )
    return _Side(
        state.manifest,
        GroupCompleteness(state),
        topics_there(topics),
        METADATA_LOG in topics["source"],
        logs,
    )


def plan_of_part(restoring: _Restoring, rows: Mapping[str, pl.DataFrame]) -> PartAnswer:
    """Return the tables of some whole groups, and whether rows of them cannot be told.

    Args:
        restoring: What is the same for all groups.
        rows: `_NEEDED` of them in both states, as `parts_of_both` names them.
    """
    past, present = restoring.past, restoring.present
    old, new = rows["from_groups"], rows["to_groups"]
    wanted = [rows[f"from_{name}"]["topic"] for name in ("committed_offsets", "pending_offsets")]
    left_out = topics_left_out(present.manifest, pl.concat(wanted).unique().to_list())
    unknown = incomplete_groups(present.completeness, new, old)
    plan = restore_plan(
        past.of_part(
            rows,
            "from",
            incomplete_groups(past.completeness, old, old.clear()),
            LEFT_OUT_TOPICS.to_frame(),
        ),
        present.of_part(
            rows, "to", unknown, pl.DataFrame([*left_out.items()], LEFT_OUT_TOPICS, orient="row")
        ),
        unfit_groups(old, new, restoring.release),
        restoring.unclean,
        include_live=restoring.include_live,
    )
    shares = share_plan(rows["from_share_partitions"], rows["to_share_partitions"])
    both = pl.concat([plan, shares], how="vertical_relaxed")
    reasons = both["reason"].drop_nulls().unique().str.split(AND).explode()
    return PartAnswer(
        {OFFSETS: both, OF_GROUPS: _groups(both, old, new, unknown)},
        bool(reasons.is_in(UNSURE).any()),
    )


def topics_there(topics: pl.DataFrame) -> pl.DataFrame:
    """Return the topics that are there, one row a name, as `State` has them.

    Where sources name different ids, the best of them is believed. A topic that only records of
    groups name, where there is a metadata log that does not have it, was deleted before that log
    begins, or made after it ends: `is_only_named`.

    Args:
        topics: Of the table `topics`: `topic`, `topic_id`, `partitions`, `deleted_at`, `source`.
    """
    ranks = {source: rank for rank, source in enumerate(SOURCES)}
    rank = pl.col("source").replace_strict(ranks, return_dtype=pl.Int32)
    is_best = rank == rank.min()
    ids = pl.col("topic_id").filter(is_best).drop_nulls()
    has_log = METADATA_LOG in topics["source"]
    return (
        topics.filter(pl.col("topic").is_not_null() & pl.col("deleted_at").is_null())
        .group_by("topic")
        .agg(
            pl.when(ids.n_unique() <= 1).then(ids.max()).alias("topic_id"),
            pl.col("partitions").max(),
            (ids.n_unique() > 1).alias("has_several_ids"),
            ((rank.min() == ranks[RECORD]) & has_log).alias("is_only_named"),
        )
    )


def past_logs(state: ReplayedWorkspace) -> Logs:
    """Return the logs that offsets of the past were committed for, with their epochs.

    A log only grows, so what lies beside the dump serves for every instant before its end.
    """
    return {key: _log(copies) for key, copies in true_copies(state).items()}


def present_logs(state: ReplayedWorkspace, end_offsets: str | None) -> Logs:
    """Return the logs that offsets are brought back to.

    Args:
        state: The present.
        end_offsets: A side file, which goes before what lies beside the dump.
    """
    logs = {
        (topic, number): DataLog(start, end)
        for topic, number, start, end in polars_rows(end_offsets_at(state, end_offsets))
        .select(_OF_LOG)
        .iter_rows()
    }
    copies = true_copies(state) if state.is_end else {}
    for key, held in copies.items():
        known, beside = logs.get(key, DataLog()), _log(held)
        end = known.log_end_offset if known.log_end_offset is not None else beside.log_end_offset
        logs[key] = DataLog(known.log_start_offset, end, beside.epochs)
    return logs


def unclean_elections(state: ReplayedWorkspace) -> pl.DataFrame:
    """Return the unclean elections of data partitions, as `restore_plan` takes them."""
    records = Records(state)
    log = metadata_log(Cut(records.of_asked, records.instant).whole())
    topics = StoredTables(state.tables.workspace).read("topics", ["topic", "topic_id"])
    return unclean_takeovers(log, polars_rows(topics)).select(UNCLEAN.names()).cast(UNCLEAN)


def _log(copies: list[DataPartitionEntry]) -> DataLog:
    end = min(each["log_end_offset"] for each in copies)
    # A leader writes an epoch down when it begins, a follower with the first record of it.
    epochs = max((each.get("leader_epochs") or () for each in copies), key=len)
    pairs = tuple((int(epoch), int(start)) for epoch, start in epochs)
    return DataLog(log_end_offset=end, epochs=pairs)


def unfit_groups(old: pl.DataFrame, new: pl.DataFrame, release: str) -> pl.DataFrame:
    """Return `group_id`, `unfit`: groups whose offsets no tool resets from a file, and why.

    Args:
        old: The table `groups` of the past.
        new: That of the present.
        release: Of the present.
    """
    now = new.select(
        "group_id",
        type_now="group_type",
        protocol_now=pl.col("protocol_type").fill_null(""),
        is_present=pl.lit(value=True),
    )
    kind = pl.when("is_present").then("type_now").otherwise("group_type")
    protocol = pl.col("protocol_now").fill_null("")
    takes_files = release_key(release) >= release_key(STREAMS_FILES_FROM)
    why = (
        pl.when(pl.col("group_id").str.contains("\0", literal=True))
        .then(pl.lit("its name holds a NUL, which no command line can carry"))
        .when(kind == "share")
        .then(pl.lit("it is a share group now, whose tool takes no file"))
        .when((kind == "streams") & takes_files)
        .then(pl.lit(None, pl.String))
        .when(kind == "streams")
        .then(pl.lit(f"kafka-streams-groups of {release} takes no file; that of 4.2 does"))
        .when(~protocol.is_in(_CONSUMER_PROTOCOLS))
        .then(pl.format("kafka-consumer-groups resets no group of protocol type {}", protocol))
    )
    rows = old.join(now, "group_id", "left").select("group_id", why.alias("unfit"))
    return rows.drop_nulls()


def _groups(
    plan: pl.DataFrame, old: pl.DataFrame, new: pl.DataFrame, unknown: pl.DataFrame
) -> pl.DataFrame:
    """Return the table `restore_groups`; a group without an offset in the past is not in it."""
    verdict = pl.col("verdict")
    in_transactions = (verdict == GIVEN_BACK) & (pl.col("via") == "transaction")
    counts = plan.group_by("group_id").agg(
        *((verdict == each).sum().alias(each) for each in (GIVEN_BACK, UNCHANGED, REFUSED)),
        in_transactions.sum().alias(_IN_TRANSACTIONS),
    )
    present = new.select(
        "group_id",
        "member_count",
        type_now="group_type",
        present_state="state",
        is_present=pl.lit(value=True),
    )
    is_present = pl.col("is_present").fill_null(value=False)
    return (
        counts.join(present, "group_id", "left")
        .join(old.select("group_id", "group_type"), "group_id", "left")
        .join(unknown.rename({"reason": "unknown"}), "group_id", "left")
        .with_columns(
            is_present.alias("is_present"),
            pl.when(is_present).then("type_now").otherwise("group_type").alias("group_type"),
        )
        .sort("group_id")
    )


RESTORE: Final = Question(
    name="restore",
    needs=(
        *("groups", "committed_offsets", "pending_offsets", "share_partitions", "topics"),
        "partition_leaders",
    ),
    tables=(OFFSETS, OF_GROUPS),
    settings=RestoreSettings,
    answer=restore,
    is_audited=False,
)
