"""The decoded tables of a workspace as DataFrames."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pyarrow import fs

from analytics.replay.log.line_frames import on_lines
from analytics.tables.table_frames import table_frame
from analytics.workspace import DECODED, DIVERGED
from schemas import all_record_types, decoded_table, table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from analytics.replay.log.lines import FollowedLine
    from analytics.workspace import Workspace

WRITTEN = ("control_markers", "undecoded")


def decoded_frames(
    spark: SparkSession, workspace: Workspace, lines: Iterable[FollowedLine] = ()
) -> dict[str, DataFrame]:
    """Return the decoded tables by name, of the surviving lines but where others are followed."""
    lines = list(lines)
    copies = sorted({piece.copy for each in lines for piece in each.pieces})
    diverged = {copy: _frames(spark, workspace, f"{DIVERGED}/{copy}/{DECODED}") for copy in copies}
    return on_lines(_frames(spark, workspace, DECODED), diverged, lines)


def _frames(spark: SparkSession, workspace: Workspace, folder: str) -> dict[str, DataFrame]:
    # A line of which no record was wanted has no folder.
    if workspace.filesystem.get_file_info(workspace.path(folder)).type is not fs.FileType.Directory:
        return {}
    contracts = [
        decoded_table(kind) for kind in all_record_types().values() if kind.read == "decode"
    ]
    contracts += [table(name) for name in WRITTEN]
    return {
        each.name: table_frame(spark, workspace, f"{folder}/{each.name}", each)
        for each in contracts
    }
