"""What a replay of a decoded workspace makes, and of what: whoever asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from analytics.decode.run.workload import is_small_workspace
from analytics.decode.selection import Selection
from analytics.replay.dump.coverage import coverage_of, log_starts, topics_beside
from analytics.replay.dump.followed_lines import lines_said
from analytics.replay.dump.written_instants import as_of_said
from analytics.replay.graph import TableStep, needed_for
from analytics.replay.history.tables import HISTORY as HISTORY_TABLES
from analytics.replay.log.as_of import above_log_starts
from analytics.replay.log.instants import AsOf
from analytics.replay.log.rules import replay_rules
from analytics.replay.state import STATE as STATE_TABLES
from analytics.replay.state import replay_tables
from analytics.tables.decoded_frames import decoded_frames
from analytics.tables.selected_frames import selected_frames
from analytics.tables.staged_tables import staged_file, write_rows
from analytics.tables.stored_tables import folder_of
from analytics.tables.table_frames import table_frame
from analytics.tables.written_tables import collected, write_frame
from analytics.workspace import HISTORY
from schemas import table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from analytics.replay.log.lines import FollowedLine
    from analytics.workspace import Part, Staging, Workspace

NamedTopic = tuple[str, str, int | None]
"""Topic, id, and how many partitions, as a person gave them."""
DIVERGENCES = "divergences"
AT_ONCE = 3
"""Tables made at the same time: planning one is work for a single core of this machine."""
_OF_NAMES = ("groups", "exclude_groups", "data_topics")


@dataclass(frozen=True)
class ReplayWork:
    """What a replay was asked for.

    Attributes:
        instant: Which records count.
        release: Whose rules apply.
        side_file: Names of topic ids that a person gave.
        filters: Options that leave records of a workspace out; empty leaves out nothing.
        needs: The tables that are made; None is all.
        lines: Followed instead of those that survived.
        assumed: What archived rows do not tell and a person vouches for.
    """

    instant: AsOf
    release: str
    side_file: Sequence[NamedTopic]
    filters: Mapping[str, tuple[Any, ...]]
    needs: Sequence[str] | None = None
    lines: Sequence[FollowedLine] = ()
    assumed: Sequence[str] = ()

    @property
    def steps(self) -> list[TableStep]:
        """What is made."""
        steps = [*STATE_TABLES, *HISTORY_TABLES]
        return steps if self.needs is None else needed_for(steps, self.needs)

    def records(
        self, spark: SparkSession, frames: Mapping[str, DataFrame]
    ) -> Mapping[str, DataFrame]:
        """Return the decoded tables as far as they are wanted."""
        if not any(self.filters.values()):
            return frames
        return selected_frames(
            spark,
            frames,
            Selection(*(self.filters[name] for name in _OF_NAMES)),
            self.filters["topics"],
            self.filters["partitions"],
        )

    def said(self, parts: Iterable[Part]) -> dict[str, Any]:
        """Return the section `replay` of the manifest."""
        return {
            "as_of": as_of_said(self.instant.timestamp_ms, self.instant.offsets),
            "lines": lines_said(self.lines),
            "kafka_version": self.release,
            "assumed": list(self.assumed),
            "topic_ids": [list(each) for each in self.side_file],
            "filters": {name: list(each) for name, each in self.filters.items() if each},
            "rows": {part.table.rpartition("/")[2]: part.rows for part in parts},
        }


def replay_workspace(
    spark: SparkSession,
    source: Workspace,
    staging: Staging,
    wanted: ReplayWork,
    manifest: Mapping[str, Any],
) -> list[Part]:
    """Make the tables that are wanted in a staging folder and return them, in order.

    Args:
        spark: The session.
        source: The workspace with the decoded tables.
        staging: Where the tables go.
        wanted: What is made.
        manifest: Of the workspace, with `with_archived_losses`.
    """
    parts: list[Part] = []
    is_small = is_small_workspace(manifest)

    def write(name: str, frame: DataFrame) -> DataFrame:
        # What is made of little is little: it is brought here, for which Spark writes no file.
        part = (
            write_rows(staging, name, collected(frame, name))
            if is_small
            else write_frame(staging, name, frame)
        )
        parts.append(part)
        return table_frame(spark, staging.workspace, staged_file(staging, name), table(name))

    replay_tables(
        above_log_starts(
            wanted.records(spark, decoded_frames(spark, source, wanted.lines)),
            log_starts(manifest) if wanted.instant.is_end else {},
        ),
        wanted.instant,
        replay_rules(wanted.release),
        steps=wanted.steps,
        coverage=coverage_of(manifest, wanted.instant, source, wanted.lines, wanted.assumed),
        other_topics=[topics_beside(spark, manifest, wanted.side_file)],
        keep=write,
        at_once=AT_ONCE,
    )
    # The folder of history is replaced, and decoding has put a table there.
    diverged = table_frame(spark, source, folder_of(DIVERGENCES), table(DIVERGENCES))
    write(DIVERGENCES, diverged)
    # Tables are done in any order; state comes before history.
    return sorted(parts, key=lambda part: (part.table.startswith(HISTORY), part.table))
