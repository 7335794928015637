"""Which committed offsets of the past groups are given back, and which are refused, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from analytics.contracts import arrow_schema
from analytics.engine.cut_tables import Cut
from analytics.errors import SettingRefusedError
from analytics.gaps.group_completeness import GroupCompleteness
from analytics.gaps.group_selection import select_groups
from analytics.gaps.workspace_parts import topics_left_out
from analytics.questions.answer import Answer
from analytics.questions.diff.question import incomplete_groups
from analytics.questions.question import Question
from analytics.questions.restore.data_logs import DataLog, Logs, logs_of
from analytics.questions.restore.plan import (
    COMMITTED,
    INCOMPLETE_GROUPS,
    KEY,
    LEFT_OUT_TOPICS,
    PLAN,
    REFUSED,
    UNCHANGED,
    UNCLEAN,
    State,
    restore_plan,
    share_plan,
)
from analytics.questions.restore.plan import RESTORE as GIVEN_BACK
from analytics.questions.restore.refusals import UNSURE
from analytics.replay.history.data_partitions import unclean_takeovers
from analytics.replay.metadata.metadata_log import metadata_log
from analytics.replay.metadata.topics import METADATA_LOG, RECORD, SOURCES
from analytics.replayed.end_offsets import end_offsets_at, true_copies
from analytics.replayed.records_at import CutRecords
from analytics.replayed.replayed_workspace import replayed_instant
from analytics.replayed.whole_groups import frame_of
from analytics.tables.stored_tables import StoredTables
from schemas.releases import release_key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from analytics.replayed.replayed_workspace import ReplayedWorkspace


# What is known of a state that offsets are taken from, or given back to.

GROUPS = (
    *("group_id", "group_type", "protocol_type", "state", "member_count"),
    *("coordinator_partition", "complete", "missing"),
)
SHARES = (*KEY, "start_offset")


def restore_state(
    state: ReplayedWorkspace,
    incomplete_groups: pa.Table,
    logs: Logs,
    left_out: Mapping[str, str] = MappingProxyType({}),
) -> State:
    """Read what the plan is made of.

    Args:
        state: At its instant.
        incomplete_groups: `group_id`, `reason`: groups of which it does not tell all.
        logs: Of the data partitions.
        left_out: By topic, why the state has no offset of it.
    """
    topics = StoredTables(state.tables.workspace).read(
        "topics", ["topic", "topic_id", "partitions", "deleted_at", "source"]
    )
    return State(
        # A commit below 0 is none: there is nothing to bring back, and nothing that is there.
        committed=state.tables.read(
            "committed_offsets", COMMITTED, pc.is_valid(pc.field("committed_offset"))
        ),
        pending=state.tables.read("pending_offsets", [*KEY, "transactional_id", "missing"]),
        topics=topics_there(topics),
        incomplete_groups=incomplete_groups,
        logs=logs,
        knows_topics=METADATA_LOG in topics["source"].to_pylist(),
        left_out_topics=pa.table(
            {"topic": list(left_out), "left_out": list(left_out.values())}, schema=LEFT_OUT_TOPICS
        ),
    )


def topics_there(topics: pa.Table) -> pa.Table:
    """Return the topics that are there, one row a name, as `State` has them.

    Where sources name different ids, the best of them is believed. A topic that only records of
    groups name, where there is a metadata log that does not have it, was deleted before that log
    begins, or made after it ends: `is_only_named`.

    Args:
        topics: Of the table `topics`: `topic`, `topic_id`, `partitions`, `deleted_at`, `source`.
    """
    named = topics.filter(pc.and_(pc.is_valid(topics["topic"]), pc.is_null(topics["deleted_at"])))
    named = named.append_column("rank", pc.index_in(named["source"], pa.array(SOURCES)))
    names = named.group_by("topic").aggregate([("rank", "min"), ("partitions", "max")])
    best = named.select(["topic", "topic_id", "rank"]).join(names, "topic")
    ids = (
        best.filter(pc.equal(best["rank"], best["rank_min"]))
        .group_by(["topic", "partitions_max", "rank_min"])
        .aggregate([("topic_id", "max"), ("topic_id", "count_distinct")])
    )
    several = pc.greater(ids["topic_id_count_distinct"], 1)
    metadata = topics.filter(pc.equal(topics["source"], METADATA_LOG))["topic"]
    is_only_named = pc.and_(
        pc.equal(ids["rank_min"], SOURCES.index(RECORD)),
        pa.scalar(len(metadata) > 0),
    )
    return pa.table(
        {
            "topic": ids["topic"],
            "topic_id": pc.if_else(several, None, ids["topic_id_max"]),
            "partitions": ids["partitions_max"],
            "has_several_ids": several,
            "is_only_named": is_only_named,
        }
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
    logs = logs_of(end_offsets_at(state, end_offsets))
    copies = true_copies(state) if state.is_end else {}
    for key, held in copies.items():
        known, beside = logs.get(key, DataLog()), _log(held)
        end = known.log_end_offset if known.log_end_offset is not None else beside.log_end_offset
        logs[key] = DataLog(known.log_start_offset, end, beside.epochs)
    return logs


def unclean_elections(state: ReplayedWorkspace) -> pa.Table:
    """Return the unclean elections of data partitions, as `restore_plan` takes them."""
    instant = replayed_instant(state.as_of, state.frames)
    log = metadata_log(Cut(CutRecords(state), instant).whole())
    topics = StoredTables(state.tables.workspace).read("topics", ["topic", "topic_id"])
    found = unclean_takeovers(log, pl.DataFrame(topics))
    return found.to_arrow(compat_level=pl.CompatLevel.oldest()).cast(UNCLEAN)


def _log(copies: list[Any]) -> DataLog:
    end = min(each["log_end_offset"] for each in copies)
    # A leader writes an epoch down when it begins, a follower with the first record of it.
    epochs = max((each.get("leader_epochs") or () for each in copies), key=len)
    pairs = tuple((int(epoch), int(start)) for epoch, start in epochs)
    return DataLog(log_end_offset=end, epochs=pairs)


OFFSETS, OF_GROUPS = "restore_plan", "restore_groups"
STREAMS_FILES_FROM: Final = "4.2"
"""The first release whose kafka-streams-groups has --from-file."""
_CONSUMER_PROTOCOLS: Final = ("", "consumer")
_IN_TRANSACTIONS: Final = "in_transactions"


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
    past, present = state, settings.against
    old, new = (each.tables.read("groups", GROUPS) for each in (past, present))
    unknown = _unknown(present, new, old)
    plan = _plan(past, present, settings, (old, new), unknown)
    reasons = pc.list_flatten(pc.split_pattern(plan["reason"].drop_null(), "; "))
    return Answer(
        {OFFSETS: plan, OF_GROUPS: _groups(plan, old, new, unknown)},
        select_groups(past),
        rows_cannot_tell=bool(pc.any(pc.is_in(reasons, pa.array(UNSURE))).as_py()),
    )


def _plan(
    past: ReplayedWorkspace,
    present: ReplayedWorkspace,
    settings: RestoreSettings,
    groups: tuple[pa.Table, pa.Table],
    unknown: Mapping[str, str],
) -> pa.Table:
    """Return the table `restore_plan`, sorted; share groups come last."""
    old, new = groups
    then = restore_state(past, _as_table(_unknown(past, old, old[:0])), past_logs(past))
    topics = (
        then.committed["topic"].unique().to_pylist() + then.pending["topic"].unique().to_pylist()
    )
    now = restore_state(
        present,
        _as_table(unknown),
        present_logs(present, settings.end_offsets),
        topics_left_out(present.manifest, topics),
    )
    plan = restore_plan(
        then,
        now,
        unfit_groups(old, new, present.release),
        unclean_elections(present),
        include_live=settings.include_live,
    )
    shares = share_plan(*(each.tables.read("share_partitions", SHARES) for each in (past, present)))
    rows = pa.concat_tables([plan.select(PLAN), shares.select(PLAN)], promote_options="permissive")
    return rows.cast(arrow_schema(OFFSETS))


def _unknown(state: ReplayedWorkspace, groups: pa.Table, others: pa.Table) -> dict[str, str]:
    found = incomplete_groups(GroupCompleteness(state), frame_of(groups), frame_of(others))
    return dict(found.iter_rows())


def _as_table(reasons: Mapping[str, str]) -> pa.Table:
    return pa.table(
        {"group_id": list(reasons), "reason": list(reasons.values())}, schema=INCOMPLETE_GROUPS
    )


def unfit_groups(old: pa.Table, new: pa.Table, release: str) -> pa.Table:
    """Return `group_id`, `unfit`: groups whose offsets no tool resets from a file, and why.

    Args:
        old: The table `groups` of the past.
        new: That of the present.
        release: Of the present.
    """
    present = {each["group_id"]: each for each in new.to_pylist()}
    reasons = {
        each["group_id"]: why
        for each in old.to_pylist()
        if (why := _unfit(each["group_id"], present.get(each["group_id"]), each, release))
    }
    schema = pa.schema([("group_id", pa.string()), ("unfit", pa.string())])
    return pa.table({"group_id": list(reasons), "unfit": list(reasons.values())}, schema=schema)


def _unfit(
    name: str, now: Mapping[str, Any] | None, then: Mapping[str, Any], release: str
) -> str | None:
    if "\0" in name:
        return "its name holds a NUL, which no command line can carry"
    kind = (now or then)["group_type"]
    if kind == "share":
        return "it is a share group now, whose tool takes no file"
    if kind == "streams":
        if release_key(release) >= release_key(STREAMS_FILES_FROM):
            return None
        return f"kafka-streams-groups of {release} takes no file; that of 4.2 does"
    protocol = (now or {}).get("protocol_type") or ""
    if protocol not in _CONSUMER_PROTOCOLS:
        return f"kafka-consumer-groups resets no group of protocol type {protocol}"
    return None


def _groups(plan: pa.Table, old: pa.Table, new: pa.Table, unknown: Mapping[str, str]) -> pa.Table:
    """Return the table `restore_groups`; a group without an offset in the past is not in it."""
    counts: dict[str, dict[str, int]] = {}
    names = (GIVEN_BACK, UNCHANGED, REFUSED, _IN_TRANSACTIONS)
    grouped = plan.group_by(["group_id", "verdict", "via"]).aggregate([([], "count_all")])
    for each in grouped.to_pylist():
        verdicts = counts.setdefault(each["group_id"], dict.fromkeys(names, 0))
        verdicts[each["verdict"]] += each["count_all"]
        if (each["verdict"], each["via"]) == (GIVEN_BACK, "transaction"):
            verdicts[_IN_TRANSACTIONS] += each["count_all"]
    past = {each["group_id"]: each for each in old.to_pylist()}
    present = {each["group_id"]: each for each in new.to_pylist()}
    rows = []
    for name, verdicts in sorted(counts.items()):
        now = present.get(name)
        rows.append(
            {
                "group_id": name,
                **verdicts,
                "is_present": now is not None,
                "group_type": (now or past.get(name) or {}).get("group_type"),
                "present_state": None if now is None else now["state"],
                "member_count": None if now is None else now["member_count"],
                "unknown": unknown.get(name),
            }
        )
    return pa.Table.from_pylist(rows, schema=arrow_schema(OF_GROUPS))


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
