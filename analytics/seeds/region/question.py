"""Checkpoints kept outside of Kafka: which are complete, and what the dump shows of groups."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import pyarrow.compute as pc

from analytics.decode.selection import Selection
from analytics.gaps.gap import Gap, gap, joined
from analytics.gaps.group_completeness import GroupCompleteness
from analytics.gaps.group_selection import GroupSelection, select_groups
from analytics.gaps.internal_topics import topics_left_out
from analytics.questions.question import Answer, Question
from analytics.replay.log.ends_at import cleaned_until, leading
from analytics.replayed.end_offsets import end_offsets_at
from analytics.replayed.replayed_workspace import instant_of
from analytics.seeds.region.contributions import (
    OF_REGIONS,
    CheckpointKey,
    Contribution,
    Member,
    Owned,
    OwnersThen,
    Partition,
    groups_of,
    places_without_group,
)
from analytics.seeds.region.drains import CANNOT_TELL, HISTORY, Evidence, requests_of, shown_since
from analytics.seeds.region.merge import Checkpoint, Committed, Log, Present
from analytics.seeds.region.rows import TABLES, tables_of
from analytics.seeds.region.table import Dumped, Judgement, Region, checkpoints_of, evaluate_regions
from analytics.tables.stored_tables import StoredTables
from schemas import CONSUMER_OFFSETS
from schemas.evaluation_rules import region_rules

if TYPE_CHECKING:
    from analytics.replayed.replayed_workspace import ReplayedWorkspace
    from schemas.evaluation_rules import RegionRules

# What a dump shows of the groups that checkpoints are of.

NEEDS: Final = (
    *("groups", "members", "assignments", "committed_offsets", "topics", "partition_leaders"),
    *("offset_history", "assignment_history"),
)
"""The tables that are read."""

_OWNED: Final = (
    *("group_id", "client_id", "group_instance_id", "kind", "topic", "partition"),
    *("from_timestamp", "to_timestamp"),
)
Row = Mapping[str, Any]


def dumped_groups(
    state: ReplayedWorkspace, checkpoints: Sequence[Checkpoint], settings: RegionSettings
) -> Dumped:
    """Return what a replay shows of the groups of checkpoints.

    Args:
        state: With the tables of `NEEDS`, of these groups.
        checkpoints: As contributions were merged.
        settings: Where logs ended, and where reading starts that nothing else tells of.

    Raises:
        GroupscopeError: The file of log ends is not what it has to be.
    """
    groups = _groups(checkpoints)
    completeness = GroupCompleteness(state)
    members = _members(state)
    return Dumped(
        _evidence(state, checkpoints, groups, completeness),
        _present(state, checkpoints, completeness, members, settings),
        {group: list(each.values()) for group, each in members.items()},
    )


def _groups(checkpoints: Sequence[Checkpoint]) -> list[str]:
    return sorted({each.key.group_id for each in checkpoints if each.key.group_id is not None})


def _evidence(
    state: ReplayedWorkspace,
    checkpoints: Sequence[Checkpoint],
    groups: Sequence[str],
    completeness: GroupCompleteness,
) -> dict[str, Evidence]:
    wanted = {
        (each.key.group_id, *partition, offset)
        for each in checkpoints
        for made in each.contributions
        for partition, offset in made.offsets
        if each.key.group_id is not None and offset is not None
    }
    requests = requests_of(state.tables.batches("offset_history", HISTORY), wanted)
    starts = {
        row["partition"]: start
        for row in leading(state.manifest)
        if row["topic"] == CONSUMER_OFFSETS and (start := cleaned_until(row))
    }
    since = shown_since(state.tables.batches("offset_history", HISTORY), starts)
    until = _milliseconds(instant_of(state))
    left_out = topics_left_out(state.manifest, {topic for _, topic, _, _ in wanted})
    found = {}
    for group in groups:
        home = completeness.home(group)
        found[group] = Evidence(
            requests.get(group, ()),
            until,
            since.get(home) if home is not None else None,
            never_shown=home in starts and home not in since,
            gap=joined(completeness.gaps_of(group).history),
            left_out=left_out,
        )
    return found


def _members(state: ReplayedWorkspace) -> dict[str, dict[str, Member]]:
    found: dict[str, dict[str, Member]] = defaultdict(dict)
    columns = ["group_id", "member_id", "client_id", "group_instance_id"]
    for row in state.tables.read("members", columns).to_pylist():
        found[row["group_id"]][row["member_id"]] = Member(
            row["member_id"], row["client_id"], row["group_instance_id"]
        )
    return found


def _present(
    state: ReplayedWorkspace,
    checkpoints: Sequence[Checkpoint],
    completeness: GroupCompleteness,
    members: Mapping[str, Mapping[str, Member]],
    settings: RegionSettings,
) -> dict[str, Present]:
    topics = _topics(state)
    owners = _owners(state, members)
    committed = _committed(state, topics)
    logs = _logs(end_offsets_at(state, settings.end_offsets).to_pylist(), topics)
    gone = _deleted_topics(state, topics)
    read = {
        topic
        for each in checkpoints
        for made in each.contributions
        for (topic, _), _ in made.offsets
    }
    owned = {topic for each in owners.values() for topic, _ in each}
    left_out = topics_left_out(state.manifest, read | owned)
    found = {}
    for group in _groups(checkpoints):
        gaps = completeness.gaps_of(group)
        found[group] = Present(
            owners.get(group, {}),
            committed.get(group, {}),
            logs,
            settings.initial_offsets or {},
            settings.start_position,
            gone,
            gap=joined(gaps.offsets),
            membership_gap=joined(gaps.membership),
            left_out=left_out,
        )
    return found


def _topics(state: ReplayedWorkspace) -> dict[str, Row]:
    """Return the topics that are there, by name.

    Where nothing tells which of several lives is the present one, neither id nor time is known.
    """
    rows = StoredTables(state.tables.workspace).read("topics")
    found: dict[str, Row] = {}
    for row in rows.filter(pc.is_null(rows["deleted_at"])).to_pylist():
        is_doubtful = row["topic"] in found
        unknown = {"topic_id": None, "created_at": None} if is_doubtful else {}
        found[row["topic"]] = {**row, **unknown}
    return found


def _deleted_topics(state: ReplayedWorkspace, topics: Mapping[str, Row]) -> frozenset[str]:
    """Return the topics that were deleted and not made again."""
    rows = StoredTables(state.tables.workspace).read("topics", ["topic", "deleted_at"])
    deleted = rows.filter(pc.is_valid(rows["deleted_at"]))["topic"].to_pylist()
    return frozenset(deleted) - frozenset(topics)


def _owners(
    state: ReplayedWorkspace, members: Mapping[str, Mapping[str, Member]]
) -> dict[str, dict[Partition, Member]]:
    found: dict[str, dict[Partition, Member]] = defaultdict(dict)
    columns = ["group_id", "member_id", "kind", "topic", "partition"]
    where = (pc.field("kind") == "current") & pc.field("topic").is_valid()
    rows = state.tables.read("assignments", columns, where)
    rows = rows.filter(pc.is_in(rows["topic"], state.topics_asked(rows["topic"])))
    for row in rows.to_pylist():
        member = members.get(row["group_id"], {}).get(row["member_id"], Member(row["member_id"]))
        found[row["group_id"]][row["topic"], row["partition"]] = member
    return found


def _committed(
    state: ReplayedWorkspace, topics: Mapping[str, Row]
) -> dict[str, dict[Partition, Committed]]:
    found: dict[str, dict[Partition, Committed]] = defaultdict(dict)
    columns = [
        *("group_id", "topic", "partition", "topic_id", "committed_offset", "commit_timestamp"),
        *("complete", "missing"),
    ]
    for row in state.tables.read("committed_offsets", columns).to_pylist():
        found[row["group_id"]][row["topic"], row["partition"]] = Committed(
            row["committed_offset"] if row["complete"] else None,
            _is_of_other_topic(row, topics.get(row["topic"])),
            row["missing"],
        )
    return found


def _is_of_other_topic(row: Row, topic: Row | None) -> bool:
    """Return whether an offset was committed for another topic than the one that is there now."""
    if topic is None:
        return False
    if row["topic_id"] is not None and topic["topic_id"] is not None:
        return bool(row["topic_id"] != topic["topic_id"])
    created, committed = topic["created_at"], row["commit_timestamp"]
    return created is not None and committed is not None and committed < created


def _logs(ends: Iterable[Row], topics: Mapping[str, Row]) -> dict[Partition, Log]:
    found = {}
    for row in ends:
        created = topics.get(row["topic"], {}).get("created_at")
        at = None if created is None else _milliseconds(created)
        key = row["topic"], row["partition"]
        found[key] = Log(row["log_start_offset"], row["log_end_offset"], at)
    for name, topic in topics.items():
        if topic["created_at"] is not None:
            for number in range(topic["partitions"] or 0):
                at = _milliseconds(topic["created_at"])
                found.setdefault((name, number), Log(created_at=at))
    return found


def owners_then(state: ReplayedWorkspace, checkpoints: Sequence[Checkpoint]) -> OwnersThen:
    """Return who had which partitions when checkpoints were made.

    Only where contributions name different offsets is it asked for.
    """
    doubtful = [each for each in checkpoints if each.conflicts and each.made_at is not None]
    if not doubtful:
        return OwnersThen({}, {})
    places = {(each.key.group_id or "", place) for each in doubtful for place in each.conflicts}
    owned: dict[tuple[str, Partition], list[Owned]] = defaultdict(list)
    for part in state.tables.batches("assignment_history", _OWNED):
        for row in part.filter(pc.equal(part["kind"], "current")).to_pylist():
            group, place = str(row["group_id"]), (row["topic"], row["partition"])
            if (group, place) in places:
                owned[group, place].append(_owned(row))
    made_at: dict[CheckpointKey, int] = {each.key: each.made_at or 0 for each in doubtful}
    return OwnersThen(owned, made_at)


def _owned(row: Row) -> Owned:
    start, end = row["from_timestamp"], row["to_timestamp"]
    return Owned(
        tuple(each for each in (row["group_instance_id"], row["client_id"]) if each),
        None if start is None else _milliseconds(start),
        None if end is None else _milliseconds(end),
    )


def _milliseconds(time: datetime) -> int:
    return round(time.timestamp() * 1000)


# Checkpoints kept outside of Kafka: which are complete, and whether offsets were committed so.


@dataclass(frozen=True)
class RegionSettings:
    """Which checkpoints are judged, and what neither they nor the dump tell.

    Attributes:
        contributions: What operators contributed to checkpoints.
        initial_offsets: By partition, the offset that its group begins with.
        start_position: Where reading starts in a partition that nothing else tells of: beginning,
            end or committed.
        end_offsets: A file that says where logs ended.
    """

    contributions: tuple[Contribution, ...] = ()
    initial_offsets: Mapping[Partition, int] | None = None
    start_position: str | None = None
    end_offsets: str | None = None


def region(state: ReplayedWorkspace, settings: RegionSettings) -> Answer:
    """Return which checkpoints are complete, and hold them against what their groups committed.

    Of the groups of a workspace only those are looked at that checkpoints are of.

    Raises:
        InputUnreadableError: The file is not what it has to be.
        WorkspaceError: A table cannot be read.
    """
    rules = region_rules(state.settings.from_file.thresholds("region"))
    selection = Selection(
        groups=tuple(groups_of(settings.contributions)), topics=state.tables.selection.topics
    )
    state = replace(state, tables=StoredTables(state.tables.workspace, selection))
    groups = select_groups(state)
    checkpoints = checkpoints_of(settings.contributions, rules)
    owners = owners_then(state, checkpoints)
    checkpoints = checkpoints_of(settings.contributions, rules, owners)
    dumped = dumped_groups(state, checkpoints, settings)
    without_group = tuple(
        gap("checkpoint_without_group", checkpoint=each)
        for each in places_without_group(settings.contributions)
    )
    return _answer(evaluate_regions(checkpoints, dumped, rules), rules, groups, without_group)


def checkpoints_alone(contributions: Sequence[Contribution], rules: RegionRules) -> Answer:
    """Return what checkpoints say by themselves: nothing of drains, members and the seek plan."""
    return _answer(evaluate_regions(checkpoints_of(contributions, rules), None, rules), rules)


def _answer(
    judgement: Judgement,
    rules: RegionRules,
    groups: GroupSelection | None = None,
    doubts: tuple[Gap, ...] = (),
) -> Answer:
    of_regions = [each for region in judgement.regions for each in _doubts_of(region)]
    return Answer(
        tables_of(judgement),
        groups,
        (*doubts, *of_regions),
        summary={"findings": dict(rules.findings)},
    )


def _doubts_of(region: Region) -> list[Gap]:
    """Return what cannot be told of a group, each reason once with how often."""
    key = region.checkpoints[0].key
    name = key.group_id or key.source or "a group without a name"
    # A folder stands for the group that its checkpoints do not name.
    of_group = {"group_id": key.group_id, "checkpoint": None if key.group_id else name}
    found: list[Gap] = []
    unusable = next((each.unusable for each in region.checkpoints if each.unusable), None)
    if unusable is not None:
        found.append(gap("checkpoints_unusable", **of_group, why=unusable))
    elif region.latest is None:
        count = len(region.checkpoints)
        found.append(gap("no_checkpoint_complete", **of_group, checkpoints=count))
    elif region.latest.missing is not None and region.present is None:
        number = region.latest.key.sequence_id
        missing = region.latest.missing
        found.append(gap("checkpoint_incomplete", **of_group, sequence_id=number, why=missing))
    if region.present is None:
        return found
    drains = Counter(each.missing for each in region.drains or () if each.verdict == CANNOT_TELL)
    found += [
        gap("drains_unknown", **of_group, drains=count, why=why or "not known")
        for why, count in drains.items()
    ]
    plan = Counter(each.missing for each in region.plan if each.missing is not None)
    found += [
        gap("seek_plan_unknown", **of_group, partitions=count, why=why)
        for why, count in plan.items()
    ]
    why_unknown = region.present.matched.why_unknown
    if key.form in OF_REGIONS and why_unknown is not None:
        found.append(gap("operators_unmatched", **of_group, why=why_unknown))
    return found


REGION: Final = Question(
    name="region",
    needs=NEEDS,
    tables=TABLES,
    settings=RegionSettings,
    answer=region,
    is_audited=False,
)
