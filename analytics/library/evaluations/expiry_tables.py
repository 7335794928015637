"""The tables about the expiry of offsets, made of a replayed workspace and its records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.dump.files.model import CLUSTER_METADATA, CONSUMER_OFFSETS
from analytics.evaluate.contract_columns import table_of_frame
from analytics.evaluate.expiration.offset_log import GroupRecords
from analytics.evaluate.expiration.offset_removals import Cluster
from analytics.evaluate.expiration.tables import (
    FATES,
    NOTES,
    ExpirationQuestion,
    Known,
    expiration_tables,
)
from analytics.library.replayed.cut_records import CutRecords
from analytics.library.replayed.replayed_instant import replayed_instant
from analytics.replay.dump.assumptions import assumed_in
from analytics.replay.dump.coverage import coverage_of, log_starts
from analytics.replay.groups.group_records import KINDS
from analytics.replay.log.as_of import PLACE, cut
from analytics.replay.log.rules import replay_rules
from analytics.replay.log.timeless import GROUPS, timeless_ends
from analytics.replay.metadata.coordinator_starts import TABLES, coordinator_starts
from analytics.replay.metadata.metadata_log import AROUND, metadata_log
from analytics.replay.offsets.commit_rows import COMMIT_FIELDS, COMMITS, MARKER_FIELDS, MARKERS
from analytics.tables.buckets import packed

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    import pyarrow as pa

    from analytics.library.replayed.replayed_workspace import ReplayedWorkspace

AT_ONCE: Final = 1_000_000
"""So many records are held at a time, or those of one partition where it has more."""

_COMMITS: Final = "offset_commit"
_COMMITS_HELD: Final = {**COMMITS, "copy": pl.Categorical(), "segment": pl.Categorical()}
"""All commits of a segment say the same of it."""

_PLAIN: Final = ("partition", "offset", "timestamp", "leader_epoch", "is_tombstone", "key")
_WITH_VALUES: Final = (
    "group_metadata",
    "consumer_group_member_metadata",
    "consumer_group_regular_expression",
    "streams_group_topology",
)
_OF_METADATA: Final = ("topic", "offset", "timestamp", "segment")


def expiry_tables(
    state: ReplayedWorkspace, question: ExpirationQuestion, most: int | None = None
) -> dict[str, pa.Table]:
    """Return what `expiration_tables` makes, as tables of Arrow.

    Args:
        state: A replayed workspace.
        question: What is asked.
        most: So many rows of `offset_expiration`, the worst; None is all of them.

    Raises:
        WorkspaceError: A table cannot be read.
    """
    records = _Records(state)
    tables = state.tables
    committed = ["coordinator_partition", "record_offset", "complete", "missing"]
    topics = _frame(tables.read("topics"))
    coverage = coverage_of(
        state.manifest, records.instant, state.source, state.lines, assumed_in(state.manifest)
    )
    metadata = metadata_log(records.of_metadata())
    known = Known(
        _frame(tables.read("committed_offsets", committed)),
        _frame(tables.read("groups", ["group_id", "group_type", "complete", "missing"])),
        Cluster(topics, metadata.begins, coverage.data_topics, coverage),
        coordinator_starts(metadata, topics),
        replay_rules(state.release),
    )
    made = expiration_tables(question, known, records.lots(), most)
    beside = {
        name: made.pop(name).to_arrow(compat_level=pl.CompatLevel.oldest())
        for name in (FATES, NOTES)
    }
    return {**{name: table_of_frame(name, rows) for name, rows in made.items()}, **beside}


class _Records:
    """The records of a workspace that count, some partitions at a time."""

    def __init__(self, state: ReplayedWorkspace) -> None:
        self._source = CutRecords(state)
        self.instant = replayed_instant(state.as_of)
        self._log_starts = log_starts(state.manifest) if self.instant.is_end else {}
        self._is_cut = bool(self._log_starts) or not self.instant.is_end

    def lots(self) -> Iterator[GroupRecords]:
        """Yield the records of whole partitions, at least once."""
        names = (_COMMITS, *KINDS)
        if self._source.count(names) <= AT_ONCE:
            yield self._lot(None)
            return
        for partitions in packed(self._source.counts(names), AT_ONCE):
            yield self._lot(partitions)

    def of_metadata(self) -> dict[str, pl.DataFrame]:
        """Return the records of the metadata log that are looked at."""
        found = {}
        for name in dict.fromkeys((*AROUND, *TABLES)):
            fields = [*_OF_METADATA, *(["value"] if name in TABLES else [])]
            rows = self._read(name, {each: each for each in fields}, CLUSTER_METADATA)
            found[name] = self._cut(rows, {})
        return found

    def _lot(self, partitions: Collection[int] | None) -> GroupRecords:
        def read(name: str, fields: Mapping[str, str]) -> pl.DataFrame:
            return self._read(name, fields, CONSUMER_OFFSETS, partitions)

        commits, markers = read(_COMMITS, COMMIT_FIELDS), read("control_markers", MARKER_FIELDS)
        groups = {name: read(name, _fields(name)) for name in KINDS}
        ends = {}
        if self._is_cut:
            own = {field: column for column, field in PLACE.items()}
            said = pl.struct(commit_timestamp="commit_ms")
            timed = {
                _COMMITS: commits.select(**own, value=said),
                GROUPS: groups[GROUPS].select(**own),
            }
            ends = timeless_ends(timed, self.instant)
        return GroupRecords(
            self._cut(commits, ends).cast(pl.Schema(_COMMITS_HELD)),
            self._cut(markers, ends).cast(MARKERS),
            {name: self._cut(rows, ends) for name, rows in groups.items()},
        )

    def _read(
        self,
        name: str,
        fields: Mapping[str, str],
        topic: str,
        partitions: Collection[int] | None = None,
    ) -> pl.DataFrame:
        place = PLACE if self._is_cut else {}
        return self._source.rows(name, {**fields, **place}, topic, partitions)

    def _cut(self, rows: pl.DataFrame, ends: Mapping[tuple[str, int], int]) -> pl.DataFrame:
        if not self._is_cut:
            return rows
        return cut(rows, self.instant, log_starts=self._log_starts, timeless_ends=ends)


def _fields(name: str) -> dict[str, str]:
    fields: Sequence[str] = _PLAIN
    if name in _WITH_VALUES:
        fields = [*_PLAIN, "value_version", "value"]
    return {each: each for each in fields}


def _frame(rows: pa.Table) -> pl.DataFrame:
    return pl.DataFrame(pl.from_arrow(rows))
