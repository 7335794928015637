"""Dumps of the tests replayed to the end, as evaluations take them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from analytics.replay.graph import needed_for, resolve
from analytics.replay.history.tables import HISTORY
from analytics.replay.log.as_of import cut_all
from analytics.replay.log.coverage import WHOLE
from analytics.replay.log.instants import END, AsOf
from analytics.replay.log.rules import replay_rules
from analytics.replay.state import STATE
from schemas import TOPICS, record_types
from tests.support.decoded_frames import frames_of_dump

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WRITTEN = ("control_markers",)


def decoded_dumps(spark: SparkSession, log_dirs: Sequence[Path]) -> dict[str, DataFrame]:
    """Return the decoded tables of log directories of one broker, each with other partitions."""
    found: dict[str, list[DataFrame]] = {}
    for log_dir in log_dirs:
        for topic in TOPICS:
            kinds = record_types(topic).values()
            names = [*(kind.table for kind in kinds if kind.read == "decode"), *WRITTEN]
            for name, frame in frames_of_dump(spark, log_dir, topic, names).items():
                found.setdefault(name, []).append(frame)
    return {
        name: reduce(lambda all_, each: all_.unionByName(each), frames)
        for name, frames in found.items()
    }


def replayed_dump(
    spark: SparkSession,
    log_dirs: Sequence[Path],
    release: str,
    makes: Sequence[str],
    instant: AsOf = END,
) -> dict[str, Any]:
    """Return tables of a replay, and what they are made of, by name.

    Args:
        spark: The session.
        log_dirs: Log directories of one broker.
        release: Whose rules apply.
        makes: The tables and intermediate results that are wanted.
        instant: Which records count.
    """
    given = {
        "cut": cut_all(decoded_dumps(spark, log_dirs), instant),
        "rules": replay_rules(release),
        "coverage": WHOLE,
        "other_topics": (),
    }
    made = resolve(needed_for([*STATE, *HISTORY], makes), given)
    kept = {
        name: each.localCheckpoint() if hasattr(each, "localCheckpoint") else each
        for name, each in made.items()
    }
    return {**given, **kept}


def frames_of(made: Mapping[str, Any], names: Iterable[str]) -> dict[str, pl.DataFrame]:
    """Return tables of a replay as polars has them."""
    return {name: pl.DataFrame(pl.from_arrow(made[name].toArrow())) for name in names}
