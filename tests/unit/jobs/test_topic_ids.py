"""`--topic-ids`: names for ids, as CSV or JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from analytics.errors import InputNotRecognizedError
from jobs.cli.settings_files import NamedTopic, read_topic_ids

ID, OTHER = "GZ4rnq8sRxmquQaghojNEA", "6bQYs6Z9T1ayNK9_zQO6Gw"
ROWS = [
    {"topic_id": OTHER, "topic": "orders", "partitions": 12},
    {"topic_id": ID, "topic": "clicks"},
]
NAMED = [NamedTopic("clicks", ID, None), NamedTopic("orders", OTHER, 12)]


@pytest.mark.parametrize(
    "text",
    [
        f"topic_id,topic,partitions\n{OTHER},orders,12\n{ID},clicks,\n{ID},clicks,\n",
        json.dumps(ROWS),
        json.dumps({"rows": ROWS}),
        "\n".join(map(json.dumps, ROWS)),
    ],
)
def test_names_are_read_from_any_form_and_sorted(tmp_path: Path, text: str) -> None:
    file = tmp_path / "ids"
    file.write_text(text, "utf-8")
    assert read_topic_ids(str(file)) == NAMED


@pytest.mark.parametrize(
    "text", ["topic\norders\n", "topic_id,topic\nshort,orders\n", "[1]", "{", '{"topic_id": 1}']
)
def test_anything_else_is_refused_with_what_was_looked_for(tmp_path: Path, text: str) -> None:
    file = tmp_path / "ids"
    file.write_text(text, "utf-8")
    with pytest.raises(InputNotRecognizedError, match=r"topic_id|not JSON"):
        read_topic_ids(str(file))
