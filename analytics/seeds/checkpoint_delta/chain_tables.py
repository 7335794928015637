"""The tables of chains: `chain`, `share_partitions`, `share_batches`, `share_checkpoints`.

Where no topic id is known, Kafka's zero id stands for it; rows then differ by the topic's name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from analytics.contracts import contract_rows
from analytics.dump.files.model import MAX_OFFSET
from analytics.seeds.checkpoint_delta.chain_fold import (
    BASE,
    BREAK,
    COUNT,
    DELTAS,
    END_AFTER,
    FIRST,
    FIRST_ODD,
    LAST,
    NEWEST,
    OTHERS,
    REASON,
    REASONS,
    START_AFTER,
    STATE,
)
from analytics.seeds.checkpoint_delta.control_segments import CHECKPOINT
from schemas import ZERO_UUID
from schemas.catalog import broken_chain_words

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.seeds.checkpoint_delta.chain_fold import Chains

    Numbers = NDArray[np.int64]

    from analytics.seeds.checkpoint_delta.control_segments import ChainLog, Lost

# What cannot be told of share state in chains, and why.
#
# A chain tells by itself what it lacks: each delta names the record before it. So records that are
# lost before the newest record of a chain are none of it; behind it there may have been more.

_MOST_NAMED = 3


def doubts(chains: Chains) -> NDArray[np.object_]:
    """Return for each share partition what is missing, in words; None where nothing is."""
    found = np.full(len(chains.keys), None, object)
    keys = chains.keys
    is_told = (keys[:, BASE] >= 0) & (keys[:, BREAK] < 0)
    has_lost = np.array([bool(each.lost) for each in chains.logs], np.bool_)[chains.key_log]
    offsets = chains.column("offset")
    for key in np.flatnonzero(~is_told | has_lost).tolist():
        base, newest, broken = (int(keys[key, each]) for each in (BASE, NEWEST, BREAK))
        reasons = []
        if broken >= 0:
            reasons.append(_break_reason(chains, offsets, broken, newest))
        elif base < 0:
            reasons.append(
                "no checkpoint of the group is in the log, and its deltas say nothing without one"
            )
        seen = int(offsets[newest]) if newest >= 0 else -1
        reasons += _lost_reasons(chains.logs[chains.key_log[key]], seen)
        found[key] = "; ".join(reasons) or None
    return found


def earliest_doubts(chains: Chains) -> NDArray[np.object_]:
    """Return for each log why its earliest share offset cannot be told; None where it can.

    A group without a checkpoint has no share checkpoint offset, and where anything of the log is
    lost there may have been a group of which nothing is left.
    """
    found = np.full(len(chains.logs), None, object)
    for number, log in enumerate(chains.logs):
        if log.lost:
            found[number] = "; ".join(_lost_reasons(log, -1))
    without = np.flatnonzero(chains.keys[:, BASE] < 0)
    for number in np.unique(chains.key_log[without]).tolist():
        keys = without[chains.key_log[without] == number]
        groups = sorted(chains.key_group.take(pa.array(keys)).to_pylist())
        more = f" and {len(groups) - _MOST_NAMED} more" if len(groups) > _MOST_NAMED else ""
        named = ", ".join(groups[:_MOST_NAMED])
        said = f"no checkpoint that can be used is known of {named}{more}"
        found[number] = "; ".join([*([found[number]] if found[number] else []), said])
    return found


def unseen(log: ChainLog) -> str | None:
    """Return what of a log cannot be seen, where a group may be of which nothing is left."""
    return "; ".join(_lost_reasons(log, -1)) or None


def _break_reason(chains: Chains, offsets: NDArray[np.int64], broken: int, newest: int) -> str:
    word = REASONS[chains.judgements[broken, REASON]]
    why = broken_chain_words()[str(word)]
    said = f"the chain ends at offset {offsets[broken]}: {why[0].lower()}{why[1:].rstrip('.')}"
    if newest < 0:
        return said
    return f"{said} (told is the state after offset {offsets[newest]})"


def _lost_reasons(log: ChainLog, last_offset: int) -> list[str]:
    """Return what is lost of a log behind an offset."""
    lost = [each for each in log.lost if each.end_offset - 1 > last_offset]
    said = [f"{each.why} ({_where(each)})" for each in lost[:_MOST_NAMED]]
    more = len(lost) - len(said)
    return [*said, f"and {more} more"] if more else said


def _where(lost: Lost) -> str:
    if lost.end_offset == MAX_OFFSET:
        return f"offsets from {lost.first_offset}"
    if lost.end_offset == lost.first_offset + 1:
        return f"offset {lost.first_offset}"
    return f"offsets {lost.first_offset} to {lost.end_offset - 1}"


NAMES: Final = ("chain", "share_batches", "share_checkpoints", "share_partitions")
_STATES: Final = {0: "AVAILABLE", 2: "ACKNOWLEDGED", 4: "ARCHIVED"}


def chain_tables(chains: Chains) -> dict[str, pa.Table]:
    """Return the four tables by name, sorted by their keys."""
    missing = doubts(chains)
    made = {
        "chain": _chain(chains),
        "share_batches": _batches(chains, missing),
        "share_checkpoints": _checkpoints(chains, missing),
        "share_partitions": _partitions(chains, missing),
    }
    return {name: contract_rows(name, columns) for name, columns in made.items()}


def _chain(chains: Chains) -> Mapping[str, Any]:
    reason = chains.judgements[:, REASON]
    return {
        **_whose(chains, chains.key),
        "offset": chains.column("offset"),
        "kind": np.where(chains.column("kind") == CHECKPOINT, "checkpoint", "delta"),
        "checkpoint_epoch": chains.column("checkpoint_epoch"),
        "back_offset": chains.records["back_offset"],
        "start_offset": _or_null(chains.judgements[:, START_AFTER]),
        "end_offset": _or_null(chains.judgements[:, END_AFTER]),
        "ok": (reason == 0) | (reason >= FIRST_ODD),
        "reason": np.array(REASONS, object)[reason],
    }


def _batches(chains: Chains, missing: NDArray[np.object_]) -> Mapping[str, Any]:
    ranges, missing = chains.ranges, missing[chains.range_key]
    return {
        **_whose(chains, chains.range_key),
        "first_offset": ranges[:, FIRST],
        "last_offset": ranges[:, LAST],
        "delivery_state": ranges[:, STATE],
        "delivery_state_name": np.array([_STATES.get(each) for each in range(5)], object)[
            ranges[:, STATE]
        ],
        "delivery_count": ranges[:, COUNT],
        "complete": missing == None,  # noqa: E711 - of each element
        "missing": missing,
    }


def _partitions(chains: Chains, missing: NDArray[np.object_]) -> Mapping[str, Any]:
    keys, has_state = chains.keys, chains.keys[:, BASE] >= 0
    size = chains.ranges[:, LAST] - chains.ranges[:, FIRST] + 1
    counts = np.zeros((len(keys), 5), np.int64)
    np.add.at(counts, (chains.range_key, chains.ranges[:, STATE]), size)
    most = np.full(len(keys), -1)
    np.maximum.at(most, chains.range_key, chains.ranges[:, COUNT])
    told = {
        "available_count": counts[:, 0],
        "acknowledged_count": counts[:, 2],
        "archiving_count": counts[:, 3],
        "archived_count": counts[:, 4],
        "updates_since_snapshot": keys[:, DELTAS],
        "epoch_mismatches": keys[:, OTHERS],
    }
    return {
        **_whose(chains, np.arange(len(keys))),
        "phase": np.where(has_state, "initialized", "unknown"),
        "snapshot_epoch": _at(chains, "checkpoint_epoch", BASE),
        "start_offset": _start_and_end(chains)[0],
        **{name: pa.array(each, mask=~has_state) for name, each in told.items()},
        "max_delivery_count": _or_null(most),
        "record_offset": _at(chains, "offset", NEWEST),
        "complete": missing == None,  # noqa: E711 - of each element
        "missing": missing,
    }


def _checkpoints(chains: Chains, missing: NDArray[np.object_]) -> Mapping[str, Any]:
    keys = chains.keys
    own = np.where(keys[:, BASE] >= 0, chains.column("offset")[keys[:, BASE]], -1)
    hidden = earliest_doubts(chains)
    earliest = np.full(len(chains.logs), np.iinfo(np.int64).max)
    np.minimum.at(earliest, chains.key_log, own)
    earliest = np.where(hidden == None, earliest, -1)[chains.key_log]  # noqa: E711 - as above
    hidden = hidden[chains.key_log]
    start, end = _start_and_end(chains)
    return {
        **_whose(chains, np.arange(len(keys))),
        "share_checkpoint_offset": _or_null(own),
        "checkpoint_epoch": _at(chains, "checkpoint_epoch", BASE),
        "start_offset": start,
        "end_offset": end,
        "records": np.bincount(chains.key, minlength=len(keys)),
        "records_before": pa.array(_below(chains, own), mask=own < 0),
        "earliest_share_offset": _or_null(earliest),
        "removable_records": pa.array(_below(chains, earliest), mask=earliest < 0),
        "complete": (missing == None) & (hidden == None),  # noqa: E711 - as above
        "missing": np.where(missing == None, hidden, missing),  # noqa: E711 - as above
    }


def _below(chains: Chains, offset: Numbers) -> Numbers:
    """Return how many records of each share partition lie below an offset of it."""
    is_below = chains.column("offset") < offset[chains.key]
    return np.bincount(chains.key[is_below], minlength=len(chains.keys))


def _start_and_end(chains: Chains) -> tuple[pa.Array, pa.Array]:
    """Return the offsets once the last record that is applied is; null without a state."""
    newest = chains.keys[:, NEWEST]
    rows = chains.judgements[newest] if len(chains.judgements) else np.empty((0, 3), np.int64)
    found = [np.where(newest >= 0, rows[:, each], -1) for each in (START_AFTER, END_AFTER)]
    return _or_null(found[0]), _or_null(found[1])


def _at(chains: Chains, name: str, which: int) -> pa.Array:
    """Return a column of the records that share partitions point to; null where to none."""
    row = chains.keys[:, which]
    return pa.array(chains.column(name)[row], mask=row < 0)


def _whose(chains: Chains, key: Numbers) -> dict[str, Any]:
    log = chains.key_log[key]
    logs = chains.logs
    return {
        "group_id": chains.key_group.take(pa.array(key)),
        "topic": np.array([each.topic for each in logs], object)[log],
        "topic_id": np.array([each.topic_id or ZERO_UUID for each in logs], object)[log],
        "partition": np.array([each.partition for each in logs], np.int64)[log],
    }


def _or_null(values: Numbers) -> pa.Array:
    return pa.array(values, mask=values < 0)
