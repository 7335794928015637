"""PySpark sends the JVM fewer messages, and the queries it makes are the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from py4j.clientserver import JavaClient
from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def sent(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every message from here on, but those that let the JVM forget an object."""
    messages: list[str] = []
    send = JavaClient.send_command

    def noted(self: JavaClient, command: str, *arguments: Any, **named: Any) -> Any:
        if not command.startswith("m\n"):
            messages.append(command)
        return send(self, command, *arguments, **named)

    assert spark.sparkContext
    monkeypatch.setattr(JavaClient, "send_command", noted)
    return messages


def test_literals_that_are_equal_but_of_another_type_stay_apart(spark: SparkSession) -> None:
    values = (1, True, "1", None, 1.0, 2**40, b"1", 1, True)
    row = spark.range(1).select(*(F.lit(each).alias(f"c{n}") for n, each in enumerate(values)))
    types = [kind for _, kind in row.dtypes]
    assert types[:5] == ["int", "boolean", "string", "void", "double"]
    assert types[5:] == ["bigint", "binary", "int", "boolean"]
    assert list(row.collect()[0]) == [*values[:6], bytearray(b"1"), 1, True]


@pytest.mark.parametrize("columns", [1, 10, 11, 25])
def test_lists_of_any_length_arrive_whole_and_in_order(spark: SparkSession, columns: int) -> None:
    names = [f"c{n}" for n in range(columns)]
    wide = spark.range(1).select(*(F.lit(n).alias(name) for n, name in enumerate(names)))
    assert wide.select(*names[::-1]).columns == names[::-1]
    assert wide.drop(*names[1:]).columns == names[:1]


def test_a_column_with_the_same_name_serves_several_tables(spark: SparkSession) -> None:
    column = F.col("id")
    again = F.col("id")
    found = spark.range(3).select(column).join(spark.range(2, 5).select(again), "id")
    assert [row["id"] for row in found.collect()] == [2]


def test_what_was_asked_before_is_not_asked_again(sent: list[str]) -> None:
    F.coalesce(F.col("asked"), F.lit(7))
    assert sent
    sent.clear()
    F.col("asked")
    F.lit(7)
    assert sent == []
    F.coalesce("asked", F.lit(7))
    # The list, a Seq of it, and the function.
    assert len(sent) == 3
