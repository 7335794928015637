"""What a page shows of a terminal is what its commands print, with the same exit codes."""

from __future__ import annotations

import ast
import os
import re
import shlex
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

import pytest
import yaml

from docs.render_guides import Ended, Step, pages_with_blocks, rendered, steps_of
from tests.support.checkout import files_of
from tests.support.command_here import run_here

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    str(each.relative_to(ROOT))
    for each in pages_with_blocks([ROOT / path for path in files_of(ROOT) if path.suffix == ".md"])
]
LONG = pytest.mark.long
SCRIPT = "/usr/local/bin/weekly-audit"


LIKE_OTHERS = ("offsets-topic-grows", "share-group", "who-reads")
"""Guides whose questions are asked of the same dump by `test_written_commands`, too."""


def takes_long(page: str) -> bool:
    """Return whether a page asks every question, or asks as others do."""
    return Path(page).stem in LIKE_OTHERS or any(
        map(asks_every_question, steps_of((ROOT / page).read_text("utf-8")))
    )


def asks_every_question(step: Step) -> bool:
    return step.line.startswith(("groupscope audit ", "groupscope forensics "))


@pytest.fixture(autouse=True)
def _no_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages are as wide as where no width is known: 120 columns."""
    monkeypatch.delenv("COLUMNS", raising=False)


def run(command: str, folder: Path) -> Ended:
    program, *arguments = shlex.split(command)
    if program == "groupscope":
        process = run_here(arguments, cwd=folder, merged=True)
    else:
        process = subprocess.run(
            [program, *arguments],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            check=False,
        )
    return Ended(process.returncode, process.stdout)


@pytest.mark.parametrize(
    "page", [pytest.param(each, marks=LONG if takes_long(each) else (), id=each) for each in PAGES]
)
def test_a_page_shows_what_its_commands_print(page: str, tmp_path: Path) -> None:
    text = (ROOT / page).read_text("utf-8")
    assert rendered(text, tmp_path, run) == text, "run `make guides`"


@pytest.fixture(scope="module")
def schedule() -> dict[str, list[str]]:
    """Blocks of the page, by their language."""
    blocks: dict[str, list[str]] = {}
    page = (ROOT / "docs" / "guides" / "schedule.md").read_text("utf-8")
    for language, block in re.findall(r"^```(\w+)\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        blocks.setdefault(language, []).append(block)
    return blocks


def test_cron_starts_the_script_on_mondays(schedule: dict[str, list[str]]) -> None:
    (line,) = schedule["crontab"]
    minute, hour, day, month, weekday, user, *command = line.split()
    assert (minute, hour, day, month, weekday, user) == ("30", "5", "*", "*", "1", "kafka")
    assert command == [SCRIPT, "/dumps/latest"]


def test_systemd_starts_the_script_on_mondays(schedule: dict[str, list[str]]) -> None:
    service, timer = map(unit, schedule["ini"])
    assert service["Service"]["ExecStart"] == f"{SCRIPT} /dumps/latest"
    assert service["Service"]["Type"] == "oneshot"
    assert timer["Timer"]["OnCalendar"] == "Mon 05:30"
    assert timer["Install"]["WantedBy"] == "timers.target"


def unit(text: str) -> ConfigParser:
    parser = ConfigParser(interpolation=None)
    parser.read_string(text)
    return parser


def test_kubernetes_starts_the_script_on_mondays(schedule: dict[str, list[str]]) -> None:
    (block,) = schedule["yaml"]
    job = yaml.safe_load(block)
    assert (job["apiVersion"], job["kind"]) == ("batch/v1", "CronJob")
    assert job["spec"]["schedule"] == "30 5 * * 1"
    run = job["spec"]["jobTemplate"]["spec"]
    assert run["backoffLimit"] == 0
    (container,) = run["template"]["spec"]["containers"]
    assert container["command"] == [SCRIPT, "/dumps/latest"]
    mounted = {each["name"] for each in container["volumeMounts"]}
    assert mounted == {each["name"] for each in run["template"]["spec"]["volumes"]}


def test_airflow_starts_the_script_on_mondays(schedule: dict[str, list[str]]) -> None:
    (block,) = schedule["python"]
    calls = [each for each in ast.walk(ast.parse(block)) if isinstance(each, ast.Call)]
    values = {
        keyword.arg: keyword.value.value
        for call in calls
        for keyword in call.keywords
        if isinstance(keyword.value, ast.Constant)
    }
    assert values["schedule"] == "30 5 * * 1"
    assert values["bash_command"] == f"{SCRIPT} /dumps/latest"
    assert values["retries"] == 0


@pytest.mark.long
def test_the_weekly_script_runs_week_after_week(
    schedule: dict[str, list[str]], tmp_path: Path
) -> None:
    (script,) = schedule["sh"]
    assert script.startswith(f"#!/bin/sh\n# {SCRIPT} DUMP\n")
    (tmp_path / "audits").mkdir()
    clock = tmp_path / "bin" / "date"
    clock.parent.mkdir()
    command = ["sh", "-c", script.replace("/audits", f"{tmp_path}/audits"), SCRIPT]
    path = f"{clock.parent}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    for day in ("2026-11-23", "2026-11-30"):
        clock.write_text(f"#!/bin/sh\necho {day}\n", "utf-8")
        clock.chmod(0o755)
        ran = subprocess.run(
            [*command, "examples/kafka-4.3.1-failover"],
            cwd=ROOT,
            env={**os.environ, "PATH": path},
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        assert ran.returncode == 1, ran.stderr
        made = tmp_path / "audits" / day
        assert (made / "lag.csv").read_text("utf-8").startswith("group_id,")
        assert "parcel-router" in (made / "capacity.csv").read_text("utf-8")
        assert (made / "report" / "index.html").exists()
        assert (tmp_path / "audits" / "trend" / "trend.html").exists()
    first, second = (
        (tmp_path / "audits" / f"{day}.txt").read_text("utf-8")
        for day in ("2026-11-23", "2026-11-30")
    )
    assert "CHANGE" not in first
    assert re.search(r"^  CHANGE +SEVERITY +RULE", second, re.MULTILINE)
