"""Whatever is written into a checkpoint's fields, it is read, or refused with the file's name."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analytics.errors import GroupscopeError
from analytics.seeds.region.merge import merged
from analytics.seeds.region.recognized import read_checkpoints
from analytics.seeds.region.rows import tables_of
from analytics.seeds.region.table import checkpoints_of, evaluate_regions
from schemas.evaluation_rules import region_rules

RULES = region_rules()
PARTITION = {"topic": "t", "partition": 0}
DOCUMENTS: dict[str, Any] = {
    "region": {
        "group_id": "g",
        "checkpoint_sequence_id": 7,
        "operator": "A",
        "operators": ["A"],
        "offsets": [PARTITION | {"offset": 1}],
        "at": 5,
    },
    "merge": {
        "consolidatedOffsetMap": [[PARTITION, 1]],
        "contributedOperatorNames": ["A"],
        "nExpectedContributions": 1,
        "key": {"sequenceId": 7, "resetAttempt": 0},
    },
    "flink": {
        "checkpoint_id": 7,
        "checkpoint_timestamp": 5,
        "operators": [{"uid": "s", "subtask": 0, "splits": [PARTITION | {"startingOffset": 1}]}],
    },
    "iceberg": {
        "format-version": 2,
        "snapshots": [
            {
                "snapshot-id": 1,
                "sequence-number": 7,
                "timestamp-ms": 5,
                "summary": {"kafka.connect.offsets.t.g": '{"0":1}'},
            }
        ],
    },
    "spark": {"orders": {"0": 5}},
    "hudi": {"extraMetadata": {"deltastreamer.checkpoint.key": "t,0:1"}},
}
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)


def places(document: Any, before: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the ways to everything in a document."""
    pairs = (
        document.items()
        if isinstance(document, dict)
        else enumerate(document)
        if isinstance(document, list)
        else ()
    )
    return [
        way for name, each in pairs for way in ((*before, name), *places(each, (*before, name)))
    ]


def written(form: str, document: Any, folder: Path) -> Path:
    text = json.dumps(document)
    if form == "hudi":
        path = folder / "20261121091000123.commit"
        path.write_text(text)
        return path
    if form != "spark":
        path = folder / "checkpoint.json"
        path.write_text(text)
        return path
    for name in ("offsets", "commits"):
        (folder / name).mkdir(exist_ok=True)
    (folder / "offsets" / "0").write_text(f"v1\n{{}}\n{text}")
    (folder / "commits" / "0").write_text("v1\n{}")
    return folder


@pytest.mark.parametrize("form", DOCUMENTS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(data=st.data())
def test_any_value_anywhere_is_read_or_refused(
    form: str, data: st.DataObject, tmp_path: Path
) -> None:
    document = copy.deepcopy(DOCUMENTS[form])
    *way, last = data.draw(st.sampled_from(places(document)))
    holder = document
    for each in way:
        holder = holder[each]
    holder[last] = data.draw(JSON)
    path = written(form, document, tmp_path)
    said, made = "", []
    try:
        made = read_checkpoints([str(path)], "g")
    except GroupscopeError as error:
        said = str(error)
    assert not said or str(tmp_path) in said
    tables = tables_of(evaluate_regions(checkpoints_of(made, RULES), None, RULES))
    offsets = tables["region_checkpoint_offsets"]["checkpoint_offset"].to_pylist()
    assert all(each is None or each >= 0 for each in offsets)


@pytest.mark.parametrize("form", DOCUMENTS)
def test_unchanged_it_is_read(form: str, tmp_path: Path) -> None:
    (found,) = merged(
        read_checkpoints([str(written(form, DOCUMENTS[form], tmp_path))], "g"), 15_000
    )
    assert [each.offset for each in found.offsets.values()] in ([1], [5])
