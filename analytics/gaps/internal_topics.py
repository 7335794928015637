"""What a workspace holds of internal topics at the instant asked about, and what it is without."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from analytics.decode.selection import is_name, names_wanted
from analytics.dump.inspection.found_losses import Loss, lacks
from analytics.engine.key_places import homes_in
from analytics.epoch_times import milliseconds_of
from analytics.gaps.gap import Gap, gap
from analytics.replay.dump.choices import archived, are_elections_clean, assumed_in
from analytics.replay.log.ends_at import Ends, ends_at, leading, losses_at
from analytics.replay.log.rules import replay_rules
from analytics.replay.log.topic_homes import home_of, internal_partition
from analytics.replayed.given_settings import PARTITIONS_SETTINGS
from analytics.tables.stored_tables import StoredTables
from schemas import CONSUMER_OFFSETS, record_types

if TYPE_CHECKING:
    from analytics.decode.selection import Selection
    from analytics.replayed.replayed_workspace import ReplayedWorkspace
    from schemas.manifest import Filters, Manifest, PartitionEntry

# Parts that a workspace is without: left out by whoever made it, or not to be read at all.
#
# A workspace made of some groups or topics only answers for what it holds. Of the rest it knows
# nothing: that is not "none".

OPTIONS: Final = {
    "groups": "--group",
    "exclude_groups": "--exclude-group",
    "data_topics": "--topic",
    "topics": "--topics",
    "partitions": "--partitions",
}
"""What filters are called in manifests, and on the command line."""


_OF_GROUPS: Final = ("groups", "exclude_groups")


def group_filters(manifest: Manifest) -> dict[str, list[Any]]:
    """Return those of `filters_of` that leave out records of groups."""
    return {name: each for name, each in filters_of(manifest).items() if name in _OF_GROUPS}


def loading_unread(manifest: Manifest) -> str | None:
    """Return in words that records that stop a coordinator may be of groups that were left out."""
    filters = group_filters(manifest)
    if not filters:
        return None
    options = " ".join(_as_options(name, each) for name, each in filters.items())
    return (
        f"whether records of other groups stop brokers from loading {CONSUMER_OFFSETS} cannot be "
        f"told: this workspace was made with {options}"
    )


def elections_unread(manifest: Manifest) -> Gap | None:
    """Return that elections may stand in records of groups that a workspace was made without.

    The leader epoch of a record shows that its coordinator was elected, whichever group the record
    is of.
    """
    filters = group_filters(manifest)
    if not filters:
        return None
    options = " ".join(_as_options(name, each) for name, each in filters.items())
    return gap("elections_unread", topic=CONSUMER_OFFSETS, filters=options)


def removals_unread(manifest: Manifest) -> Gap | None:
    """Return that causes of removals may stand in records that a workspace was made without."""
    filters = group_filters(manifest)
    if not filters:
        return None
    options = " ".join(_as_options(name, each) for name, each in filters.items())
    return gap("removals_of_others_unread", topic=CONSUMER_OFFSETS, filters=options)


def filters_of(manifest: Manifest) -> dict[str, list[Any]]:
    """Return what the workspace was limited to, when it was decoded and when it was replayed."""
    made = [by_option(each) for each in _filters_of(manifest)]
    return {
        name: list(dict.fromkeys(value for each in made for value in each[name]))
        for name in OPTIONS
        if any(each[name] for each in made)
    }


def by_option(filters: Filters) -> dict[str, Sequence[Any]]:
    """Return what each of `OPTIONS` says in filters of a manifest: nothing where it is absent."""
    return {
        "groups": filters.get("groups") or (),
        "exclude_groups": filters.get("exclude_groups") or (),
        "data_topics": filters.get("data_topics") or (),
        "topics": filters.get("topics") or (),
        "partitions": filters.get("partitions") or (),
    }


def filters_sentence(filters: Mapping[str, Sequence[Any]]) -> str | None:
    """Return in words what a workspace was made with; None where with everything."""
    if not filters:
        return None
    said = " ".join(f"{OPTIONS[name]} {each}" for name, some in filters.items() for each in some)
    return f"this workspace was made with {said}: it knows of nothing else"


def topics_held(manifest: Manifest, topics: Iterable[str | None]) -> list[str]:
    """Return the names of topics among these whose offsets a workspace was made with.

    Of the others it has no offset: that is not "never committed".
    """
    names = [each for each in topics if each is not None]
    for made in _filters_of(manifest):
        names = names_wanted(names, made.get("data_topics") or ())
    return names


def topics_left_out(manifest: Manifest, topics: Iterable[str | None]) -> dict[str, str]:
    """Return those of these topics that a workspace was made without, each with the reason."""
    names = {each for each in topics if each is not None}
    return {
        name: f"offsets of {name} were left out by --topic when this was made"
        for name in sorted(names - set(topics_held(manifest, names)))
    }


def has_topic_filter(manifest: Manifest) -> bool:
    """Return whether a workspace has the offsets of some topics only."""
    return any(made.get("data_topics") for made in _filters_of(manifest))


def are_some_topics(manifest: Manifest, selection: Selection) -> bool:
    """Return whether offsets of some topics only are looked at: no sum of them is a whole group's.

    Args:
        manifest: Of the workspace that is asked.
        selection: What the question is about.
    """
    return bool(selection.topics) or has_topic_filter(manifest)


def left_out_of(manifest: Manifest, selection: Selection) -> list[Gap]:
    """Return what a question is about and the workspace lacks, a gap for each filter.

    Groups that are asked for by name and lie within the filters are answered for in full.

    Args:
        manifest: Of the workspace that is asked.
        selection: What the question is about.
    """
    return list(
        dict.fromkeys(each for made in _filters_of(manifest) for each in _lacking(made, selection))
    )


def _lacking(filters: Filters, selection: Selection) -> Iterator[Gap]:
    groups, excluded = filters.get("groups") or (), filters.get("exclude_groups") or ()
    topics, partitions = filters.get("data_topics") or (), filters.get("partitions") or ()
    are_names = bool(selection.groups) and all(map(is_name, selection.groups))
    is_held = are_names and len(names_wanted(selection.groups, groups, excluded)) == len(
        set(selection.groups)
    )
    if not is_held:
        if groups and not (selection.groups and set(selection.groups) <= set(groups)):
            yield gap("other_groups_left_out", filters=_as_options("groups", groups))
        if not set(excluded) <= set(selection.exclude_groups):
            yield gap("groups_excluded", filters=_as_options("exclude_groups", excluded))
    if topics and not (selection.topics and set(selection.topics) <= set(topics)):
        yield gap("other_topics_left_out", filters=_as_options("data_topics", topics))
    if partitions and not are_names:
        # Of a group that is named it is told where it lies.
        yield gap("other_partitions_left_out", filters=_as_options("partitions", partitions))


def _as_options(name: str, values: Sequence[Any]) -> str:
    return " ".join(f"{OPTIONS[name]} {each}" for each in values)


def _filters_of(manifest: Manifest) -> tuple[Filters, ...]:
    """Return the filters of the decoding, and those of the replay."""
    replay = manifest.get("replay")
    return manifest["options"], {} if replay is None else replay.get("filters", {})


def is_unread(manifest: Manifest) -> bool:
    """Return whether a file was unreadable, or records of a partition are lost and none is left."""
    return bool(manifest.get("unreadable") or _nothing_left(manifest))


def _nothing_left(manifest: Manifest) -> list[str]:
    """Return the partitions of which records are lost and none could be read."""
    return [
        f"{each['topic']}-{each['partition']}"
        for each in leading(manifest)
        if each.get("losses") and each.get("batches") == 0 and not _is_filled(manifest, each)
    ]


def _is_filled(manifest: Manifest, row: PartitionEntry) -> bool:
    """Return whether another copy gave records to the line of a partition."""
    given = manifest.get("filled") or ()
    return any(
        (each["topic"], each["partition"], each["line"]) == (row["topic"], row["partition"], "")
        for each in given
    )


# Internal partitions that a broker does not load to their end, and what it answers then.
#
# What the tables hold of such groups is what their records say, which is more than the broker knew.

TABLE = "load_faults"
_FAILS = {
    "refused": "answers for none of the groups",
    "empty": "answers as if there were none of the groups and offsets",
}
_STOPS, _PATCHES, _MISSING = "stops_loading", "patch_releases", "missing"
_COLUMNS = (
    *("topic", "coordinator_partition", "record_offset"),
    *("group_id", "record_type", "fault", "detail", _STOPS),
)


def refused_partitions(
    tables: StoredTables, release: str, partitions: Collection[int] | None = None
) -> list[str]:
    """Return a sentence for each partition that is refused, about the first record that is why.

    Where it cannot be told whether a record before that stops loading, a sentence says so.

    Args:
        tables: Of a workspace, of all groups; nothing is said of one without the table.
        release: The release by whose rules it was replayed.
        partitions: Those of `__consumer_offsets` that are asked about; None is all of all topics.
    """
    if not tables.has(TABLE):
        return []
    # A workspace of an older groupscope knows no patch releases, and has no marks.
    newer = {_PATCHES, _MISSING} & set(tables.schema(TABLE).names)
    columns = [*_COLUMNS, *sorted(newer)]
    may_stop = pc.field(_STOPS) | pc.field(_STOPS).is_null()
    found = tables.read(TABLE, columns, may_stop)
    firsts: dict[tuple[str, int, bool], dict[str, Any]] = {}
    for each in found.sort_by("record_offset").to_pylist():
        topic, partition = each["topic"], each["coordinator_partition"]
        if partitions is not None and (topic != CONSUMER_OFFSETS or partition not in partitions):
            continue
        if (topic, partition, True) not in firsts:
            firsts.setdefault((topic, partition, each[_STOPS] is not None), each)
    in_order = sorted(firsts, key=lambda each: (*each[:2], firsts[each]["record_offset"]))
    return [_sentence(firsts[each], release) for each in in_order]


def _sentence(first: dict[str, Any], release: str) -> str:
    partition = f"{first['topic']}-{first['coordinator_partition']}"
    of_group = "" if first["group_id"] is None else f" of group {first['group_id']}"
    fails = _FAILS[replay_rules(release).failed_load]
    where = (
        f"at offset {first['record_offset']}, {_record(first)}{of_group}: "
        f"{first['detail'] or first['fault']} ({first['fault']})"
    )
    if first[_STOPS] is not None:
        return (
            f"by the rules of Kafka {release} a broker {fails} of {partition}: it fails to load "
            f"it {where}"
        )
    if first.get(_MISSING):
        return (
            f"cannot tell whether a broker of Kafka {release} {fails} of {partition}: as far as "
            f"the dump shows it fails to load it {where}, but {first[_MISSING]}"
        )
    patches = first.get(_PATCHES)
    if patches is None:
        return (
            f"cannot tell whether a broker {fails} of {partition}: one of Kafka {release} fails "
            f"to load it, a newer one may not, {where}"
        )
    return (
        f"cannot tell from Kafka {release} alone whether a broker {fails} of {partition}: "
        f"{patches} fails to load it {where}; name the patch release with --kafka-version"
    )


def _record(first: dict[str, Any]) -> str:
    number = first["record_type"]
    if number is None:
        return "a record that does not decode"
    return str(record_types(first["topic"])[number].name)


DEFAULT_PARTITIONS = 50
"""`offsets.topic.num.partitions` as Kafka has it by default."""

_MOST_PARTITIONS = 1000
_LIES_IN = "coordinator_partition"


def ends_of(state: ReplayedWorkspace, topic: str) -> Ends:
    """Return where the records of a topic end that count at the instant."""
    offsets = {}
    for name, end in state.as_of["offsets"].items():
        of_topic, _, number = name.rpartition("-")
        offsets[of_topic, int(number)] = end
    time = state.as_of["time"]
    time_ms = None if time is None else milliseconds_of(datetime.fromisoformat(time))
    return ends_at(state.source, state.manifest, time_ms, (topic,), offsets)


def losses_of(state: ReplayedWorkspace, topic: str, ends: Ends) -> Mapping[int, Sequence[Loss]]:
    """Return by partition of a topic the losses that matter at the instant.

    Args:
        state: A replayed workspace.
        topic: An internal topic.
        ends: As `ends_of` returns them.
    """
    are_clean = are_elections_clean(assumed_in(state.manifest))
    found = losses_at(state.manifest, ends, state.lines, are_elections_clean=are_clean)
    return {number: each for (of_topic, number), each in found.items() if of_topic == topic}


def lost_records(topic: str, partition: int, losses: Sequence[Loss]) -> dict[str, Any]:
    """Return where the losses of a partition lie, and what they are, as gaps have it.

    Returns:
        `topic`, `partition`, `from_offset`, `to_offset` (null where nobody knows it) and `lost`.
    """
    return {
        "topic": topic,
        "partition": partition,
        "from_offset": losses[0].first,
        "to_offset": None if losses[-1].is_open else losses[-1].end,
        "lost": lacks(topic, partition, losses),
    }


def partition_count(state: ReplayedWorkspace, topic: str) -> int | None:
    """Return how many partitions a topic has for clients; None where nothing says.

    What all records of the dump show counts (`analytics.engine.key_places`), whatever the instant:
    also before a topic was made, it is known how many partitions it was to have. Then come the
    metadata log at the instant and the settings of brokers (`partitions_set`).
    """
    shown = partitions_shown(state, topic)
    return partitions_set(state, topic) if shown is None else shown


def partitions_shown(state: ReplayedWorkspace, topic: str) -> int | None:
    """Return how many partitions a topic has, as the dump shows it; None where it does not."""
    homes = homes_in(state.manifest).get(topic)
    if homes is not None:
        return homes.partitions
    shown = state.manifest["replay"].get("partition_counts", {}).get(topic)
    if shown is not None:
        return shown
    everything = StoredTables(state.tables.workspace)
    named = everything.read("topics", ["partitions"], pc.field("topic") == topic)
    return max((each for each in named["partitions"].to_pylist() if each), default=None)


def partitions_set(state: ReplayedWorkspace, topic: str) -> int | None:
    """Return how many partitions brokers are set to make a topic with; None where that is not so.

    A topic is made with what was set then, and may get more later. So a partition that there would
    not be, and a group that would not lie where it does, contradict it.
    """
    count = state.partitions_by_settings(topic)
    if count is None:
        return None
    there = [each["partition"] for each in leading(state.manifest) if each["topic"] == topic]
    absent = state.manifest.get("absent_partitions", {}).get(topic, ())
    if max((*there, *absent), default=0) >= count:
        return None
    if topic != CONSUMER_OFFSETS:
        return count
    everything = StoredTables(state.tables.workspace)
    groups = pl.DataFrame(pl.from_arrow(everything.read("groups", ["group_id", _LIES_IN])))
    is_elsewhere = internal_partition(pl.col("group_id"), count) != pl.col(_LIES_IN)
    return None if groups.filter(is_elsewhere).height else count


def by_which_setting(state: ReplayedWorkspace, topic: str) -> str | None:
    """Return in words that the number of partitions of a topic is from a setting, or is not.

    None where the dump shows it, or no setting was given, or several that differ.
    """
    given = state.partitions_by_settings(topic)
    if given is None or partitions_shown(state, topic) is not None:
        return None
    setting = f"{PARTITIONS_SETTINGS[topic]}={given}"
    if partitions_set(state, topic) is None:
        return f"{setting} does not fit the partitions of {topic} that are there, and their groups"
    return (
        f"{topic} is taken to have {given} partitions: nothing in the dump says it, {setting} does"
    )


def partitions_that_fit(homes: Sequence[tuple[str, int]], least: int) -> int | None:
    """Return a number of partitions by which every group is where it is.

    Kafka's default goes before all others: a topic of 10 partitions and the first 10 of 50 look
    alike, and only the larger one says that there may be more.

    Args:
        homes: Groups and the partitions their records are in.
        least: The fewest partitions there can be.
    """
    candidates: list[int] = [DEFAULT_PARTITIONS, *range(least, _MOST_PARTITIONS + 1)]
    for each in candidates:
        if each >= least and all(home_of(group, each) == home for group, home in homes):
            return each
    return None


# Offsets of archived rows of which nobody can tell whether they took effect.

_MOST_UNDECIDED = 5
_IS_UNDECIDED: Final = {
    "committed_offsets": pc.field("via") == "unknown",
    "offset_history": pc.field("is_undecided"),
}
"""Which rows of a table are such."""


def undecided_of_all(state: ReplayedWorkspace) -> Gap | None:
    """Return how many committed offsets of which groups cannot be told; None where all can."""
    rows = _undecided_rows(state, "committed_offsets", None)
    groups = sorted(set(rows["group_id"].to_pylist()))
    if not groups:
        return None
    return gap(
        "offsets_of_groups_undecided",
        offsets=rows.num_rows,
        groups=tuple(groups[:_MOST_UNDECIDED]),
        more=max(len(groups) - _MOST_UNDECIDED, 0) or None,
    )


def undecided_of(
    state: ReplayedWorkspace, group: str, home: int | None
) -> tuple[list[Gap], list[Gap]]:
    """Return why the offsets of a group, and their history, cannot be told.

    Args:
        state: At the instant asked about.
        group: Its id.
        home: The partition of the offsets topic it belongs to.
    """
    if home not in archived(state.manifest, CONSUMER_OFFSETS):
        return [], []
    offsets = _undecided_rows(state, "committed_offsets", group).num_rows
    changes = _undecided_rows(state, "offset_history", group).num_rows
    return (
        [gap("offsets_undecided", group_id=group, offsets=offsets)] if offsets else [],
        [gap("history_undecided", group_id=group, changes=changes)] if changes else [],
    )


def _undecided_rows(state: ReplayedWorkspace, name: str, group: str | None) -> pa.Table:
    if not state.tables.has(name):
        return pa.table({"group_id": pa.array([], pa.string())})
    where = _IS_UNDECIDED[name]
    if group is not None:
        where &= pc.field("group_id") == group
    return state.tables.read(name, ["group_id"], where)
