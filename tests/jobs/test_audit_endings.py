"""How an audit ends: interrupted it leaves nothing that looks finished; what is unreadable is 3.

That it ends with 1 where something is found is in `test_audit`, too, with 2 where it is called
wrongly there and in `test_redaction`.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from analytics.tables.stored_tables import StoredTables
from analytics.workspace import Workspace
from tests.conftest import COMMAND

if TYPE_CHECKING:
    from tests.conftest import Groupscope

ANSWERS = ("summary.json", "findings.jsonl", "report/index.html")


@pytest.fixture(scope="module")
def dump(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two partitions of a real broker, of one of which not a byte can be read."""
    bundled = repository / "tests/data/dumps/kafka-4.2.1-share/broker-1"
    broker = tmp_path_factory.mktemp("dump") / "broker-1"
    broker.mkdir()
    shutil.copy(bundled / "meta.properties", broker)
    whole, harmed = sorted(bundled.glob("__consumer_offsets-*"))[:2]
    for each in (whole, harmed):
        shutil.copytree(each, broker / each.name)
    for segment in (broker / harmed.name).glob("*.log"):
        segment.write_bytes(bytes(range(256)) * (segment.stat().st_size // 256 + 1))
    return broker


def interrupted_at(step: str, *arguments: str | Path) -> int:
    """Start a run, wait until it says that a step begins, and interrupt it."""
    with subprocess.Popen(
        [str(COMMAND), *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as run:
        assert run.stderr is not None
        said = []
        for line in run.stderr:
            said.append(line)
            if line.strip() == step:
                run.send_signal(signal.SIGINT)
        assert f"{step}\n" in said, said
    return run.returncode


@pytest.mark.installed
@pytest.mark.parametrize(
    "step",
    [
        *(pytest.param(each, marks=pytest.mark.long) for each in ("expiration", "data quality")),
        "usage",
    ],
)
def test_interrupted_it_leaves_nothing_that_looks_finished(
    step: str, failover_audited: Path, groupscope: Groupscope, tmp_path: Path
) -> None:
    again = Path(shutil.copytree(failover_audited, tmp_path / "again"))

    assert interrupted_at(f"audit: {step}", "audit", again, "--out", again) == 130

    assert [name for name in ANSWERS if (again / name).exists()] == []
    for asked in (
        ("report", again),
        ("audit", again, "--out", tmp_path / "next", "--since", again),
    ):
        run = groupscope(*asked)
        assert run.returncode == 3
        assert "was not audited to the end" in run.stderr


@pytest.fixture(scope="module")
def audited(
    dump: Path, groupscope: Groupscope, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """The workspace of an audit of the dump, and what it said."""
    out = tmp_path_factory.mktemp("audited") / "out"
    return out, groupscope("audit", dump, "--out", out, "--fail-on", "never")


def test_what_cannot_be_read_ends_it_with_3_and_the_rest_is_judged(
    audited: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    out, run = audited
    assert run.returncode == 3, run.stderr
    summary = json.loads((out / "summary.json").read_text("utf-8"))
    assert summary["exit_code"] == 3
    assert summary["by_rule"]["bytes_damaged"] == 1
    assert [name for name in ANSWERS if not (out / name).exists()] == []


def test_what_its_questions_could_not_tell_is_kept_by_code_and_place(
    dump: Path, audited: tuple[Path, subprocess.CompletedProcess[str]]
) -> None:
    out, run = audited
    gaps = StoredTables(Workspace(str(out))).read("gaps").to_pylist()
    _, harmed = sorted(each.name for each in dump.glob("__consumer_offsets-*"))
    topic, _, partition = harmed.rpartition("-")
    lossy = {
        each["question"]
        for each in gaps
        if (each["topic"], each["partition"]) == (topic, int(partition))
        and each["code"] == "partition_lacks_records"
        and each["from_offset"] == 0
    }
    assert lossy >= {"expiration", "lag", "balance", "rebalances", "timeline"}
    assert {each["words"] for each in gaps if each["question"] == "lag"} <= {
        line.partition("cannot tell: ")[2] for line in run.stderr.splitlines()
    }


@pytest.mark.parametrize(
    ("case", "fail_on", "code"),
    [
        ("consumer-new-partition/dump", "never", 3),
        ("consumer-new-partition/dump", "info", 1),
    ],
)
def test_never_is_about_findings_and_not_about_what_cannot_be_told(
    case: str,
    fail_on: str,
    code: int,
    repository: Path,
    groupscope: Groupscope,
    tmp_path: Path,
) -> None:
    dump = repository / "tests" / "cases" / "reports" / case
    run = groupscope("audit", dump, "--out", tmp_path / "out", "--fail-on", fail_on)

    assert run.returncode == code, run.stderr
    summary = json.loads((tmp_path / "out" / "summary.json").read_text("utf-8"))
    assert summary["exit_code"] == code
    if code == 3:
        assert "cannot be told" in summary["exit_reason"]
        assert "cannot tell: " in run.stderr


def into_closed_pipe(*arguments: str | Path) -> int:
    """Run a command whose answer nobody reads, not a byte of it; return its exit code."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as closed:
        return subprocess.run(
            [str(COMMAND), *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=closed,
            stderr=subprocess.DEVNULL,
            check=False,
        ).returncode


def test_an_answer_that_nobody_reads_is_kept_whole_and_ends_as_it_would_be_read(
    repository: Path, tmp_path: Path
) -> None:
    dump = repository / "tests" / "cases" / "reports" / "consumer-new-partition" / "dump"
    hook = f"tee {tmp_path / 'told.json'}"
    out = tmp_path / "out"
    code = into_closed_pipe("audit", dump, "--out", out, "--fail-on", "info", "--on-findings", hook)
    assert code == json.loads((out / "summary.json").read_text("utf-8"))["exit_code"] != 0
    assert all((out / each).is_file() for each in ANSWERS)
    assert (tmp_path / "told.json").is_file()
    assert Workspace(str(out)).manifest()


@pytest.mark.parametrize(
    "command",
    [
        ("lag", "{out}"),
        *(
            pytest.param(each, marks=pytest.mark.long)
            for each in (("report", "{out}", "--format", "text"), ("--help",))
        ),
    ],
    ids=["lag", "report", "help"],
)
def test_a_question_whose_answer_nobody_reads_ends_as_it_would_be_read(
    command: tuple[str, ...],
    audited: tuple[Path, subprocess.CompletedProcess[str]],
    groupscope: Groupscope,
) -> None:
    asked = [each.format(out=audited[0]) for each in command]
    assert into_closed_pipe(*asked) == groupscope(*asked).returncode
