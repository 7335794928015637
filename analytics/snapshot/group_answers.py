"""What a cluster answers of its groups: state, members, assignments, committed and share offsets.

Each coordinator is asked for its groups, many at once, by the requests of their type; answers are
rows of `cluster_answers`, a field each, so that what a dump says can be laid beside them.

The file of what a cluster answered of its groups: rows of `cluster_answers`, as Arrow has them.

It is written as answers come, some groups at a time, and read whole columns at a time.

How a cluster is asked for its groups: what kafka-python has, and what it lacks.

It lacks the messages by which groups of newer protocols are described; `messages` has them in the
form that it reads, and its own classes read and write them. Names, types and api keys are Kafka's
(``clients/src/main/resources/common/message``), of KIP-848, KIP-932 and KIP-1071.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyarrow import ipc

from analytics.dump.files.cluster_answers import ANSWERS
from analytics.snapshot.cluster_connection import (
    ClusterConnection,
    NotAnsweredError,
    error_name,
    is_passing,
)

if TYPE_CHECKING:
    from schemas.snapshot import ListedGroup

    Clock = Callable[[], datetime]


_NAMES: Final = tuple(each for each in ANSWERS.names if each not in ("look", "answered_at"))
Place = tuple[str | None, str | None, int | None]
"""Member, topic and partition."""
NOWHERE: Final[Place] = (None, None, None)


@dataclass
class AnswerRows:
    """Rows that were answered together.

    Attributes:
        columns: By name, without `look` and `answered_at`.
    """

    columns: dict[str, list[Any]] = field(default_factory=lambda: {name: [] for name in _NAMES})

    def add(
        self,
        kind: str,
        group: str | None,
        name: str,
        value: str | None,
        *,
        at: Place = NOWHERE,
        error: str | None = None,
    ) -> None:
        """Add a row; there is none where nothing, or an empty text, was answered and none refused.

        Args:
            kind: What it is about.
            group: The group.
            name: Of the field.
            value: The answer.
            at: Member, topic and partition, as far as it is about one.
            error: Why there is none.
        """
        if not value and error is None:
            return
        row = (kind, group, *at, name, value, error)
        for column, each in zip(self.columns.values(), row, strict=True):
            column.append(each)


class AnswerWriter:
    """Writes rows of one look at the cluster, each with the time when they were all there."""

    def __init__(self, writer: ipc.RecordBatchFileWriter, clock: Clock, look: int) -> None:
        self._writer, self._clock, self._look = writer, clock, look

    def rows(self) -> AnswerRows:
        """Return rows to be filled."""
        return AnswerRows()

    def write(self, rows: AnswerRows) -> None:
        """Write rows."""
        count = len(rows.columns[_NAMES[0]])
        columns = {
            "look": [self._look] * count,
            "answered_at": [self._clock()] * count,
            **rows.columns,
        }
        batch = pa.RecordBatch.from_pydict(columns, schema=ANSWERS)
        if batch.num_rows:
            self._writer.write_batch(batch)


@contextmanager
def answer_writer(path: Path, clock: Clock, look: int) -> Iterator[AnswerWriter]:
    """Hand over what writes a file of answers."""
    options = ipc.IpcWriteOptions(compression="zstd")
    with ipc.new_file(str(path), ANSWERS, options=options) as writer:
        yield AnswerWriter(writer, clock, look)


_PACKAGE: Final = f"{__package__}.messages"
LACKING: Final = (
    "ConsumerGroupDescribe",
    "ShareGroupDescribe",
    "StreamsGroupDescribe",
    "DescribeShareGroupOffsets",
)
"""Names of those that are in `messages`."""


@cache
def message(name: str) -> Any:  # noqa: ANN401 - untyped library
    """Return a request of `LACKING` by its name, and have its response read.

    A class is named as its message is: that is where the library looks for it.
    """
    from kafka.protocol.api_message import ApiMessage  # noqa: PLC0415 - optional

    request, response = (
        type(ApiMessage)(f"{name}{end}", (ApiMessage,), {"__slots__": ()}, load_json=_PACKAGE)
        for end in ("Request", "Response")
    )
    # The library keeps only a weak reference to what reads a response.
    _RESPONSES.append(response)
    return request


_RESPONSES: Final[list[Any]] = []


CLASSIC, CONSUMER, SHARE, STREAMS = "classic", "consumer", "share", "streams"
LISTED, DESCRIPTION, OFFSETS = "listed", "description", "offsets"
"""Fields of rows that say whether a question was answered."""
ANSWERED: Final = "answered"
_DESCRIBED_BY: Final = {
    CONSUMER: "ConsumerGroupDescribe",
    SHARE: "ShareGroupDescribe",
    STREAMS: "StreamsGroupDescribe",
}
_AT_ONCE: Final = 500
"""Groups in one request."""
_TRIES: Final = 5
_BETWEEN: Final = 0.3
_NO_ANSWER: Final = "no answer"
_FIRST_OF_MANY: Final = 8
_LAST_BY_NAME: Final = 9
"""Versions of OffsetFetch: the first for several groups, and the last that names topics."""


@dataclass(frozen=True)
class AskedGroup:
    """A group that is asked for.

    Attributes:
        group_id: Its name.
        group_type: Kafka's word; null before 3.8, when there were classic ones only.
        coordinator: Node id.
        is_listed: Its coordinator lists it.
    """

    group_id: str
    group_type: str | None
    coordinator: int
    is_listed: bool = True

    @property
    def asked_as(self) -> str:
        """The type by whose requests it is asked."""
        return (self.group_type or CLASSIC).lower()


def asked_groups(groups: Iterable[ListedGroup]) -> Iterator[AskedGroup]:
    """Yield listed groups as what is asked for."""
    for each in groups:
        yield AskedGroup(each.group_id, each.group_type, each.coordinator)


def write_group_answers(
    cluster: ClusterConnection, groups: Iterable[AskedGroup], writer: AnswerWriter
) -> None:
    """Ask for groups and write what is answered, batch by batch."""
    by_place: dict[tuple[int, str], list[AskedGroup]] = defaultdict(list)
    for each in groups:
        by_place[each.coordinator, each.asked_as].append(each)
    for (node, group_type), asked in sorted(by_place.items()):
        for first in range(0, len(asked), _AT_ONCE):
            batch = asked[first : first + _AT_ONCE]
            rows = writer.rows()
            for each in batch:
                if each.is_listed:
                    rows.add("group", each.group_id, LISTED, each.asked_as)
            names = [each.group_id for each in batch]
            _describe(cluster, node, group_type, names, rows)
            if group_type == SHARE:
                _share_offsets(cluster, node, names, rows)
            else:
                _committed_offsets(cluster, node, names, rows)
            writer.write(rows)


_Answered = Iterable[tuple[str, int, Any]]
"""Of each group its name, an error code, and what was answered."""
_Question = Callable[[Sequence[str]], _Answered]
_Write = Callable[[str, Any, AnswerRows], None]
"""Adds rows of what was answered of a group."""


def _write_answers(
    ask: _Question, names: Sequence[str], question: str, rows: AnswerRows, write: _Write
) -> None:
    """Write what is answered of groups, which were answered for, and why others were not.

    Those that a coordinator answers for later are asked for again.
    """
    errors = dict.fromkeys(names, _NO_ANSWER)
    left = list(names)
    for tries_left in reversed(range(_TRIES)):
        again = []
        try:
            for name, code, answer in ask(left):
                if name not in errors:
                    continue
                if code:
                    errors[name] = error_name(code)
                    again += [name] * (is_passing(code) and tries_left > 0)
                    continue
                errors[name] = _written(write, name, answer, rows)
                if not errors[name]:
                    del errors[name]
                    rows.add("group", name, question, ANSWERED)
        except NotAnsweredError as error:
            errors |= dict.fromkeys(set(left) & errors.keys(), str(error))
            again = [each for each in left if each in errors] * (
                error.is_passing and tries_left > 0
            )
        left = again
        if not left:
            break
        time.sleep(_BETWEEN)
    for name, why in errors.items():
        rows.add("group", name, question, None, error=why)


def _written(write: _Write, name: str, answer: Any, rows: AnswerRows) -> str:  # noqa: ANN401
    """Write an answer; return why it cannot be, empty where it was."""
    try:
        write(name, answer, rows)
    except (TypeError, AttributeError, ValueError) as error:
        # Bytes that are no answer may be read as one with nothing where a list has to be.
        return f"what cannot be read ({error})"
    return ""


def _describe(
    cluster: ClusterConnection, node: int, group_type: str, names: Sequence[str], rows: AnswerRows
) -> None:
    if group_type == CLASSIC:
        ask = _asks(cluster, node, _classic_request)
        _write_answers(ask, names, DESCRIPTION, rows, _classic_rows)
        return
    kind = _DESCRIBED_BY.get(group_type)
    if kind is None:
        for name in names:
            why = f"groups of type {group_type} are described by no request that is known here"
            rows.add("group", name, DESCRIPTION, None, error=why)
        return
    request = message(kind)

    def make(left: Sequence[str]) -> Any:  # noqa: ANN401 - untyped library
        return request(group_ids=list(left), include_authorized_operations=False)

    _write_answers(_asks(cluster, node, make), names, DESCRIPTION, rows, _group_rows)


def _asks(cluster: ClusterConnection, node: int, make: Callable[[Sequence[str]], Any]) -> _Question:
    def ask(names: Sequence[str]) -> _Answered:
        response = cluster.ask(make(names), node)
        return [(each.group_id, each.error_code, each) for each in response.groups or ()]

    return ask


def _classic_request(names: Sequence[str]) -> Any:  # noqa: ANN401 - untyped library
    from kafka.protocol.admin import DescribeGroupsRequest  # noqa: PLC0415 - optional

    return DescribeGroupsRequest(groups=list(names), include_authorized_operations=False)


def _classic_rows(name: str, group: Any, rows: AnswerRows) -> None:  # noqa: ANN401
    rows.add("group", name, "state", group.group_state)
    rows.add("group", name, "protocol_type", group.protocol_type or None)
    rows.add("group", name, "protocol", group.protocol_data or None)
    for each in group.members:
        rows.add("member", name, "member_id", each.member_id, at=(each.member_id, None, None))
        for attribute in ("group_instance_id", "client_id", "client_host"):
            rows.add(
                "member",
                name,
                attribute,
                getattr(each, attribute, None),
                at=(each.member_id, None, None),
            )
        if group.protocol_type == CONSUMER and each.member_assignment:
            _assigned(name, each.member_id, _parsed(each.member_assignment), rows)


def _parsed(assignment: bytes) -> Iterator[tuple[str, Sequence[int]]]:
    from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment  # noqa: PLC0415 - optional

    try:
        parsed = ConsumerProtocolAssignment.decode(bytes(assignment))
    except Exception:  # noqa: BLE001 - clients write it, and of foreign bytes it raises anything
        return
    for each in parsed.assigned_partitions or ():
        yield each.topic, each.partitions


def _group_rows(name: str, group: Any, rows: AnswerRows) -> None:  # noqa: ANN401
    rows.add("group", name, "state", group.group_state)
    rows.add("group", name, "epoch", str(group.group_epoch))
    rows.add("group", name, "assignment_epoch", str(group.assignment_epoch))
    rows.add("group", name, "protocol", getattr(group, "assignor_name", None) or None)
    for each in group.members:
        rows.add("member", name, "member_id", each.member_id, at=(each.member_id, None, None))
        rows.add(
            "member", name, "member_epoch", str(each.member_epoch), at=(each.member_id, None, None)
        )
        static = getattr(each, "instance_id", None)
        rows.add("member", name, "group_instance_id", static, at=(each.member_id, None, None))
        for attribute in ("client_id", "client_host", "rack_id"):
            rows.add(
                "member", name, attribute, getattr(each, attribute), at=(each.member_id, None, None)
            )
        topics = getattr(each.assignment, "topic_partitions", ())
        given = ((topic.topic_name, topic.partitions) for topic in topics)
        _assigned(name, each.member_id, given, rows)


def _assigned(
    name: str, member: str, partitions: Iterable[tuple[str, Sequence[int]]], rows: AnswerRows
) -> None:
    for topic, numbers in partitions:
        for number in numbers:
            rows.add("assignment", name, "assigned", "yes", at=(member, topic, number))


def _committed_offsets(
    cluster: ClusterConnection, node: int, names: Sequence[str], rows: AnswerRows
) -> None:
    from kafka.protocol.consumer import OffsetFetchRequest  # noqa: PLC0415 - optional

    of_group = OffsetFetchRequest.OffsetFetchRequestGroup

    def ask(left: Sequence[str]) -> _Answered:
        request = OffsetFetchRequest(
            groups=[of_group(group_id=each, topics=None) for each in left],
            require_stable=False,
            min_version=_FIRST_OF_MANY,
            max_version=_LAST_BY_NAME,
        )
        try:
            response = cluster.ask(request, node)
        except NotAnsweredError as error:
            if not _is_too_old(error):
                raise
            return _one_by_one(cluster, node, left)
        return [(each.group_id, each.error_code, each.topics) for each in response.groups or ()]

    _write_answers(ask, names, OFFSETS, rows, _offset_rows)


def _offset_rows(name: str, topics: Any, rows: AnswerRows) -> None:  # noqa: ANN401
    for topic in topics:
        for each in topic.partitions:
            place: Place = (None, topic.name, each.partition_index)
            if each.error_code:
                why = error_name(each.error_code)
                rows.add("offset", name, "committed_offset", None, error=why, at=place)
            elif each.committed_offset >= 0:
                rows.add("offset", name, "committed_offset", str(each.committed_offset), at=place)
                epoch = each.committed_leader_epoch
                if epoch is not None and epoch >= 0:
                    rows.add("offset", name, "committed_leader_epoch", str(epoch), at=place)
                rows.add("offset", name, "metadata", each.metadata or None, at=place)


def _is_too_old(error: NotAnsweredError) -> bool:
    """Return whether a broker does not have the version of a request."""
    return "IncompatibleBrokerVersion" in str(error) or "UnsupportedVersion" in str(error)


def _one_by_one(cluster: ClusterConnection, node: int, names: Iterable[str]) -> _Answered:
    """Ask a broker before 3.0 for each group's offsets."""
    from kafka.protocol.consumer import OffsetFetchRequest  # noqa: PLC0415 - optional

    for each in names:
        request = OffsetFetchRequest(
            group_id=each, topics=None, min_version=2, max_version=_FIRST_OF_MANY - 1
        )
        response = cluster.ask(request, node)
        yield each, response.error_code, response.topics


def _share_offsets(
    cluster: ClusterConnection, node: int, names: Sequence[str], rows: AnswerRows
) -> None:
    request = message("DescribeShareGroupOffsets")
    of_group = request.DescribeShareGroupOffsetsRequestGroup

    def make(left: Sequence[str]) -> Any:  # noqa: ANN401 - untyped library
        return request(groups=[of_group(group_id=each, topics=None) for each in left])

    _write_answers(_asks(cluster, node, make), names, OFFSETS, rows, _share_rows)


def _share_rows(name: str, group: Any, rows: AnswerRows) -> None:  # noqa: ANN401
    for topic in group.topics:
        for each in topic.partitions:
            place: Place = (None, topic.topic_name, each.partition_index)
            if each.error_code:
                why = error_name(each.error_code)
                rows.add("share_partition", name, "start_offset", None, error=why, at=place)
            elif each.start_offset >= 0:
                rows.add("share_partition", name, "start_offset", str(each.start_offset), at=place)
