"""`--topic-ids FILE`: names for topic ids that the dump cannot name."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import click

from analytics.errors import InputNotRecognizedError
from analytics.side_files import MOST_INT, bad, json_rows, plain_text, read_text, whole_number

_ID = re.compile(r"[A-Za-z0-9_-]{22}")
_LOOKED_FOR = "a CSV with the header topic_id,topic[,partitions], or JSON objects with these keys"

topic_ids_option = click.option(
    "--topic-ids",
    metavar="FILE",
    help="Names for topic ids that the dump cannot name, as CSV or JSON: topic_id, topic and, if "
    "known, partitions.",
)
"""`--topic-ids` as `topic_ids: str | None`."""


class NamedTopic(NamedTuple):
    """A topic as a side file names it; the order is that of the table `topics`."""

    topic: str
    topic_id: str
    partitions: int | None


def read_topic_ids(path: str) -> list[NamedTopic]:
    """Read a side file, sorted and each line once.

    Raises:
        InputNotRecognizedError: It is neither of the two forms, or says something else of a topic.
        InputUnreadableError: It cannot be read.
    """
    text = read_text(path)
    is_json = text.lstrip()[:1] in ("[", "{")
    rows = json_rows(text, path) if is_json else _csv_rows(text, path)
    named = {_named(row, f"{path}, row {number}") for number, row in enumerate(rows, 1)}
    return sorted(named, key=lambda each: (each[:2], each[2] or 0))


def _csv_rows(text: str, path: str) -> list[Mapping[str, Any]]:
    try:
        return list(csv.DictReader(text.splitlines(), skipinitialspace=True))
    except csv.Error as error:
        raise InputNotRecognizedError(f"{path}: {error}; looked for {_LOOKED_FOR}") from error


def _named(row: Any, where: str) -> NamedTopic:  # noqa: ANN401 - as the file has it
    if not isinstance(row, Mapping):
        raise bad(where, "the row", row, _LOOKED_FOR)
    if missing := [name for name in ("topic_id", "topic") if row.get(name) in (None, "")]:
        raise InputNotRecognizedError(
            f"{where}: there is no {missing[0]}; looked for {_LOOKED_FOR}"
        )
    topic_id = row["topic_id"]
    if not (isinstance(topic_id, str) and _ID.fullmatch(topic_id)):
        raise bad(where, "topic_id", topic_id, "a topic id, which has 22 characters")
    partitions = row.get("partitions")
    if partitions not in (None, ""):
        partitions = whole_number(partitions, "partitions", where, least=1, most=MOST_INT)
    topic = plain_text(row["topic"], "topic", where)
    return NamedTopic(topic, topic_id, partitions or None)
