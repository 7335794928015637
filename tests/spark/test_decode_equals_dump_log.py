"""What the decode pass writes on Spark equals what Kafka's own tool printed for the same bytes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from analytics.decode.tasks import Settings, decode_on_spark
from analytics.dump.copies.plan import plan
from tests.support.decoded_rows import rows_of_part
from tests.support.dump_folder import bundled_dumps
from tests.support.dump_log_check import check

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.dump_folder import DumpFolder

# Tasks decode each of them in tests/unit/decode/test_equals_dump_log.py: of the oldest, of three
# brokers and of share groups, it is Spark that runs them when tests are quick.
QUICK = ("kafka-2.0.1-v1", "kafka-4.3.1-failover", "kafka-4.2.1-share")
DUMPS = [
    pytest.param(each, marks=() if each.root.name in QUICK else pytest.mark.long, id=each.root.name)
    for each in bundled_dumps()
]


@pytest.mark.parametrize("dump", DUMPS)
def test_each_printed_record_has_its_row(
    dump: DumpFolder, spark: SparkSession, tmp_path: Path
) -> None:
    planned = plan([f"{copy}={dump.root / copy}" for copy in dump.copies])
    reports = decode_on_spark(spark, planned.slices, Settings(str(tmp_path)))
    parts = [part for report in reports for part in report.parts]
    found = check(dump, dump.copies, [row for part in parts for row in rows_of_part(part)])
    print(found.sentence())
    assert found.differences == []
    assert found.compared == sum(part.rows for part in parts)
