"""Decoded records that count at the instant asked about, as frames of polars."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

import polars as pl

from analytics.dump.files.model import CONSUMER_OFFSETS
from analytics.replay.dump.coverage import log_starts
from analytics.replay.log.cut_frames import PLACE, cut, timeless_ends
from jobs.runs.replay.cut_records import CutRecords
from jobs.runs.replay.replayed_instant import replayed_instant

if TYPE_CHECKING:
    from jobs.runs.replay.replayed import Replayed


class CountedRecords:
    """The records of a replayed workspace that count, of the groups that are asked about."""

    def __init__(self, state: Replayed) -> None:
        self._source = CutRecords(state)
        self._instant = replayed_instant(state.as_of)
        self._log_starts = log_starts(state.manifest) if self._instant.is_end else {}

    def rows(
        self, name: str, fields: Mapping[str, str], topic: str = CONSUMER_OFFSETS
    ) -> pl.DataFrame:
        """Read a decoded table.

        Args:
            name: The table ("group_metadata").
            fields: What is read, by column: ``value.generation``; of the metadata log `segment`,
                too.
            topic: The internal topic.

        Raises:
            WorkspaceError: A file is damaged.
        """
        found = self._source.rows(name, {**fields, **PLACE}, topic)
        ends = self._timeless_ends if found["_time"].null_count() else {}
        return cut(found, self._instant, log_starts=self._log_starts, timeless_ends=ends)

    @cached_property
    def _timeless_ends(self) -> Mapping[tuple[str, int], int]:
        """From where on records without a time are later: hardly any dump has one."""
        commit = {"commit_ms": "value.commit_timestamp", **PLACE}
        commits = self._source.rows("offset_commit", commit, CONSUMER_OFFSETS)
        groups = self._source.rows("group_metadata", PLACE, CONSUMER_OFFSETS)
        return timeless_ends(commits, groups, self._instant)
