"""Names of signs of shells, HTML and tables, and names that are numbers: none is left over."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from jobs.cli.main import cli
from tests.support.decoded_here import decoded_here
from tests.support.hostile_dump import NAMES, NUMBERS, SIGNS, name_of, write_hostile_dump
from tests.support.hostile_records import TYPES

ANY_NAME = re.compile("zq[gmichtdrpexon]|[gksw]qz|[michtdrpexon]qz")
"""Where a name begins or ends, in whichever way its signs are escaped."""

CONFIG = """
suppressions:
  - {rule: generations_without_record, group_id: "zqg<b>*", reason: zqg<b>bold</b>gqz is known,
     owner: zqgtwo wordsgqz, until: 2099-01-01}
"""
FORMATS = ("html", "text", "markdown", "json")


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [*map(str, arguments)], standalone_mode=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("hostile")
    decoded_here([f"broker-1={write_hostile_dump(made / 'dump')}"], made / "decoded")
    (made / "key").write_bytes(bytes(range(32)))
    (made / "audit.yaml").write_text(CONFIG, "utf-8")
    return made


@pytest.fixture(scope="module")
def audited(folder: Path) -> tuple[Path, Result]:
    asked = ("--config", folder / "audit.yaml", "--format", "csv")
    return folder / "first", audit(folder, "first", *asked)


def audit(folder: Path, name: str, *options: object) -> Result:
    result = run(
        *("audit", folder / "decoded", "--out", folder / name, "--redact", folder / "key"),
        *("--metrics", folder / name / "audit.prom", "--fail-on", "never", *options),
    )
    assert result.exception is None, result.output
    # What happened to some offsets no record tells: that is so whatever findings are asked for.
    assert result.return_value == 3, result.output
    return result


def texts_of(folder: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(folder.rglob("*")):
        if path.suffix == ".parquet":
            rows = pq.read_table(path)
            cells = json.dumps(rows.to_pylist(), default=str, ensure_ascii=False)
            yield str(path), f"{path}{rows.schema.names}{cells}"
        elif path.is_file():
            yield str(path), f"{path}{path.read_text('utf-8')}"


def with_names(texts: Iterator[tuple[str, str]]) -> list[tuple[str, str]]:
    found = ((name, ANY_NAME.search(text), text) for name, text in texts)
    return [(name, text[at.start() - 40 : at.end() + 40]) for name, at, text in found if at]


def test_the_dump_has_the_names(folder: Path) -> None:
    assert with_names(texts_of(folder / "decoded"))
    commits = pq.read_table(folder / "decoded" / "decoded" / "offset_commit").to_pylist()
    assert {each["key"]["group"] for each in commits} == {name_of("g", each) for each in NAMES}
    assert {each["value"]["metadata"] for each in commits} == {name_of("d", each) for each in NAMES}
    assert pq.read_table(folder / "decoded" / "decoded" / "undecoded").num_rows == 0
    for group_type, letter in TYPES.items():
        groups = {name_of(f"g{letter}", each) for each in SIGNS}
        rows = pq.read_table(folder / "decoded" / "decoded" / f"{group_type}_group_metadata")
        assert {each["group_id"] for each in rows["key"].to_pylist()} == groups
    topics = pq.read_table(folder / "decoded" / "decoded" / "topic_record")["value"].to_pylist()
    assert {each["name"] for each in topics} > {name_of("t", each) for each in SIGNS}


def test_groups_of_all_types_are_told_of_without_names(audited: tuple[Path, Result]) -> None:
    rows = pq.read_table(audited[0] / "state" / "groups").to_pylist()
    found = Counter(each["group_type"] for each in rows)
    assert found == {"classic": len(NAMES), **dict.fromkeys(TYPES, len(SIGNS))}
    assert pq.read_table(audited[0] / "state" / "members").num_rows == sum(found.values())
    assert pq.read_table(audited[0] / "state" / "share_partitions").num_rows == len(SIGNS)
    settings = pq.read_table(audited[0] / "state" / "configs")["name"].to_pylist()
    assert "cleanup.policy" in settings
    assert len({each for each in settings if each.startswith("setting-")}) == len(SIGNS)


def test_no_file_and_no_word_has_a_name(audited: tuple[Path, Result]) -> None:
    out, result = audited
    assert with_names(texts_of(out)) == []
    assert not ANY_NAME.search(result.output)


def test_no_page_of_any_form_has_a_name(audited: tuple[Path, Result], tmp_path: Path) -> None:
    for form in FORMATS:
        shown = run("report", audited[0], "--format", form, "--output", tmp_path / form)
        assert shown.return_value == 0, shown.output
    assert {each.name for each in tmp_path.iterdir()} == set(FORMATS)
    assert with_names(texts_of(tmp_path)) == []


def test_names_that_are_numbers_are_gone_and_numbers_are_not(
    audited: tuple[Path, Result],
) -> None:
    rows = pq.read_table(audited[0] / "state" / "committed_offsets").to_pylist()
    known = {"group_id", "topic", "metadata"}
    assert not {row[name] for row in rows for name in known} & set(NUMBERS)
    told = sorted((row["partition"], row["committed_offset"]) for row in rows)
    assert told == [(number, 1000 + number) for number in range(len(NAMES))]
    assert len({row["group_id"] for row in rows}) == len(NAMES)
    findings = (audited[0] / "findings.jsonl").read_text("utf-8").splitlines()
    for finding in map(json.loads, findings):
        assert finding["since"] is None or finding["since"].startswith("2023-11-14T22:")


def test_what_a_team_accepts_by_name_is_suppressed(audited: tuple[Path, Result]) -> None:
    (row,) = pq.read_table(audited[0] / "evaluations" / "suppressions").to_pylist()
    assert row["suppressed"] == 1


@pytest.mark.long
def test_since_an_earlier_audit_nothing_is_new_and_no_name_is_there(
    folder: Path, audited: tuple[Path, Result]
) -> None:
    result = audit(folder, "second", "--config", folder / "audit.yaml", "--since", audited[0])
    assert with_names(texts_of(folder / "second")) == []
    assert not ANY_NAME.search(result.output)
    changes = pq.read_table(folder / "second" / "evaluations" / "finding_changes").to_pylist()
    assert {each["change"] for each in changes} == {"still_there"}


@pytest.mark.long
@pytest.mark.parametrize("form", ["text", "json", "markdown"])
def test_no_form_of_the_answer_has_a_name(folder: Path, form: str) -> None:
    result = audit(folder, form, "--format", form)
    assert not ANY_NAME.search(result.output)
