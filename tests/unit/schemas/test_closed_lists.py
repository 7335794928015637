"""Columns with words out of a closed list declare it, and rows with another word are refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import polars as pl
import pyarrow as pa
import pytest

import schemas
from analytics.contracts import check_values, contract_schema, table_of, table_of_frame
from analytics.engine.replay_tasks import keep_tables
from analytics.questions.question import Answer
from analytics.questions.timeline import words
from analytics.questions.timeline.question import TIMELINE, TimelineSettings
from analytics.replay.graph import TableStep
from schemas import Column
from schemas.evaluation_rules import timeline_verdicts
from schemas.model import ClosedList, closed_list
from schemas.names import kind_of, text_of
from schemas.reading import SchemaError

if TYPE_CHECKING:
    from analytics.replayed.replayed_workspace import ReplayedWorkspace

OPEN = {
    "an id, or a place in a file": {
        *("finding_id", "held_by_topic_id", "record", "segment", "subtopology_id", "topic_id"),
    },
    "a name that people, clients, brokers or rules give": {
        *("assignor", "protocol", "from_protocol", "to_protocol", "protocol_type"),
        *("from_protocol_type", "to_protocol_type", "server_assignor", "name", "named_by"),
        *("setting", "kip_name", "suite", "record_type", "rule", "table", "type", "log"),
        *("object_type", "columns", "cluster"),
    },
    "a word of Kafka, which may get more": {
        *("state", "from_state", "to_state", "present_state", "transaction_state"),
        *("delivery_state_name", "blocking_state", "isolation_level", "offset_reset"),
    },
    "text that is put together": {
        *(
            "about",
            "after",
            "before",
            "blocked_by",
            "cluster_value",
            "verdicts",
            "expectation",
            "patch_releases",
            "request",
            "snapshot_value",
            "thresholds",
        ),
    },
    "the name of an event, or why a record does not decode": {"event", "fault"},
    "a question, or a code of schemas/gaps, which making a gap checks": {"question", "code"},
}
"""Columns of words that any word may be in, and why."""
_OF_OFFSETS = "offset_verdicts"


def columns_of_words() -> Iterator[tuple[str, Column]]:
    for name, table in schemas.tables().items():
        if table.kind in {"state", "history", "evaluation"}:
            for column in table.columns:
                is_text = column.type in {"string", "array<string>"}
                if is_text and kind_of(column.name) is None and text_of(column.name) == "words":
                    yield name, column


def test_a_column_of_words_declares_them_or_may_hold_any() -> None:
    without = {column.name for _, column in columns_of_words() if column.closed is None}
    named = [each for names in OPEN.values() for each in names]
    assert sorted(without) == sorted(named)


def test_every_closed_list_is_there() -> None:
    columns = [column for table in schemas.tables().values() for column in table.columns]
    lists = [column.closed.values for column in columns if column.closed is not None]
    assert len(lists) > 100
    assert all(lists)


def test_nothing_that_cannot_be_told_is_spelt_otherwise() -> None:
    for table in schemas.tables().values():
        for name, values in table.closed_columns:
            assert not {"cannot tell", "untold", "cannot-tell"} & values, (table.name, name)


def test_the_codes_of_verdicts_are_those_that_the_code_names() -> None:
    named = {
        value
        for name, value in vars(words).items()
        if name.isupper() and isinstance(value, str) and name not in {"HIGH", "MEDIUM", "LOW"}
    }
    assert named - {_OF_OFFSETS} == set(timeline_verdicts())
    assert set(words.OF_CAUSE.values()) <= set(timeline_verdicts())


ROW = dict.fromkeys(words.VERDICTS) | {
    "group_id": "billing",
    "verdict": "lost in the post",
    "rung": "gap",
}
FRAME = pl.DataFrame([ROW], words.VERDICTS)


@pytest.mark.parametrize(
    "make",
    [
        lambda: table_of_frame(_OF_OFFSETS, FRAME),
        lambda: table_of(_OF_OFFSETS, [ROW]),
        lambda: check_values(_OF_OFFSETS, FRAME.to_arrow()),
    ],
    ids=["frame", "rows", "arrow"],
)
def test_another_word_is_refused_with_its_table_and_column(make: Callable[[], object]) -> None:
    with pytest.raises(SchemaError, match=r"offset_verdicts .* verdict is 'lost in the post'"):
        make()


def kept_settings(source: str) -> list[str]:
    """Keep a table of one setting, as a step of a replay does; return which tables are kept."""
    row = dict.fromkeys(contract_schema("configs")) | {"source": source}
    made = {"configs": pl.DataFrame([row], contract_schema("configs"))}
    kept: list[str] = []
    step = TableStep("configs", pl.DataFrame, ())
    keep_tables([step], made, lambda name, _: kept.append(name))
    return kept


def test_what_a_step_of_a_replay_makes_is_refused_where_it_is_made() -> None:
    assert kept_settings("file") == ["configs"]
    with pytest.raises(SchemaError, match=r"configs .* source is 'hearsay'"):
        kept_settings("hearsay")


def test_what_a_question_answers_with_is_refused_where_it_is_made() -> None:
    answer = Answer({_OF_OFFSETS: FRAME.to_arrow(compat_level=pl.CompatLevel.oldest())})
    question = replace(TIMELINE, answer=lambda _state, _settings: answer)
    with pytest.raises(SchemaError, match="verdict is 'lost in the post'"):
        question.ask(cast("ReplayedWorkspace", None), TimelineSettings())


def test_null_and_every_word_of_the_list_are_taken() -> None:
    values = [*timeline_verdicts(), None]
    check_values(_OF_OFFSETS, pl.DataFrame({"verdict": values}))


def test_each_word_of_a_list_in_a_cell_is_looked_at() -> None:
    known = next(iter(dict(schemas.table("region_checkpoints").closed_columns)["findings"]))
    rows = pa.table({"findings": pa.array([[known], None, []], pa.list_(pa.string()))})
    check_values("region_checkpoints", rows)
    with pytest.raises(SchemaError, match="findings is 'new'"):
        check_values("region_checkpoints", pl.DataFrame({"findings": [[known, "new"]]}))


@pytest.mark.parametrize(
    "document", [[], ["a", "a"], "a", {"of": "lag.verdicts", "besides": []}, [1]]
)
def test_what_is_no_list_is_refused(document: object) -> None:
    with pytest.raises(SchemaError):
        closed_list(document)


def test_a_list_may_be_of_several_sections() -> None:
    found = ClosedList(of=("lag.verdicts", "share.statuses")).values
    assert {"caught_up", "window_full"} <= set(found)
    with pytest.raises(SchemaError, match="has no 'verdict'"):
        _ = ClosedList(of=("lag.verdict",)).values
