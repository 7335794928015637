"""A partition of `__share_group_state` to readings of its records, and from where it is whole."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from analytics.decode.kip_932_text.share_readings import share_readings
from analytics.decode.tasks import SliceReport, select
from analytics.dump.batches.header_columns import Headers
from analytics.dump.batches.segment_stats import SegmentStats
from analytics.dump.copies.plan import PlanOptions, plan
from analytics.dump.files.data_topics import data_topics
from analytics.dump.files.inputs import recognize
from analytics.dump.files.model import MAX_OFFSET, Plan, Slice
from analytics.dump.inspection.manifest import surveys_of_slices
from analytics.dump.records.segment_reader import SegmentReader
from analytics.errors import InputNotRecognizedError, InputUnreadableError
from schemas import SHARE_GROUP_STATE
from schemas.dialects import KIP_932_TEXT

if TYPE_CHECKING:
    from analytics.dump.batches.damage import Damage
    from analytics.dump.batches.segment_stats import SegmentSurvey

_LOOKED_FOR: Final = (
    f"--dialect {KIP_932_TEXT} reads {SHARE_GROUP_STATE} of log directories, partition directories "
    "and segments"
)


@dataclass(frozen=True)
class ShareStateLog:
    """What a partition of the state topic holds.

    Attributes:
        partition: Its number.
        parts: As `share_readings` gives them, in the order of the log.
        complete_from: From this offset on every record is there; `MAX_OFFSET` where nothing tells.
        unread: Records that have no sound key; None of them is of a known share partition.
    """

    partition: int
    parts: Sequence[dict[str, Any]]
    complete_from: int
    unread: int


def state_plan(
    arguments: Sequence[str], topic_partition: str | None
) -> tuple[Plan, dict[str, str]]:
    """Return what is to be read, and names of topics by id.

    Raises:
        InputNotRecognizedError: There is no partition of the state topic.
    """
    found = recognize(arguments, topic_partition)
    if found.raw_rows or found.workspaces:
        wrong = [each.argument for each in found.raw_rows] + list(found.workspaces)
        raise InputNotRecognizedError(f"{wrong[0]}: {_LOOKED_FOR}")
    planned = plan(found, PlanOptions(topics=frozenset({SHARE_GROUP_STATE})))
    if not planned.slices:
        raise InputNotRecognizedError(
            f"{arguments[0]}: there is no {SHARE_GROUP_STATE} here. {_LOOKED_FOR}"
        )
    names = {each.topic_id: each.topic for each in data_topics(planned.copies) if each.topic_id}
    return planned, names


def state_slices(planned: Plan) -> dict[int, list[Slice]]:
    """Return the slices of the line that survived, by partition."""
    slices: dict[int, list[Slice]] = defaultdict(list)
    for each in planned.slices:
        if not each.line:
            slices[each.partition].append(each)
    return dict(sorted(slices.items()))


def read_state(planned: Plan, partition: int, slices: Sequence[Slice]) -> ShareStateLog:
    """Read a partition."""
    parts: list[dict[str, Any]] = []
    surveys: list[tuple[Slice, SegmentSurvey]] = []
    unread, is_readable = 0, True
    for each in slices:
        reader, stats = SegmentReader(each), SegmentStats(each.segment)
        damages: list[Damage] = []
        report = SliceReport(0)
        try:
            for chunk in reader.chunks():
                stats.add(Headers.of_batches(chunk.records.batches))
                damages += chunk.damages
                found, failed = share_readings(select(each, chunk.records, report))
                parts += found
                unread += failed
        except InputUnreadableError:
            is_readable = False
        surveys.append(
            (each, stats.survey(damages, reader.summary.tail, changed=reader.summary.shrank))
        )
    leading = planned.leading.get((SHARE_GROUP_STATE, partition))
    whole_from = [
        survey.complete_from
        for survey in surveys_of_slices(planned, surveys)
        if survey.partition.key == (SHARE_GROUP_STATE, partition)
        and survey.partition.copy == leading
    ]
    known = whole_from[0] if whole_from and is_readable else None
    return ShareStateLog(partition, parts, MAX_OFFSET if known is None else known, unread)


def offsets_of(part: dict[str, Any]) -> pa.Array:
    """Return the offsets of a part."""
    return pa.array(part["offset"], pa.int64())


def kinds_of(part: dict[str, Any]) -> pa.Array:
    """Return the record type of each record of a part."""
    return pa.array(np.full(len(part["offset"]), part["kind"], np.int8))
