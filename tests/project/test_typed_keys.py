"""A key that no type of the manifest names is an error of mypy, however it is asked for."""

from __future__ import annotations

from pathlib import Path

from mypy import api

READER = """
from typing import TypedDict

class Row(TypedDict, total=False):
    offset: int

def read(row: Row) -> list[object]:
    return [row.get("offset"), row.get("ofset"), row["ofset"]]
"""


def test_a_key_that_is_misspelt_is_refused(tmp_path: Path, repository: Path) -> None:
    (tmp_path / "reader.py").write_text(READER)
    (tmp_path / "mypy.ini").write_text(
        f"[mypy]\nplugins = {repository}/tests/support/typed_dict_keys.py\n"
    )
    said, _, _ = api.run(
        [
            *("--config-file", str(tmp_path / "mypy.ini")),
            *("--cache-dir", str(tmp_path / "cache")),
            *("--hide-error-context", "--no-pretty", str(tmp_path / "reader.py")),
        ]
    )
    found = [line.partition("error: ")[2] for line in said.splitlines() if "error: " in line]
    assert found == [
        'TypedDict has no key "ofset"  [typeddict-item]',
        'TypedDict "Row" has no key "ofset"  [typeddict-item]',
    ]
