"""What a cluster answers of its groups: state, members, assignments, committed and share offsets.

Each coordinator is asked for its groups, many at once, by the requests of their type; answers are
rows of `cluster_answers`, a field each, so that what a dump says can be laid beside them.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from analytics.snapshot.answer_file import AnswerRows, Place
from analytics.snapshot.cluster_connection import (
    ClusterConnection,
    NotAnsweredError,
    error_name,
    is_passing,
)
from analytics.snapshot.group_messages import message

if TYPE_CHECKING:
    from analytics.snapshot.answer_file import AnswerWriter
    from schemas.snapshot import ListedGroup

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
        for field in ("group_instance_id", "client_id", "client_host"):
            rows.add(
                "member", name, field, getattr(each, field, None), at=(each.member_id, None, None)
            )
        if group.protocol_type == CONSUMER and each.member_assignment:
            _assigned(name, each.member_id, _parsed(each.member_assignment), rows)


def _parsed(assignment: bytes) -> Iterator[tuple[str, Sequence[int]]]:
    from kafka.protocol.consumer.metadata import (  # noqa: PLC0415 - optional
        ConsumerProtocolAssignment,
    )

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
        for field in ("client_id", "client_host", "rack_id"):
            rows.add("member", name, field, getattr(each, field), at=(each.member_id, None, None))
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
