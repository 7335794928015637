"""How many DataFrame operations a replay takes: planning each costs as much as replaying megabytes.

They are the same whatever a dump holds, but for what is left out where there is nothing.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.classic.dataframe import DataFrame

from analytics.replay.graph import TableStep, resolve
from analytics.replay.history.tables import HISTORY
from analytics.replay.log.as_of import cut_all
from analytics.replay.log.coverage import WHOLE
from analytics.replay.log.instants import END
from analytics.replay.log.rules import replay_rules
from analytics.replay.state import STATE
from schemas import all_record_types
from tests.support.decoded_frames import frames_of

if TYPE_CHECKING:
    import pytest
    from pyspark.sql import SparkSession

MOST = {
    "of_offsets": 13,
    "share_partitions": 48,
    "topics": 47,
    "pending_offsets": 43,
    "coordinator_log": 42,
    "partition_leaders": 39,
    "committed_offsets": 43,
    "elections": 36,
    "metadata": 24,
    "share_states": 23,
    "configs": 21,
    "coordinators": 15,
    "group_state": 18,
    "of_dependencies": 26,
    "groups": 17,
    "group_rows": 16,
}
"""By what a step makes; what is not named takes at most `FEW`."""
FEW = 12
AT_MOST = 540


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

    def named(step: TableStep) -> TableStep:
        def by(*of: Any) -> Any:
            running[0] = step.output
            return step.function(*of)

        return replace(step, function=by)

    resolve([named(step) for step in dict.fromkeys((*STATE, *HISTORY))], given)
    grown = [
        f"{name} takes {count} operations, at most {MOST.get(name, FEW)} before"
        for name, count in operations.items()
        if count > MOST.get(name, FEW)
    ]
    assert not grown, "; ".join(grown)
    assert operations.total() <= AT_MOST
