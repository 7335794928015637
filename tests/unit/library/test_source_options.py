"""What the data source is asked for is checked before anything is read, and nothing is ignored."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.pandas.types import from_arrow_schema

from analytics.decode.workload import SMALL_BYTES, SMALL_RECORDS
from analytics.errors import InputNotRecognizedError, SettingRefusedError
from analytics.library.source_options import (
    BESIDE_THE_DUMP,
    LINE,
    OF_DECODING,
    OF_READ,
    OF_REPLAY,
    QUESTION,
    STATES_AROUND,
    WORK,
    SourceOptions,
    questions_with,
    schema_of,
    settings_of,
    source_options,
)
from analytics.questions.question import QUESTIONS, question
from schemas import tables

NO_PLAIN_VALUES = {
    *{(name, setting) for name, setting in BESIDE_THE_DUMP.items()},
    ("lag", "since"),
    ("forensics", STATES_AROUND),
    ("region", "initial_offsets"),
    ("expiration", "kafka_version"),
}
"""Settings that no option has: states, what a command reads of files, an option of the replay."""


def asked(**options: str) -> SourceOptions:
    """Options as Spark hands them over."""
    return source_options({"path": "dump", **{each.lower(): options[each] for each in options}})


@pytest.mark.parametrize("name", [each for each in tables() if each != "saved_runs"])
def test_every_table_has_the_columns_of_its_contract(name: str) -> None:
    found = from_arrow_schema(schema_of(name))
    columns = [(each.name, each.dataType.simpleString()) for each in found.fields]
    assert columns == [(each.name, each.type) for each in tables()[name].columns]


def test_the_page_names_every_option_and_how_much_is_small(repository: Path) -> None:
    text = (repository / "docs" / "data-source.md").read_text("utf-8")
    assert set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)) == {
        *(*OF_READ, *OF_DECODING, *OF_REPLAY),
        *(LINE, QUESTION, WORK),
    }
    assert f"{SMALL_BYTES >> 20} MB of logs, and {SMALL_RECORDS:,} records" in " ".join(
        text.split()
    )
    for name in BESIDE_THE_DUMP:
        assert f"`{name}`" in text


def test_no_two_questions_that_can_be_asked_have_a_table_but_for_those_of_an_incident() -> None:
    several = {name for name in tables() if len([each.name for each in questions_with(name)]) > 1}
    assert several == {"gaps", "offset_verdicts"}


def test_of_no_table_it_is_the_commits() -> None:
    assert asked().table == "offset_commit"


def test_all_that_may_be_set_of_questions_is_an_option_but_for_what_is_no_plain_value() -> None:
    lacking = {
        (name, each.name)
        for name in QUESTIONS
        for each in dataclasses.fields(question(name).settings)  # type: ignore[arg-type]
        if each.name not in {one.name for one in settings_of(question(name)).values()}
    }
    assert lacking == NO_PLAIN_VALUES


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        ({"table": "lag", "by": "group", "minLag": "5"}, {"by": "group", "min_lag": 5}),
        ({"table": "lag", "statuses": "STOP, STALL"}, {"statuses": ("STOP", "STALL")}),
        ({"table": "lag", "WITHCAPACITY": "False"}, {"with_capacity": False}),
        (
            {"table": "retention_what_if", "retentionMinutes": "1,1440"},
            {"retention_minutes": (1, 1440)},
        ),
        ({"table": "rebalances", "stormMinutes": "2.5"}, {"storm_minutes": 2.5}),
        (
            {"table": "rebalances", "timeFrom": "2026-11-21T09:20:00Z"},
            {"time_from": "2026-11-21T09:20:00Z"},
        ),
        ({"table": "rebalances", "timeTo": "1795252800000"}, {"time_to": 1795252800000}),
        ({"table": "gaps", "question": "usage", "disk": "1000"}, {"disk": 1000}),
    ],
)
def test_settings_of_a_question_are_options(
    options: dict[str, str], settings: dict[str, Any]
) -> None:
    assert asked(**options).settings == settings


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"table": "group"}, "there is no table 'group': did you mean 'groups'?"),
        ({"table": "saved_runs"}, "there is no table 'saved_runs'"),
        ({"table": "groups", "asof": "x"}, "option asOf is 'x'; looked for a time like"),
        ({"table": "groups", "as_of": "x"}, "no option 'as_of': did you mean 'asOf'?"),
        ({"table": "groups", "by": "group"}, "table groups has no option 'by'"),
        ({"table": "groups", "line": "a"}, "table groups has no option 'line'"),
        ({"asOf": "2026-11-21"}, "table offset_commit has no option 'asof'"),
        ({"preferCopies": "a"}, "no option 'prefercopies': did you mean 'preferCopy'?"),
        ({"pushFilters": "yes"}, "option pushFilters is 'yes'; looked for true or false"),
        ({"columns": "topc"}, "table offset_commit has no column 'topc': did you mean 'topic'?"),
        ({"table": "lag", "minLg": "1"}, "no option 'minlg': did you mean 'minLag'?"),
        ({"table": "lag", "minLag": "few"}, "option minLag is 'few'; looked for a whole number"),
        (
            {"table": "rebalances", "stormMinutes": "nan"},
            "option stormMinutes is 'nan'; looked for a number",
        ),
        (
            {"table": "rebalances", "timeTo": "99999999999999999"},
            "option timeTo is '99999999999999999'; looked for a time",
        ),
        ({"table": "lag", "question": "lags"}, "there is no question 'lags': did you mean 'lag'?"),
        ({"table": "lag", "question": "usage"}, "question usage has no table 'lag': it has"),
        ({"table": "groups", "question": "lag"}, "question lag has no table 'groups'"),
        ({"table": "gaps", "by": "group"}, "table gaps has no option 'by'"),
        (
            {"table": "changed_offsets", "question": "diff"},
            "no option can say what diff is asked with (since)",
        ),
        ({"table": "data_segments", "asOf": "2026-11-21"}, "table data_segments has no option"),
        ({"table": "findings", "asOf": "2026-11-21"}, "table findings has no option 'asof'"),
    ],
)
def test_what_is_unknown_is_an_error_that_names_the_nearest(
    options: dict[str, str], words: str
) -> None:
    with pytest.raises(SettingRefusedError) as raised:
        asked(**options)
    assert words in str(raised.value)


def test_several_paths_are_one_dump() -> None:
    assert source_options({"paths": '["a", "b"]'}).paths == ("a", "b")
    with pytest.raises(InputNotRecognizedError, match=r"needs load\(PATH\)"):
        source_options({})


def test_each_column_is_there_once_and_in_the_order_that_is_asked_for() -> None:
    assert asked(columns="partition, topic,partition").schema.names == ["partition", "topic"]


def test_what_is_asked_besides_rows_is_no_matter_of_what_is_stored() -> None:
    assert not asked(table="lag", columns="group_id", work="folder").is_asked
    assert asked(table="lag", by="group").is_asked
    assert asked(table="groups", asOf="2026-11-21").is_asked


@pytest.mark.parametrize(
    "settings",
    [
        ("lag", {"by": "grup"}),
        ("share", {"by": "member"}),
        ("usage", {"by": "member"}),
        ("describe", {"what": "offset"}),
        ("describe", {"group_type": "shared"}),
        ("expiration", {"rules": "kip-1"}),
    ],
)
def test_a_word_that_a_setting_does_not_know_is_refused(
    settings: tuple[str, dict[str, str]],
) -> None:
    name, values = settings
    with pytest.raises(SettingRefusedError, match=f"^{next(iter(values))} is "):
        question(name).settings(**values)
