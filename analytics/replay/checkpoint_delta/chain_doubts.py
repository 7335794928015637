"""What cannot be told of share state in chains, and why.

A chain tells by itself what it lacks: each delta names the record before it. So records that are
lost before the newest record of a chain are none of it; behind it there may have been more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from analytics.dump.files.model import MAX_OFFSET
from analytics.replay.checkpoint_delta.chain_fold import REASONS
from analytics.replay.checkpoint_delta.chain_loop import BASE, BREAK, NEWEST, REASON
from schemas.dialects import broken_chain_words

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.decode.checkpoint_delta.chain_records import ChainLog, Lost
    from analytics.replay.checkpoint_delta.chain_fold import Chains

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
