"""What is read and folded of each dialect: parts that are independent of each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from analytics.decode.selection import names_wanted
from analytics.seeds.checkpoint_delta.chain_fold import fold_chains
from analytics.seeds.checkpoint_delta.chain_tables import chain_tables, unseen
from analytics.seeds.checkpoint_delta.inputs import ChainInput, chain_inputs
from analytics.seeds.kip_932_text import read_state, state_plan, state_slices, text_tables
from schemas.dialects import CHECKPOINT_DELTA, KIP_932_TEXT

if TYPE_CHECKING:
    import pyarrow as pa

    from analytics.dump.files.model import Plan

TablesAndNotes = tuple[dict[str, "pa.Table"], list[str]]
"""Tables by name, and what else cannot be told."""


@dataclass(frozen=True)
class Work:
    """What there is to do.

    Attributes:
        parts: How many there are.
        size: Bytes of segments that are read.
        run: Reads and folds the parts of these numbers.
    """

    parts: int
    size: int
    run: Callable[[Sequence[int]], TablesAndNotes]


def chain_work(
    inputs: Sequence[str], topic_partition: str | None, data_topics: Sequence[str]
) -> Work:
    """Return the work on chains of checkpoints and deltas: a part a data partition."""
    parts = chain_inputs(inputs, topic_partition, data_topics)
    return Work(len(parts), sum(each.size for each in parts), partial(_chains, parts))


def text_work(
    inputs: Sequence[str], topic_partition: str | None, data_topics: Sequence[str]
) -> Work:
    """Return the work on share state of the text: a part a partition of the state topic."""
    planned, topics = state_plan(inputs, topic_partition)
    slices = state_slices(planned)
    size = sum(each.to_position - each.from_position for each in planned.slices)
    return Work(len(slices), size, partial(_text, planned, topics, data_topics))


WORK: Mapping[str, Callable[[Sequence[str], str | None, Sequence[str]], Work]] = {
    CHECKPOINT_DELTA: chain_work,
    KIP_932_TEXT: text_work,
}
"""By dialect."""


def _chains(parts: Sequence[ChainInput], numbers: Sequence[int]) -> TablesAndNotes:
    logs = [parts[number].read() for number in numbers]
    said = [
        f"{log.topic}-{log.partition}: there may be more groups: {why}"
        for log in logs
        if (why := unseen(log)) is not None
    ]
    return chain_tables(fold_chains(logs)), said


def _text(
    planned: Plan, topics: Mapping[str, str], data_topics: Sequence[str], numbers: Sequence[int]
) -> TablesAndNotes:
    slices = list(state_slices(planned).items())
    logs = [read_state(planned, *slices[number]) for number in numbers]
    tables = text_tables(logs, topics)
    if data_topics:
        wanted = set(names_wanted(list(topics.values()), data_topics))
        tables = {
            name: rows.filter([each in wanted for each in rows["topic"].to_pylist()])
            for name, rows in tables.items()
        }
    said = [
        f"__share_group_state-{log.partition}: records that cannot be read: {log.unread}"
        for log in logs
        if log.unread
    ]
    return tables, said
