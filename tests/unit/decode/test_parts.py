"""Parts of decoded tables: what their files say about themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from analytics.decode.tasks import Settings, run_task
from analytics.dump.copies.plan import plan

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def commits(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> pq.FileMetaData:
    dump = repository / "tests" / "data" / "dumps" / "kafka-4.3.1-story"
    slices = list(enumerate(plan([str(dump)]).slices))
    report = run_task(0, slices, Settings(str(tmp_path_factory.mktemp("parts"))))
    (path,) = (part.path for part in report.parts if part.table == "decoded/offset_commit")
    return pq.read_metadata(path)


def of_column(metadata: pq.FileMetaData, path: str) -> pq.ColumnChunkMetaData:
    group = metadata.row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    return next(each for each in columns if each.path_in_schema == path)


def test_rows_that_wait_together_are_one_row_group(commits: pq.FileMetaData) -> None:
    assert commits.num_row_groups == 1


@pytest.mark.parametrize(
    "path",
    [
        *("partition", "offset", "timestamp", "value.commit_timestamp"),
        *("is_transactional", "is_tombstone", "producer_id"),
    ],
)
def test_a_reader_can_skip_rows_by_place_time_and_what_hardly_any_row_is(
    commits: pq.FileMetaData, path: str
) -> None:
    statistics = of_column(commits, path).statistics
    assert statistics.has_min_max
    assert statistics.min <= statistics.max


@pytest.mark.parametrize("path", ["key.group", "key.topic", "value.metadata", "segment"])
def test_the_least_and_the_most_of_a_text_are_not_kept(commits: pq.FileMetaData, path: str) -> None:
    assert of_column(commits, path).statistics is None


@pytest.mark.parametrize(
    ("path", "definition_levels"),
    [("offset", 0), ("key.group", 0), ("is_transactional", 0), ("leader_epoch", 1)],
)
def test_what_no_row_of_a_dump_lacks_is_required(
    commits: pq.FileMetaData, path: str, definition_levels: int
) -> None:
    columns = [commits.schema.column(number) for number in range(len(commits.schema))]
    (column,) = (each for each in columns if each.path == path)
    assert column.max_definition_level == definition_levels
