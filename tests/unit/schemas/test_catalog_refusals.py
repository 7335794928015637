"""What the catalogue says about folders whose files do not fit each other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from schemas import SchemaError, catalog, reading

SHARED = {
    "about": "A thing.",
    "versions": "0",
    "flexible": "none",
    "key": [{"name": "groupId", "type": "string", "about": "The group."}],
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder of records that the catalogue reads in place of the real one."""
    monkeypatch.setattr(reading, "files", lambda _package: tmp_path)
    monkeypatch.setattr(catalog, "INTERNAL_TOPICS", ("__things",))
    cached = (catalog.record_types, catalog.all_record_types, catalog.embedded)
    for each in cached:
        each.cache_clear()
    yield tmp_path
    for each in cached:
        each.cache_clear()


def write(folder: Path, name: str, text: str) -> None:
    path = folder / "records" / "__things" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_two_record_types_cannot_have_one_number(folder: Path) -> None:
    write(folder, "one.json", json.dumps({**SHARED, "name": "One", "ids": [4]}))
    write(folder, "two.json", json.dumps({**SHARED, "name": "Two", "ids": [5, 4]}))
    with pytest.raises(SchemaError, match=r"records/__things/two\.json: id 4 is also One"):
        catalog.record_types("__things")


def test_an_embedded_message_needs_its_file(folder: Path) -> None:
    value = [{"name": "blob", "type": "bytes", "about": "Bytes.", "embedded": {"as": "nothing"}}]
    write(folder, "one.json", json.dumps({**SHARED, "name": "One", "ids": [4], "value": value}))
    with pytest.raises(SchemaError, match=r'one\.json: value\.blob: embeds "nothing", which has'):
        catalog.record_types("__things")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "is not JSON"),
        ('{"name": "One", "name": "Two"}', "twice in one object: name"),
        ("[]", "Expected `object`"),
    ],
)
def test_a_file_that_is_no_schema_is_named(folder: Path, text: str, reason: str) -> None:
    write(folder, "one.json", text)
    with pytest.raises(SchemaError, match=rf"^records/__things/one\.json: {reason}"):
        catalog.record_types("__things")
