"""Text fits a page, what went wrong comes first, and options choose what is shown."""

from __future__ import annotations

import csv
import json

import pyarrow as pa
import pytest

from reports.layout.output_format import OutputFormat, Paper, UnknownColumnError
from reports.layout.section import Section
from reports.plain_text import WIDTH
from reports.row_formats import render

LONG = "checkout-" + "x" * 230 + "-eu-west-1"
GROUPS = pa.table(
    {
        "group_id": ["billing", LONG, "search"],
        "lag": pa.array([5, None, 170], pa.int64()),
        "is_wrong": [False, False, True],
        "reason": ["", "", "the log begins at 100, and the offset is 20"],
    }
)
HEADS = {"group_id": "GROUP", "lag": "LAG", "reason": "REASON"}
SECTION = Section(GROUPS, HEADS, name="groups", problem="is_wrong")
OTHER = Section(pa.table({"event": ["left"]}), {"event": "EVENT"}, name="events", key="events")


def lines_of(section: Section, wanted: OutputFormat | str = "text") -> list[str]:
    return render([section], wanted, {}).split("\n")


def test_a_long_name_loses_its_middle_and_widens_no_other_row() -> None:
    lines = lines_of(SECTION)
    assert max(map(len, lines)) <= WIDTH
    assert next(line for line in lines if "checkout" in line).split()[0].endswith("eu-west-1")
    billing = next(line for line in lines if "billing" in line)
    assert billing.index("5") < 40, "its own name is short"


def test_wide_text_has_everything() -> None:
    assert any(LONG in line for line in lines_of(SECTION, OutputFormat("text", is_wide=True)))


def test_names_that_would_look_alike_keep_what_tells_them_apart() -> None:
    names = [f"{'a' * 100}-{number}-{'b' * 100}" for number in range(3)]
    lines = lines_of(Section(pa.table({"group_id": names}), {"group_id": "GROUP"}))[1:]
    assert len(set(lines)) == len(names)
    assert all(str(number) in line for number, line in enumerate(lines))


def test_what_went_wrong_is_marked_and_comes_first() -> None:
    lines = lines_of(SECTION)
    assert [line[:1] for line in lines] == [" ", "!", " ", " "]
    assert "search" in lines[1]


def test_only_a_terminal_gets_colors() -> None:
    assert "\x1b[31m! search" in "\n".join(
        lines_of(SECTION, OutputFormat(paper=Paper(is_colored=True)))
    )
    assert "\x1b" not in "\n".join(lines_of(SECTION))


def test_only_what_went_wrong() -> None:
    lines = lines_of(SECTION, OutputFormat(only_problems=True))
    assert "search" in lines[1]
    assert lines[2:] == ["(2 more rows not shown)"]
    assert lines_of(OTHER, OutputFormat(only_problems=True)) == ["No row is marked as a problem."]
    answer = json.loads(render([SECTION], OutputFormat("json", only_problems=True), {}))
    assert ([row["group_id"] for row in answer["rows"]], answer["left_out"]) == (
        ["search"],
        {"groups": 2},
    )


@pytest.mark.parametrize(
    ("column", "order"),
    [
        ("lag", ["search", "billing", LONG]),
        ("-LAG", ["billing", "search", LONG]),
        ("group_id", ["billing", LONG, "search"]),
        ("-group", ["search", LONG, "billing"]),
    ],
)
def test_numbers_are_sorted_from_the_largest_names_from_a(column: str, order: list[str]) -> None:
    text = render([SECTION, OTHER], OutputFormat("csv", table="groups", sort=column), {})
    assert [row["group_id"] for row in csv.DictReader(text.splitlines())] == order


def test_a_column_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(UnknownColumnError, match="no column 'age'; the columns are group_id, lag"):
        render([SECTION], OutputFormat("text", sort="age"), {})


def test_the_first_rows_and_how_many_more_there_are() -> None:
    lines = lines_of(SECTION, OutputFormat(top=1))
    assert lines[-1] == "(2 more rows not shown)"
    assert len(render([SECTION], OutputFormat("csv", top=1), {}).splitlines()) == 2


def test_json_has_each_table_under_its_key_and_csv_the_one_that_is_asked_for() -> None:
    answer = json.loads(render([OTHER, SECTION], "json", {"as_of": None}))
    assert (answer["events"], len(answer["rows"])) == ([{"event": "left"}], 3)
    assert render([OTHER, SECTION], "csv", {}).startswith("group_id,")
    only = OutputFormat("json", table="events")
    assert json.loads(render([OTHER, SECTION], only, {}))["rows"] == [{"event": "left"}]
    assert render([OTHER, SECTION], OutputFormat("csv", table="events"), {}) == "event\nleft"


