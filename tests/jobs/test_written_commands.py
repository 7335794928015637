"""Every command that is written down for people is run to its end, or it is declared why not."""

from __future__ import annotations

import contextlib
import io
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from jobs.cli.main import run
from tests.support.commands_on_a_dump import (
    declared,
    ends_with,
    filled,
    meant,
    takes_long,
    why_not_run,
)
from tests.support.written_commands import Message, all_commands, messages, of_page

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = sorted(all_commands(ROOT))
RUN = [each for each in COMMANDS if why_not_run(each) is None]
CANNOT_TELL = 3
LONG = pytest.mark.long
MEANINGS = sorted({meant(each) for each in RUN})
"""What they mean on the bundled dump; several may mean the same."""

DESCRIBED = ROOT / "tests/data/dumps/kafka-4.3.1-failover/tools/describe/consumer-groups-state.txt"
"""What Kafka's own tool printed, a little before the dump was taken."""

Places = Callable[[str], Mapping[str, Path]]


@cache
def advising() -> tuple[Message, ...]:
    """Every message that advises: reading the sources takes long, and collecting needs none."""
    return tuple(messages(ROOT))


@pytest.fixture
def places(
    request: pytest.FixtureRequest, failover_dump: Path, failover_workspace: Path, tmp_path: Path
) -> Places:
    """What the names in braces stand for; what takes time only where a command needs it."""

    def of(meaning: str) -> Mapping[str, Path]:
        made: dict[str, Path] = {
            "dump": failover_dump,
            "workspace": failover_workspace,
            "examples": ROOT / "examples",
            "described": DESCRIBED,
            "out": tmp_path / "out",
        }
        for name in ("audited", "incident"):
            if f"{{{name}}}" in meaning:
                made[name] = request.getfixturevalue(f"failover_{name}")
        if "{key}" in meaning:
            made["key"] = tmp_path / "audit.key"
            made["key"].write_bytes(bytes(range(32)))
        if "{early}" in meaning:
            made["early"] = tmp_path / "early"
            instant = ("--as-of", "2026-11-21T09:20:00Z", "--quiet")
            assert (
                run(["replay", str(failover_workspace), *instant, "--out", str(made["early"])]) == 0
            )
        if "{copy}" in meaning:
            made["copy"] = Path(shutil.copytree(failover_workspace, tmp_path / "copy"))
        if "{shares}" in meaning:
            made["shares"] = tmp_path / "shares"
            chains = str(ROOT / "examples" / "share-chains")
            options = ("--dialect", "checkpoint-delta", "--out", str(made["shares"]))
            assert run(["replay", chains, *options]) == 0
        return made

    return of


def ended(words: list[str], cwd: Path) -> tuple[int, str, str]:
    """Run a command in this process; return its exit code and what it printed."""
    program, *arguments = words
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), contextlib.chdir(cwd):
        code = run(arguments) if program == "groupscope" else of_python(arguments)
    return code, out.getvalue(), err.getvalue()


def of_python(arguments: list[str]) -> int:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", arguments)
        try:
            runpy.run_path(arguments[0], run_name="__main__")
        except SystemExit as end:
            return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


@pytest.mark.parametrize(
    "meaning",
    [pytest.param(each, marks=LONG if takes_long(each) else (), id=each) for each in MEANINGS],
)
def test_a_command_runs_to_its_end(meaning: str, places: Places, tmp_path: Path) -> None:
    code, printed, said = ended(filled(meaning, places(meaning)), tmp_path)
    assert code == ends_with(meaning), said
    assert printed.strip() or (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "hint",
    [
        pytest.param(each, marks=LONG if each.get("takes_long") else (), id=each["says"])
        for each in declared()["hints"]
    ],
)
def test_what_a_message_advises_can_be_done(
    hint: Mapping[str, Any], places: Places, tmp_path: Path
) -> None:
    there = places(f"{hint['asked']} {hint['then']}")
    _, printed, said = ended(filled(f"groupscope {hint['asked']}", there), tmp_path)
    texts = [each.text for each in advising() if fnmatchcase(each.text, hint["says"])]
    seen = " ".join(f"{printed} {said}".split())
    assert any(re.search(as_printed(each), seen) for each in texts), seen
    code, printed, said = ended(filled(f"groupscope {hint['then']}", there), tmp_path)
    assert code == hint.get("ends_with", 0), said
    assert printed.strip() or (tmp_path / "out").exists()


