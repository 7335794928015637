"""What was replayed, and evaluated."""

from __future__ import annotations

from typing import Required, TypedDict

from schemas.manifest.options import Filters, Pair


class AsOfEntry(TypedDict):
    """An instant: a time, null for the end of the dump, and end offsets by partition."""

    time: str | None
    offsets: dict[str, int]


class LineEntry(TypedDict):
    """A line that is followed instead of the surviving one; `leader` is whether its leader led."""

    topic: str
    partition: int
    copy: str
    diverges_at: int
    surviving_copy: str
    elected_at: str | None
    leader: str


class FrameEntry(TypedDict):
    """The two cuts of a partition whose times go back."""

    topic: str
    partition: int
    certain_end: int
    possible_end: int
    later_ms: int
    earlier_ms: int | None


class OnlyOfSomeReplays(TypedDict, total=False):
    """What a manifest says of some replays.

    Keys:
        frames: Where logs are cut whose times go back at the instant.
        decoded_in: The workspace that was replayed, where it is another one.
    """

    frames: list[FrameEntry]
    decoded_in: str


class EraEntry(TypedDict):
    """A time in which clients went by one number of partitions."""

    partitions: int
    first: str | None
    last: str | None


class HomesEntry(TypedDict):
    """Where keys of an internal topic are looked for at the instant.

    Keys:
        perhaps: The number that brokers may have gone by instead.
        misplaced: Partition, and how many keys of others lie in it.
        unreachable: How many keys lie in such partitions alone.
        before: The eras that are over, the newest first.
        since: From when on this number counts.
        disputed: Hash of a key of which nothing shows where it is looked for, and a partition.
        is_number_guessed: No number of partitions explains where all keys lie.
    """

    partitions: int
    perhaps: int | None
    misplaced: list[Pair]
    unreachable: int
    before: list[EraEntry]
    since: str | None
    disputed: list[Pair]
    is_number_guessed: bool


class Replay(OnlyOfSomeReplays, total=False):
    """Of which instant, and by which rules, state and history are.

    Keys:
        kafka_version_is_named: A person named it, be it the one that the dump shows.
        assumed: What a person vouches for.
        topic_ids: Topic, id and number of partitions (null where not said), as a person gave them.
        homes: Only of internal topics that were given more partitions, or hold strange keys.
        partition_counts: How many partitions internal topics have, as all records show it.
        rows: By table.
    """

    as_of: Required[AsOfEntry]
    lines: list[LineEntry]
    kafka_version: Required[str]
    kafka_version_is_named: bool
    assumed: list[str]
    topic_ids: list[list[str | int | None]]
    filters: Filters
    homes: dict[str, HomesEntry]
    partition_counts: dict[str, int]
    rows: dict[str, int]


class EvaluationEntry(TypedDict):
    """A table of answers that is kept: of which instant, by whose rules, how many rows."""

    as_of: AsOfEntry
    kafka_version: str
    rows: int
