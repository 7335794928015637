"""What is said where one of Spark's own readers fails: a damaged file, or a read that failed."""

from __future__ import annotations

import pytest

from analytics.errors import InputUnreadableError, ReadFailedError
from analytics.spark_tasks import own_errors

HEAD = """An error occurred while calling o340.collectToPython.
: org.apache.spark.SparkException: [{kind}] Encountered error while reading file s3a://box/rows.parquet.  SQLSTATE: KD001
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.cannotReadFilesError(QueryExecutionErrors.scala:856)
"""  # noqa: E501 - as Spark has it
NO_HINT, NOT_THERE = "FAILED_READ_FILE.NO_HINT", "FAILED_READ_FILE.FILE_NOT_EXIST"

READING = {
    "ConnectionClosedException": [
        "software.amazon.awssdk.thirdparty.org.apache.http.ConnectionClosedException: Premature"
    ],
    "AWSStatus500Exception": [
        "java.util.concurrent.ExecutionException: java.io.IOException: failed",
        "org.apache.hadoop.fs.s3a.AWSStatus500Exception: open s3a://box/rows.parquet: failed",
        "java.lang.RuntimeException: rows.parquet is not a Parquet file",
    ],
    "SocketTimeoutException": [
        "java.io.IOException: Could not read footer for file",
        "java.net.SocketTimeoutException: Read timed out",
    ],
    "SSLHandshakeException": ["javax.net.ssl.SSLHandshakeException: closed"],
    "EOFException": ["java.io.EOFException"],
    "IOException": ["java.io.IOException: filesystem closed"],
    "Input/output error": ["java.io.IOException: Input/output error"],
}
DAMAGED = {
    "the end of a file": [
        "java.io.IOException: Could not read footer for file",
        "java.lang.RuntimeException: file:/rows.parquet is not a Parquet file. Expected magic",
    ],
    "a page": [
        "java.io.IOException: can not read class org.apache.parquet.format.PageHeader",
        "shaded.parquet.org.apache.thrift.protocol.TProtocolException: Required field",
    ],
    "a schema": ["org.apache.parquet.io.InvalidRecordException: qartition not found"],
    "compressed bytes": ["java.io.IOException: FAILED_TO_UNCOMPRESS(5)"],
    "a page that is too short": ["java.nio.BufferUnderflowException"],
    "a length": ["java.lang.NegativeArraySizeException: -3"],
}


def words(causes: list[str], kind: str = NO_HINT) -> str:
    return HEAD.format(kind=kind) + "".join(
        f"Caused by: {each}\n\tat a.B.c(B.java)\n" for each in causes
    )


@pytest.mark.parametrize("why", READING)
def test_a_read_that_failed_says_nothing_about_the_file(why: str) -> None:
    with pytest.raises(ReadFailedError) as raised, own_errors():
        raise RuntimeError(words(READING[why]))
    assert str(raised.value).startswith(f"s3a://box/rows.parquet: cannot be read ({why}): ")
    assert "nothing is concluded from it" in str(raised.value)


@pytest.mark.parametrize("what", DAMAGED)
def test_contents_that_cannot_be_read_are_damage(what: str) -> None:
    with pytest.raises(InputUnreadableError) as raised, own_errors():
        raise RuntimeError(words(DAMAGED[what]))
    assert str(raised.value) == "s3a://box/rows.parquet: cannot be read: it is damaged"


def test_a_file_that_is_gone_and_a_failure_without_a_cause_are_no_damage() -> None:
    for text, why in (
        (words(["java.lang.RuntimeException: x"], NOT_THERE), "it is not there"),
        (words([]), "Spark does not say why"),
    ):
        with pytest.raises(ReadFailedError) as raised, own_errors():
            raise RuntimeError(text)
        assert f"cannot be read ({why}): " in str(raised.value)
