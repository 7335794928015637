"""Dumps of the tests replayed to the end, as evaluations take them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from analytics.replay.graph import needed_for, passes, resolve
from analytics.replay.history.tables import HISTORY
from analytics.replay.log.log_times import END, AsOf, cut_all
from analytics.replay.log.losses import WHOLE
from analytics.replay.log.rules import replay_rules
from analytics.replay.state import STATE, replay_given
from schemas import INTERNAL_TOPICS, record_types
from tests.support.decoded_frames import frame_of, frames_of_dump

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

WRITTEN = ("control_markers",)


def decoded_dumps(log_dirs: Sequence[Path]) -> dict[str, pl.DataFrame]:
    """Return the decoded tables of log directories of one broker, each with other partitions."""
    found: dict[str, list[pl.DataFrame]] = {"undecoded": [frame_of("undecoded", [])]}
    for log_dir in log_dirs:
        for topic in INTERNAL_TOPICS:
            kinds = record_types(topic).values()
            names = [*(kind.table for kind in kinds if kind.read == "decode"), *WRITTEN]
            for name, frame in frames_of_dump(log_dir, topic, names).items():
                found.setdefault(name, []).append(frame)
    return {name: pl.concat(frames) for name, frames in found.items()}


def replayed_dump(
    log_dirs: Sequence[Path], release: str, makes: Sequence[str], instant: AsOf = END
) -> dict[str, Any]:
    """Return tables of a replay, and what they are made of, by name.

    Args:
        log_dirs: Log directories of one broker.
        release: Whose rules apply.
        makes: The tables and intermediate results that are wanted.
        instant: Which records count.
    """
    cut = cut_all(decoded_dumps(log_dirs), instant)
    given = replay_given(replay_rules(release), WHOLE)
    # All records are one bucket.
    here: dict[str, Any] = {"cut": cut, "part": 0}
    once: dict[str, Any] = {**given, "whole": cut}
    gathered: dict[str, Any] = {}
    for each in passes(needed_for([*STATE, *HISTORY], makes)):
        todo = [step for step in each.of_buckets if step.output not in here]
        here |= resolve(todo, {**once, **here})
        gathered |= {name: [here[name]] for name in each.gathered}
        once |= resolve(each.once, {**once, **gathered})
    return once | here
