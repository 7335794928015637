"""A format or catalog whose package was made for another Spark is refused in one line."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NoReturn, cast

import pytest

from analytics.errors import OutputRefusedError
from analytics.library.saved_tables import Target

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WORDS = {
    "a method that is not there": (
        "An error occurred while calling o38.sql.\n: java.lang.NoSuchMethodError: 'void "
        "org.apache.spark.sql.execution.LogicalRDD.<init>(scala.collection.immutable.Seq)'"
    ),
    "a class that is no interface any more": (
        "An error occurred while calling o40.sql.\n: java.lang.IncompatibleClassChangeError: class "
        "org.apache.iceberg.spark.source.SparkView can not implement "
        "org.apache.spark.sql.connector.catalog.View, because it is not an interface"
    ),
    "a class that is not there": "(java.lang.NoClassDefFoundError) org/apache/spark/sql/AnyType",
}
"""What Spark 4.3.0 says with Delta Lake 4.4.0 for Spark 4.2, and Iceberg 1.12.0 for Spark 4.1."""


def session_that_fails(words: str) -> SparkSession:
    def fails(*_: Any) -> NoReturn:
        raise RuntimeError(words)

    catalog = SimpleNamespace(databaseExists=fails)
    return cast("SparkSession", SimpleNamespace(catalog=catalog, version="4.3.0"))


@pytest.mark.parametrize("what", WORDS)
def test_it_names_the_error_and_this_spark(what: str) -> None:
    with pytest.raises(OutputRefusedError) as refused:
        Target(session_that_fails(WORDS[what]), "lake.ops", "iceberg").check()
    line = str(refused.value)
    assert line.startswith("lake.ops: what this session has of that format")
    assert "for another Spark than 4.3.0" in line
    assert line.count("\n") == 0


def test_any_other_error_stays_what_it_is() -> None:
    with pytest.raises(RuntimeError, match="a fault of ours"):
        Target(session_that_fails("a fault of ours"), "lake.ops").check()
