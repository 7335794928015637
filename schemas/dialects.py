"""Record types that no release of Kafka has.

Those of its designs are read on request only; those of another broker show that it wrote a record.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from schemas.catalog import documents
from schemas.model import RecordType
from schemas.parse import parse_record_type

CHECKPOINT_DELTA = "checkpoint-delta"
"""Share state as control records of data partitions: an early text of KIP-932."""
KIP_932_TEXT = "kip-932-text"
"""Share state in `__share_group_state` as a late text of KIP-932 has it."""

REDPANDA = "redpanda"
"""What Redpanda writes into `__consumer_offsets` and Kafka does not."""


@cache
def dialect_types(dialect: str) -> Mapping[str, RecordType]:
    """Return the record types of a dialect by the name of their file ("share_delta").

    Raises:
        SchemaError: A file is wrong.
    """
    return MappingProxyType(
        {
            stem: parse_record_type(document, topic=dialect, table=stem, file=file)
            for stem, file, document in documents(f"dialects/{dialect}")
        }
    )


def broken_chain_words() -> Mapping[str, str]:
    """Return why a record of a chain is not applied: each word and what it means."""
    return _words()["broken"]


def odd_chain_words() -> Mapping[str, str]:
    """Return what is odd about a record that is applied: each word and what it means."""
    return _words()["odd"]


def reading_words() -> Mapping[str, str]:
    """Return why a record is not applied by the late text: each word and what it means."""
    return _words()["readings"]


@cache
def _words() -> Mapping[str, Mapping[str, str]]:
    text = files(__package__).joinpath("dialects/words.json").read_text(encoding="utf-8")
    words: Mapping[str, Mapping[str, str]] = json.loads(text)
    return words
