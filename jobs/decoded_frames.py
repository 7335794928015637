"""The decoded tables of a workspace as DataFrames."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobs.table_frames import table_frame
from schemas import all_record_types, decoded_table, table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from analytics.workspace import Workspace

WRITTEN = ("control_markers", "undecoded")


def decoded_frames(spark: SparkSession, workspace: Workspace) -> dict[str, DataFrame]:
    """Return the tables of the surviving line by name."""
    contracts = [
        decoded_table(kind) for kind in all_record_types().values() if kind.read == "decode"
    ]
    contracts += [table(name) for name in WRITTEN]
    return {
        each.name: table_frame(spark, workspace, f"decoded/{each.name}", each) for each in contracts
    }
