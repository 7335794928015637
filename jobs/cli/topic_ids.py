"""`--topic-ids FILE`: names for topic ids that the dump cannot name."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import click

from analytics.errors import InputUnreadableError

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
        InputUnreadableError: It is not there, or is neither of the two forms.
    """
    text = Path(path).read_text(encoding="utf-8-sig")
    try:
        rows = list(_json_rows(text) if text.lstrip()[:1] in ("[", "{") else _csv_rows(text))
        return sorted({_named(row) for row in rows}, key=lambda each: (each[:2], each[2] or 0))
    except (KeyError, TypeError, ValueError) as error:
        raise InputUnreadableError(f"{path}: {error!s:.200}; looked for {_LOOKED_FOR}") from error


def _csv_rows(text: str) -> Iterator[Mapping[str, Any]]:
    yield from csv.DictReader(text.splitlines(), skipinitialspace=True)


def _json_rows(text: str) -> Iterator[Mapping[str, Any]]:
    """Yield the objects of a list, of an object with `rows`, or one a line."""
    try:
        whole = json.loads(text)
    except ValueError:
        whole = [json.loads(line) for line in text.splitlines() if line.strip()]
    if isinstance(whole, dict):
        whole = whole.get("rows", [whole])
    yield from whole


def _named(row: Mapping[str, Any]) -> NamedTopic:
    topic_id, topic, partitions = row["topic_id"], row["topic"], row.get("partitions")
    if not (topic and isinstance(topic_id, str) and _ID.fullmatch(topic_id)):
        raise ValueError(f"{topic_id!r} for {topic!r} is not a topic id, which has 22 characters")
    return NamedTopic(topic, topic_id, int(partitions) if partitions not in (None, "") else None)
