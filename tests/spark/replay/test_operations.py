"""How many DataFrame operations a replay takes: planning each costs as much as replaying megabytes.

They are the same whatever a dump holds, but for what is left out where there is nothing.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.classic.dataframe import DataFrame

from analytics.replay.as_of import END, cut_all
from analytics.replay.coverage import WHOLE
from analytics.replay.graph import Step, resolve
from analytics.replay.history.tables import HISTORY
from analytics.replay.rules import replay_rules
from analytics.replay.state import STATE
from schemas import all_record_types
from tests.support.decoded_frames import frames_of

if TYPE_CHECKING:
    import pytest
    from pyspark.sql import SparkSession

MOST: dict[str, int] = {}
"""By what a step makes; what is not named takes at most `FEW`."""
FEW = 12
AT_MOST = 1_000


def test_no_table_takes_more_operations_than_before(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds = [kind.table for kind in all_record_types().values() if kind.read == "decode"]
    decoded = frames_of(spark, {}, (*kinds, "control_markers", "undecoded"))
    given = {
        "cut": cut_all(decoded, END),
        "rules": replay_rules("4.3"),
        "coverage": WHOLE,
        "other_topics": (),
    }
    operations, running = Counter[str](), [""]
    made = DataFrame.__new__

    def counted(cls: type[DataFrame], *args: Any, **kwargs: Any) -> DataFrame:
        operations[running[0]] += 1
        return made(cls, *args, **kwargs)

    monkeypatch.setattr(DataFrame, "__new__", counted)

    def named(step: Step) -> Step:
        def by(*of: Any) -> Any:
            running[0] = step.makes
            return step.by(*of)

        return replace(step, by=by)

    resolve([named(step) for step in dict.fromkeys((*STATE, *HISTORY))], given)
    grown = {
        name: (count, MOST.get(name, FEW))
        for name, count in operations.items()
        if count > MOST.get(name, FEW)
    }
    assert grown == {}, "operations, and how many they were"
    assert operations.total() <= AT_MOST
