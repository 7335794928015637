"""What a running coordinator of 3.x forgets and one that loads the same log does not.

Where an offset or its group is deleted, it also drops the commits of open transactions from its
memory (``GroupMetadata.removeOffsets``). No record tells of that: a broker that loads the log still
has them pending, and has them committed once the transaction is. Replay answers as that one does.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.brokers.asking import Answer
from tests.brokers.releases import Release

Key = tuple[str, str, int]
_TRANSACTIONAL = re.compile(r"^baseOffset: .* isTransactional: true isControl: false ")
_OFFSET_KEY = re.compile(r' key: (\{"type":"1",.*?\}\}) payload: (<DELETE>)?')


def forgotten_keys(printed: Iterable[str]) -> set[Key]:
    """Return the offsets of which a tombstone follows a commit within a transaction.

    Args:
        printed: Lines of Kafka's tool about one internal partition, in the order of the log.
    """
    in_transactions: set[Key] = set()
    forgotten: set[Key] = set()
    transactional = False
    for line in printed:
        if line.startswith("baseOffset: "):
            transactional = _TRANSACTIONAL.match(line) is not None
        elif found := _OFFSET_KEY.search(line):
            key = _key(json.loads(found[1])["data"])
            if found[2]:
                forgotten |= in_transactions & {key}
            elif transactional:
                in_transactions.add(key)
    return forgotten


def printed_lines(texts: Path) -> dict[str, list[str]]:
    """Return what Kafka's tool printed of each partition of the offsets topic."""
    return {
        folder.name: [
            line
            for text in sorted(folder.glob("*.gz"))
            for line in gzip.decompress(text.read_bytes()).decode(errors="replace").split("\n")
        ]
        for folder in sorted(texts.glob("*/__consumer_offsets-*"))
    }


def with_forgotten(
    running: Answer, loaded: Answer, keys: set[Key], release: Release
) -> tuple[Answer, list[str]]:
    """Return what a running broker answered with what it forgot, and what that is, in words.

    Args:
        running: What it answered.
        loaded: What a fresh broker answered that had loaded the same bytes.
        keys: Of the offsets that it may have forgotten.
        release: Of both; since 4.0 nothing is forgotten.
    """
    if release.line >= (4, 0):
        return running, []
    groups = {group for group, _, _ in keys}
    known = {each["group_id"] for each in running["groups"]}
    added: dict[str, list[Mapping[str, Any]]] = {
        "groups": [
            each
            for each in loaded["groups"]
            if each["group_id"] in groups - known and not each["listed"]["protocolType"]
        ]
    }
    for name in ("committed_offsets", "unstable_offsets"):
        had = {_key_of(each) for each in running[name]}
        added[name] = [each for each in loaded[name] if _key_of(each) in keys - had]
    words = [f"{name} of {each['group_id']}" for name, rows in added.items() for each in rows]
    return {**running, **{name: [*running[name], *rows] for name, rows in added.items()}}, words


def _key(data: Mapping[str, Any]) -> Key:
    return data["group"], data["topic"], data["partition"]


def _key_of(row: Mapping[str, Any]) -> Key:
    return row["group_id"], row["topic"], row["partition"]