def test_a_sentence_goes_on_in_the_next_line_of_its_column() -> None:
    reason = "of what was below offset 4711 " * 6
    rows = pa.table({"group_id": ["g"], "reason": [reason], "at": ["2026-11-21T09:15:07.034Z"]})
    section = Section(rows, {"group_id": "GROUP", "reason": "REASON", "at": "AT"})
    lines = lines_of(section)
    assert max(map(len, lines)) <= WIDTH
    assert " ".join(" ".join(line.split()) for line in lines[1:]).count("offset") == 6


def test_columns_that_are_spare_give_way_and_are_named() -> None:
    columns = {f"column_{number}": f"COLUMN-NUMBER-{number}" for number in range(9)}
    rows = pa.table({name: [1] for name in columns})
    lines = lines_of(Section(rows, columns, spare=["column_3", "column_7"]))
    assert "COLUMN-NUMBER-3 " not in lines[0]
    assert lines[-1].startswith("left out to fit 120 columns: COLUMN-NUMBER-3")


def test_where_no_column_is_spare_the_last_ones_give_way_and_a_row_stays_a_line() -> None:
    columns = {f"column_{number}": f"COLUMN-NUMBER-{number}" for number in range(9)}
    lines = lines_of(Section(pa.table({name: [1, 2] for name in columns}), columns))
    assert len(lines) == 4
    assert lines[0].split() == [f"COLUMN-NUMBER-{number}" for number in range(7)]
    assert lines[-1] == (
        "left out to fit 120 columns: COLUMN-NUMBER-8, COLUMN-NUMBER-7 (--wide shows all)"
    )


@pytest.mark.parametrize("width", [40, 80, 200])
def test_the_page_is_as_wide_as_the_terminal(width: int) -> None:
    columns = {f"column_{number}": f"COLUMN-NUMBER-{number}" for number in range(15)}
    rows = pa.table({name: [1, 2] for name in columns})
    lines = lines_of(Section(rows, columns), OutputFormat(paper=Paper(width)))
    assert max(map(len, lines)) <= width
    assert len(lines[0].split()) == {40: 2, 80: 4, 200: 11}[width]


def test_of_a_long_list_the_first_items_are_shown_and_how_many_more_there_are() -> None:
    partitions = ",".join(map(str, range(400)))
    rows = pa.table({"group_id": ["g"], "partitions": [partitions]})
    section = Section(rows, {"group_id": "GROUP", "partitions": "PARTITIONS"})
    lines = lines_of(section)
    shown = "".join(each.split()[-1] for each in lines[1:-1])
    count = int(lines[-1].split()[1])
    assert lines[-1].split()[0::2] == ["and", "more"]
    assert partitions.startswith(shown)
    assert shown.count(",") + count == 400
    assert any(partitions in line for line in lines_of(section, OutputFormat(is_wide=True)))


def test_a_sentence_stands_below_its_row_where_there_is_no_room_beside_it() -> None:
    columns = {f"column_{number}": f"COLUMN-NUMBER-{number}" for number in range(6)}
    rows = pa.table({**{name: [1] for name in columns}, "reason": ["the log is cut off " * 9]})
    lines = lines_of(Section(rows, {**columns, "reason": "REASON"}))
    assert lines[1].strip() == "REASON"
    assert lines[3].startswith("    the log is cut off")
    assert max(map(len, lines)) <= WIDTH


def test_a_spare_sentence_for_which_there_is_no_room_stands_below_its_row() -> None:
    columns = {f"column_{number}": f"COLUMN-NUMBER-{number}" for number in range(6)}
    rows = pa.table({**{name: [1] for name in columns}, "blocked_by": ["open transaction of 7"]})
    heads = {**columns, "blocked_by": "BLOCKED-BY"}
    lines = lines_of(Section(rows, heads, spare=["blocked_by"]))
    assert [each.strip() for each in lines[1:2] + lines[3:]] == [
        "BLOCKED-BY",
        "open transaction of 7",
    ]


def test_what_rows_are_looked_up_by_is_cut_last() -> None:
    columns = {f"column_{number}": f"COLUMN-NUMBER-{number}" for number in range(5)}
    rows = pa.table(
        {"group_id": ["checkout-service-eu-1"], "host": ["h"], **{name: [1] for name in columns}}
    )
    heads = {"group_id": "GROUP", "host": "HOST-OF-THE-MEMBER", **columns}
    lines = lines_of(Section(rows, heads, spare=["host"]))
    assert lines[1].startswith("checkout-service-eu-1 ")
    assert lines[2] == "left out to fit 120 columns: HOST-OF-THE-MEMBER (--wide shows all)"
    lines = lines_of(Section(rows, heads))
    assert lines[1].startswith("check"), "it is cut, and the table stays one"
    assert len(lines) == 2


def test_fractions_have_as_many_digits_as_a_person_reads() -> None:
    rows = pa.table({"rate": [0.123456, 1234.5678, 123456.78, None, 1e-9]})
    lines = lines_of(Section(rows, {"rate": "RATE"}))
    assert lines[1:] == ["0.1235", "1235", "123457", "-", "1e-9"]
    assert "0.123456" in render([Section(rows, {"rate": "RATE"})], "csv", {})