def as_printed(text: str) -> str:
    """Return what finds a message where it is printed, whatever was filled in."""
    return ".*".join(map(re.escape, re.split(r"\{[^}]*\}", text)))


def test_every_message_that_advises_is_followed_or_declared() -> None:
    known = [*(each["says"] for each in declared()["hints"]), *declared()["not_followed"]]
    open_ = [each for each in advising() if not any(fnmatchcase(each.text, one) for one in known)]
    assert open_ == []
    unused = [one for one in known if not any(fnmatchcase(each.text, one) for each in advising())]
    assert unused == []


@pytest.mark.parametrize(
    "form", [*(pytest.param(each, marks=LONG) for each in ("text", "json")), "markdown"]
)
def test_pages_of_all_forms_advise_the_same(form: str, failover_audited: Path) -> None:
    code, page, said = ended(
        ["groupscope", "report", str(failover_audited), "--format", form], failover_audited
    )
    assert code == 0, said
    # A page in text is cut shorter.
    assert of_page(page, form)
    assert set(of_page(page, form)) <= set(of_page(page_of(failover_audited), "html"))


@pytest.mark.parametrize("answer", ["audited", pytest.param("incident", marks=LONG)])
def test_what_pages_print_can_be_run(
    answer: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    shown = of_page(page_of(request.getfixturevalue(f"failover_{answer}")), "html")
    # How the page is made again is what the help's example is.
    shown = [each for each in shown if not each.startswith("groupscope audit ")]
    assert shown
    for each in shown:
        code, printed, said = ended(shlex.split(each), tmp_path)
        # A group that only the line has which an election cost can be told of no more.
        assert code == 0 or (code == CANNOT_TELL and f"{printed}{said}".strip()), (each, said)


def page_of(folder: Path) -> str:
    (page,) = (folder / "report").glob("*.html")
    return page.read_text("utf-8")


@pytest.mark.long
def test_the_script_for_cron_runs_as_it_is_written(failover_dump: Path, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "audit.md").read_text("utf-8")
    (script,) = re.findall(r"```sh\n(#!/bin/sh\n.*?)```", page, re.DOTALL)
    for folder in ("/usr/local/bin", "/var/lib/node_exporter", "/dumps", "/audits"):
        (tmp_path / folder[1:]).mkdir(parents=True)
        script = script.replace(folder, f"{tmp_path}{folder}")
    script = script.replace("/etc/groupscope", str(ROOT / "examples"))
    tools = tmp_path / "usr" / "local" / "bin"
    for name, body in {"fetch-dump": f"cp -r {failover_dump} $1", "tell-the-team": "cat"}.items():
        (tools / name).write_text(f"#!/bin/sh\n{body}\n", "utf-8")
        (tools / name).chmod(0o755)
    ran = subprocess.run(
        ["sh", "-c", script],
        env={**os.environ, "PATH": f"{tools}:{Path(sys.executable).parent}:{os.environ['PATH']}"},
        capture_output=True,
        encoding="utf-8",
        timeout=600,
        check=False,
    )
    assert ran.returncode == 1, ran.stderr
    assert len(list(tmp_path.glob("audits/*/summary.json"))) == 1
    assert (tmp_path / "var/lib/node_exporter/groupscope.prom").read_text("utf-8").strip()


@pytest.mark.long
def test_the_snippets_of_the_readme_run(spark: SparkSession, failover_dump: Path) -> None:
    page = (ROOT / "README.md").read_text("utf-8")
    snippets = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(snippets) == 2
    for each in snippets:
        code = re.sub(r'"/(dumps/incident|path/to/dump)"', repr(str(failover_dump)), each)
        names: dict[str, Any] = {"spark": spark}
        exec(code.replace("08:15:00Z", "09:20:00Z"), names)


def test_nothing_is_declared_that_is_not_written() -> None:
    told = declared()
    patterns = [(each, COMMANDS) for each in told["not_run"]]
    patterns += [(each, MEANINGS) for each in (*told["ends_with"], *told["takes_long"])]
    unused = [each for each, of in patterns if not any(fnmatchcase(one, each) for one in of)]
    assert unused + [each for each in told["runs"] if each not in COMMANDS] == []
    words = {word for each in RUN for word in shlex.split(each, comments=True)}
    words |= {word.strip("[]") for word in words}
    assert [each for each in told["words"] if each not in words] == []
    assert all(why.strip() for why in told["not_run"].values())
