"""What was asked for when a dump was decoded, and what of it is there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Required, TypedDict

import msgspec

Pair = Annotated[list[int], msgspec.Meta(min_length=2, max_length=2)]
Triple = Annotated[list[int], msgspec.Meta(min_length=3, max_length=3)]


class Filters(TypedDict, total=False):
    """Options that leave records out: an empty list, and one that is absent, leave out nothing.

    Keys:
        topics: Internal topics that are read.
        partitions: Partitions of these that are read.
        groups: Groups that are kept, by name or pattern.
        exclude_groups: Groups that are left out, likewise.
        data_topics: Topics of which offsets are kept.
    """

    topics: list[str]
    partitions: list[int]
    groups: list[str]
    exclude_groups: list[str]
    data_topics: list[str]


class Options(Filters, total=False):
    """What a person asked for when a dump was decoded; `inspect` has some of it.

    Keys:
        prefer_copy: The copy whose lines are decoded, whichever survived.
        topic_partition: Whose a segment is that lies outside a partition directory.
        strict_high_watermark: Records above the high watermark were left out.
        keep_below_log_start: Records below the log start were kept.
        value_encoding: How archived rows write keys and values, where that was said.
    """

    prefer_copy: str | None
    topic_partition: str | None
    strict_high_watermark: bool
    keep_below_log_start: bool
    value_encoding: str | None


class IgnoredEntry(TypedDict):
    """A file or folder that is not read."""

    name: str
    why: str


class CopyEntry(TypedDict, total=False):
    """The disks of one broker.

    Keys:
        clean_shutdown: The broker ended in order; null where no whole log directory is given.
        log_dirs: Paths or URIs.
        internal_partitions: How many.
        data_partitions: How many; `data_topics` counts their topics.
    """

    name: Required[str]
    node_id: int | None
    cluster_id: str | None
    clean_shutdown: bool | None
    log_dirs: list[str]
    internal_partitions: int
    data_partitions: int
    data_topics: int
    ignored: list[IgnoredEntry]


def cluster_ids(copies: Iterable[CopyEntry]) -> list[str]:
    """Return the ids of the clusters that copies are of, in order; none where no copy says its."""
    return sorted({id_ for each in copies if (id_ := each.get("cluster_id"))})


class DataTopicEntry(TypedDict):
    """A topic that is not decoded; `partitions` are the numbers that some copy holds."""

    topic: str
    topic_id: str | None
    partitions: list[int]


class DataPartitionEntry(TypedDict, total=False):
    """Where one copy of a partition of such a topic starts and ends.

    Keys:
        log_start_offset: Null where files before the first one are missing.
        log_end_offset: A lower bound where it is not `is_exact`.
        leader_epochs: Epoch and first offset of each.
    """

    topic: Required[str]
    partition: Required[int]
    copy: str
    topic_id: str | None
    log_start_offset: int | None
    log_end_offset: int
    is_exact: bool
    leader_epochs: list[Pair]
