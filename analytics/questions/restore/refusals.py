"""Reasons for which an offset is not given back, each a word and a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

INCOMPLETE = "incomplete"
PRESENT_UNKNOWN = "present_unknown"
MOVED_ON = "moved_on"
PENDING_TRANSACTION = "pending_transaction"
TOPIC_ID_CHANGED = "topic_id_changed"
TOPIC_GONE = "topic_gone"
TOPIC_UNKNOWN = "topic_unknown"
BELOW_LOG_START = "below_log_start"
ABOVE_LOG_END = "above_log_end"
DATA_DIVERGED = "data_diverged"
DATA_UNCERTAIN = "data_uncertain"
UNFIT_GROUP = "unfit_group"
SHARE_GROUP = "share_group"
UNFIT_NAME = "unfit_name"

UNSURE = (INCOMPLETE, PRESENT_UNKNOWN, TOPIC_UNKNOWN, DATA_UNCERTAIN)
"""Reasons that say that the dump cannot tell."""

LEGAL_TOPIC = r"^[a-zA-Z0-9._-]{1,249}$"
"""``Topic.validate``; another name would not come through the file."""

_AND = "; "


@dataclass(frozen=True)
class Refusal:
    """One reason.

    Attributes:
        word: What programs read.
        applies: By row, whether it applies (boolean; null is false).
        words: By row, the sentence.
    """

    word: str
    applies: pa.ChunkedArray
    words: pa.ChunkedArray


def sentence(*parts: Any) -> pa.ChunkedArray:  # noqa: ANN401 - text and columns
    """Join text and columns into one sentence a row; null where a column is null."""
    cast = [each if isinstance(each, str) else pc.cast(each, pa.string()) for each in parts]
    return pc.binary_join_element_wise(*cast, "")


def with_reasons(rows: pa.Table, refusals: list[Refusal]) -> pa.Table:
    """Add `reason` (words) and `detail` (sentences); null where nothing applies."""
    null = pa.scalar(None, pa.string())
    words, details = [], []
    for each in refusals:
        holds = pc.fill_null(each.applies, fill_value=False)
        words.append(pc.if_else(holds, each.word, null))
        details.append(pc.if_else(holds, pc.fill_null(each.words, each.word), null))
    for name, parts in (("reason", words), ("detail", details)):
        rows = rows.append_column(name, reduce(_both, parts))
    return rows


def _both(text: pa.ChunkedArray, more: pa.ChunkedArray) -> pa.ChunkedArray:
    """Join what is there of two texts a row."""
    return pc.coalesce(pc.binary_join_element_wise(text, more, _AND), text, more)


def refusals_of(rows: pa.Table, *, include_live: bool) -> list[Refusal]:
    """Return every reason an offset may be refused for.

    Args:
        rows: As `analytics.questions.restore.plan` joins them.
        include_live: Groups that have moved on since are rewound.
    """
    found = [*_of_knowledge(rows), *_of_group(rows), *_of_topic(rows), *_of_log(rows)]
    optional = {MOVED_ON, PRESENT_UNKNOWN} if include_live else set()
    return [each for each in found if each.word not in optional]


def refusals_of_pending(rows: pa.Table) -> list[Refusal]:
    """Return every reason an offset is refused for that was only pending.

    Args:
        rows: `untold_then`, `untold_now` and `pending`, which no row lacks.
    """
    return [*_of_knowledge(rows), _of_transactions(rows)]


def _of_transactions(rows: pa.Table) -> Refusal:
    return Refusal(PENDING_TRANSACTION, pc.is_valid(rows["pending"]), sentence(rows["pending"], ""))


def _of_knowledge(rows: pa.Table) -> list[Refusal]:
    then, now = rows["untold_then"], rows["untold_now"]
    return [
        Refusal(INCOMPLETE, pc.is_valid(then), sentence("cannot tell what it was: ", then)),
        Refusal(
            PRESENT_UNKNOWN,
            pc.is_valid(now),
            sentence("cannot tell whether it has moved on since: ", now),
        ),
    ]


def _of_group(rows: pa.Table) -> list[Refusal]:
    offset, present = rows["committed_offset"], rows["present_offset"]
    at = pc.fill_null(
        sentence(" (", pc.strftime(_ms(rows["present_timestamp"]), format=_TIME), "Z)"), ""
    )
    return [
        Refusal(
            MOVED_ON,
            pc.greater(present, offset),
            sentence("the group has since committed ", present, at, ": this would rewind it"),
        ),
        _of_transactions(rows),
        Refusal(UNFIT_GROUP, pc.is_valid(rows["unfit"]), sentence(rows["unfit"], "")),
    ]


def _of_topic(rows: pa.Table) -> list[Refusal]:
    then, now = rows["topic_id_then"], rows["topic_id_now"]
    gone = pc.and_(rows["knows_topics"], pc.is_null(now))
    beyond = pc.greater_equal(rows["partition"], rows["partitions_now"])
    legal = pc.match_substring_regex(rows["topic"], LEGAL_TOPIC)
    return [
        Refusal(
            TOPIC_ID_CHANGED,
            pc.not_equal(then, now),
            sentence("the topic was created again: its id was ", then, ", and is ", now),
        ),
        Refusal(
            TOPIC_ID_CHANGED,
            rows["has_several_ids"],
            sentence("the topic was created again: cannot tell which of its ids it has now", ""),
        ),
        Refusal(
            TOPIC_GONE,
            pc.or_(pc.fill_null(gone, fill_value=False), pc.fill_null(beyond, fill_value=False)),
            sentence("there is no partition ", rows["topic"], "-", rows["partition"], " any more"),
        ),
        Refusal(
            TOPIC_UNKNOWN,
            rows["is_only_named"],
            sentence(
                "cannot tell whether the topic is there: only records of groups name it, and the "
                "metadata log, which does not, may begin after it was deleted, or end before it "
                "was made",
                pc.if_else(pc.is_valid(rows["topic"]), "", ""),
            ),
        ),
        Refusal(
            UNFIT_NAME,
            pc.invert(legal),
            sentence("no topic can have this name: ", pc.cast(rows["topic"], pa.string())),
        ),
    ]


def _of_log(rows: pa.Table) -> list[Refusal]:
    offset = rows["committed_offset"]
    start, end, same = rows["log_start_offset"], rows["log_end_offset"], rows["same_up_to"]
    since = pc.strftime(_ms(rows["unclean_at"]), format=_TIME)
    return [
        Refusal(
            BELOW_LOG_START,
            pc.less(offset, pc.fill_null(start, 0)),
            sentence("the log starts at offset ", pc.fill_null(start, 0)),
        ),
        Refusal(ABOVE_LOG_END, pc.greater(offset, end), sentence("the log ends at offset ", end)),
        Refusal(
            DATA_DIVERGED,
            pc.greater(offset, same),
            sentence(rows["same_by"], ": the records before ", offset, " are others now"),
        ),
        Refusal(
            DATA_UNCERTAIN,
            pc.and_(pc.is_null(same), pc.is_valid(rows["unclean_at"])),
            sentence(
                "cannot tell whether the log still is the one it was committed for: an unclean "
                "election at ",
                since,
                "Z may have changed it",
            ),
        ),
    ]


_TIME = "%Y-%m-%dT%H:%M:%S"


def _ms(times: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.cast(times, pa.timestamp("ms", tz="UTC"), safe=False)
