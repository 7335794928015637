"""The tables of chains: `chain`, `share_partitions`, `share_batches`, `share_checkpoints`.

Where no topic id is known, Kafka's zero id stands for it; rows then differ by the topic's name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from analytics.decode.checkpoint_delta.chain_records import CHECKPOINT
from analytics.replay.checkpoint_delta.chain_doubts import doubts, earliest_doubts
from analytics.replay.checkpoint_delta.chain_fold import FIRST_ODD, REASONS
from analytics.replay.checkpoint_delta.chain_loop import (
    BASE,
    COUNT,
    DELTAS,
    END_AFTER,
    FIRST,
    LAST,
    NEWEST,
    OTHERS,
    REASON,
    START_AFTER,
    STATE,
)
from analytics.replay.contract_rows import contract_rows
from schemas import ZERO_UUID

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.replay.checkpoint_delta.chain_fold import Chains

    Numbers = NDArray[np.int64]

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
