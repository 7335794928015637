"""Files given beside a dump are read whole, or refused with the place that is wrong."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import product
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analytics.errors import InputNotRecognizedError
from analytics.questions.expiration.retention_settings import SettingSources, retention_found
from analytics.replayed.end_offsets import read_end_offsets
from analytics.seeds.region.document_fields import read_initial_offsets
from analytics.side_files import MOST, json_rows, text_of, time_of, whole_number
from jobs.cli.settings_files import read_broker_settings, read_given_settings, read_topic_ids

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NUMBERS = (
    *("-9223372036854775809", "9223372036854775808", "18446744073709551616", "1e400", "-1e400"),
    *("NaN", "Infinity", "-Infinity", "1.5", "-1", "true", '"x"', "[]", "{}", "9" * 400),
    *("9" * 5000, "٣", "0x10", "1_000"),
)
"""None of them an offset, a partition or a number of minutes."""
ENDS = "topic,partition,log_start_offset,log_end_offset,timestamp"
ID = "AAAAAAAAAAAAAAAAAAAAAQ"


def written(folder: Path, content: str | bytes, name: str = "file") -> str:
    file = folder / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(file)


def retention_of(path: str) -> object:
    given = read_given_settings(path)
    return retention_found(SettingSources("4.3", overrides=given))


def retention_of_broker(path: str) -> object:
    return retention_found(SettingSources("4.3", brokers=[read_broker_settings(path)]))


READERS: dict[str, tuple[Callable[[str], Any], str]] = {
    "ends of logs, CSV": (read_end_offsets, f"{ENDS}\norders,0,0,@,\n"),
    "ends of logs, JSON": (
        read_end_offsets,
        '[{"topic": "orders", "partition": 0, "log_end_offset": @}]',
    ),
    "ends of logs, times": (read_end_offsets, f"{ENDS}\norders,0,0,7,@\n"),
    "ends of logs, partitions": (read_end_offsets, f"{ENDS}\norders,@,0,7,\n"),
    "topic ids, CSV": (read_topic_ids, f"topic_id,topic,partitions\n{ID},orders,@\n"),
    "topic ids, JSON": (
        read_topic_ids,
        f'[{{"topic_id": "{ID}", "topic": "orders", "partitions": @}}]',
    ),
    "settings, YAML": (retention_of, "offsets.retention.minutes: @\n"),
    "settings, properties": (retention_of_broker, "node.id=1\noffsets.retention.minutes=@\n"),
    "initial offsets": (read_initial_offsets, '[{"topic": "orders", "partition": 0, "offset": @}]'),
}


@pytest.mark.parametrize("number", NUMBERS, ids=lambda each: each[:12])
@pytest.mark.parametrize("reader", READERS)
def test_a_number_that_is_none_is_refused_in_one_line_that_names_the_file(
    tmp_path: Path, reader: str, number: str
) -> None:
    read, text = READERS[reader]
    file = written(tmp_path, text.replace("@", number))

    if (reader, number) in {("settings, YAML", "0x10"), ("settings, YAML", "1_000")}:
        read(file)  # Which YAML reads as numbers.
        return
    with pytest.raises(InputNotRecognizedError) as refused:
        read(file)

    said = str(refused.value)
    assert "\n" not in said
    assert len(said) < 700
    assert file in said or said.startswith("--config")


ENCODINGS: dict[str, Callable[[str], bytes]] = {
    "UTF-16": lambda text: text.encode("utf-16"),
    "UTF-16 without a mark": lambda text: text.encode("utf-16-le"),
    "UTF-32": lambda text: text.encode("utf-32"),
    "Latin-1": lambda text: text.replace("orders", "\xf6rders").encode("latin-1"),
    "a zero byte": lambda text: text.replace("orders", "or\0ders").encode(),
    "zero bytes alone": lambda _: bytes(50),
    "no byte": lambda _: b"",
    "a picture": lambda _: b"\x89PNG\r\n\x1a\n" + bytes(range(256)),
    "brackets": lambda _: b"[" * 1_200,
    "braces": lambda _: b'{"a":' * 1_200,
    "very many brackets": lambda _: b"[" * 100_000,
    "very many braces": lambda _: b'{"a":' * 100_000,
    "half a surrogate": lambda text: text.replace("orders", "\\ud800").encode(),
    "an open quote": lambda text: text.replace("orders", '"orders').encode(),
}


TAKES_LONG = ("settings, YAML", "very many brackets")


@pytest.mark.parametrize(
    ("reader", "encoding"),
    [
        pytest.param(*each, marks=pytest.mark.long if each == TAKES_LONG else ())
        for each in product(READERS, ENCODINGS)
    ],
)
def test_bytes_of_another_kind_are_refused_in_one_line_or_read(
    tmp_path: Path, reader: str, encoding: str
) -> None:
    read, text = READERS[reader]
    file = written(tmp_path, ENCODINGS[encoding](text.replace("@", "1")))

    said = None
    try:
        read(file)
    except InputNotRecognizedError as refused:
        said = str(refused)

    assert said is None or (file in said and "\n" not in said)


def test_a_mark_of_utf_8_is_no_part_of_the_first_name(tmp_path: Path) -> None:
    ends = written(tmp_path, f"\ufeff{ENDS}\norders,0,0,7,\n", "ends")
    broker = written(tmp_path, "\ufeffoffsets.retention.minutes=7\nnode.id=1\n", "broker")

    assert read_end_offsets(ends)[0]["log_end_offset"] == 7
    assert read_broker_settings(broker).values["offsets.retention.minutes"] == "7"


def test_the_last_offset_there_can_be_is_read(tmp_path: Path) -> None:
    file = written(tmp_path, f"{ENDS}\norders,0,{MOST},{MOST},{MOST // 10**8}\n")

    (row,) = read_end_offsets(file)
    assert (row["log_start_offset"], row["log_end_offset"]) == (MOST, MOST)


def test_a_topic_of_digits_keeps_its_zeros(tmp_path: Path) -> None:
    assert read_end_offsets(written(tmp_path, f"{ENDS}\n007,0,0,7,\n"))[0]["topic"] == "007"


def test_a_refusal_names_the_row_and_the_field(tmp_path: Path) -> None:
    file = written(tmp_path, f"{ENDS}\norders,0,0,7,\norders,1,0,-1,\n")

    with pytest.raises(InputNotRecognizedError, match="row 2: log_end_offset is '-1'"):
        read_end_offsets(file)


def test_a_refusal_of_bytes_names_the_line() -> None:
    with pytest.raises(InputNotRecognizedError, match="ends, line 2: this is not UTF-8"):
        text_of(b"topic\n\xf6rders\n", "ends")
    with pytest.raises(InputNotRecognizedError, match="ends, line 2: this is not JSON"):
        json_rows('{"topic": "orders"}\n{"topic": \n', "ends")


def test_ends_in_parquet_are_held_against_the_same_bounds(tmp_path: Path) -> None:
    row = {"topic": "orders", "partition": 2**40, "log_end_offset": 7}
    pq.write_table(pa.Table.from_pylist([row]), tmp_path / "ends")

    with pytest.raises(InputNotRecognizedError, match="row 1: partition is 1099511627776"):
        read_end_offsets(str(tmp_path / "ends"))


def test_whole_numbers_are_taken_from_every_form_that_holds_one() -> None:
    taken = [whole_number(each, "n", "file") for each in (7, 7.0, " 7 ", "007")]

    assert taken == [7, 7, 7, 7]


def test_times_are_taken_from_every_form_that_holds_one() -> None:
    time = datetime(2026, 11, 21, 9, tzinfo=UTC)
    forms = (1795251600000, "1795251600000", "2026-11-21T09:00:00Z", "2026-11-21T09:00:00", time)

    assert {time_of(each, "timestamp", "file") for each in forms} == {time}
    assert time_of("", "timestamp", "file") is None
