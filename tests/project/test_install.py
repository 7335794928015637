"""What the page and the Containerfile say of installing a release does so, in folders of tests."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from analytics.version import VERSION
from tests.support.released import committed_checkout, released
from tests.support.worker_environments import link_packages, pins_of

DOWNLOADS = "--require-hashes"
"""A step that fetches packages; what is here already is linked in its place."""
OF_DEBIAN = ("apt-get", "rm", "useradd")


@pytest.fixture(scope="module")
def release(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    checkout = committed_checkout(repository, tmp_path_factory.mktemp("checkout"))
    return released(checkout, tmp_path_factory.mktemp("dist") / "release")


@pytest.fixture(scope="module")
def instructions(repository: Path) -> list[tuple[str, str]]:
    """The instructions of the Containerfile and what they say, lines joined."""
    text = (repository / "Containerfile").read_text("utf-8")
    lines = re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE)).splitlines()
    words = [line.split(maxsplit=1) for line in lines if line]
    return [(name, " ".join(rest.split())) for name, rest in words]


def steps_of(instructions: list[tuple[str, str]]) -> Iterator[str]:
    for name, words in instructions:
        if name == "RUN":
            yield from re.sub(r"--mount=\S+ ", "", words).split(" && ")


def run_steps(steps: list[str], release: Path, opt: Path) -> str:
    """Run steps of a shell one after the other where the release lies; return what they print."""
    printed = ""
    for step in steps:
        here = step.replace("/opt/groupscope", str(opt)).replace("/release", str(release))
        if DOWNLOADS in here:
            requirements = here.split()[-1]
            (pins,) = Path(release).glob(Path(requirements).name)
            link_packages(opt, set(pins_of(pins)))
            continue
        ran = subprocess.run(
            ["bash", "-euc", here], cwd=release, capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, (step, ran.stderr)
        printed += ran.stdout
    return printed


@pytest.mark.long
def test_the_page_makes_an_environment_with_the_command(
    repository: Path, release: Path, tmp_path: Path
) -> None:
    page = (repository / "docs" / "install.md").read_text("utf-8")
    (block,) = re.findall(r"## An environment of its own\n.*?```\n(.*?)```", page, re.DOTALL)
    steps = block.splitlines()
    assert len([each for each in steps if DOWNLOADS in each]) == 1
    printed = run_steps(steps, release, tmp_path / "groupscope")
    assert printed.splitlines()[-1] == f"groupscope, version {VERSION}"


@pytest.mark.long
def test_the_steps_of_the_container_that_need_no_debian_work(
    instructions: list[tuple[str, str]], release: Path, tmp_path: Path
) -> None:
    steps = [each for each in steps_of(instructions) if not each.startswith(OF_DEBIAN)]
    assert [each.split()[0] for each in steps] == [
        *("cd", "sha256sum", "python3"),
        *["/opt/groupscope/bin/python"] * 2,
    ]
    opt = tmp_path / "groupscope"
    checked = run_steps(steps, release, opt)
    assert checked.count(": OK") == 5
    ran = subprocess.run([opt / "bin" / "groupscope", "--version"], capture_output=True, check=True)
    assert ran.stdout.decode() == f"groupscope, version {VERSION}\n"


def test_all_that_the_container_takes_from_elsewhere_is_pinned(
    instructions: list[tuple[str, str]],
) -> None:
    (base,) = [words for name, words in instructions if name == "ARG"]
    assert re.fullmatch(r"BASE=debian(:\d+\.\d+-slim|@sha256:[0-9a-f]{64})", base)
    stages = [words for name, words in instructions if name == "FROM"]
    assert stages == ["${BASE} AS installed", "${BASE}"]
    assert {name for name, _ in instructions} <= {
        *("ARG", "FROM", "RUN", "COPY", "ENV", "USER", "WORKDIR", "ENTRYPOINT", "CMD")
    }
    copied = [words for name, words in instructions if name == "COPY"]
    assert copied == ["dist/release/ /release/", "--from=installed /opt/groupscope /opt/groupscope"]
    for step in steps_of(instructions):
        if " pip install " in step:
            assert ("--require-hashes" in step) != ("--no-index" in step)


def test_the_container_runs_as_nobody_in_particular(instructions: list[tuple[str, str]]) -> None:
    last = dict(instructions)
    assert last["USER"] == "10001:10001"
    # Nothing is done as another one afterwards.
    names = [name for name, _ in instructions]
    assert "RUN" not in names[names.index("USER") :]
    assert f"useradd --uid {last['USER'].partition(':')[0]} " in last["RUN"]


def test_the_container_has_the_programs_that_it_starts(
    instructions: list[tuple[str, str]],
) -> None:
    last = dict(instructions)
    program, separator, command = re.findall(r'"([^"]+)"', last["ENTRYPOINT"])
    assert (separator, command) == ("--", "groupscope")
    installed = shlex.split(last["RUN"].split(" && ")[1])
    assert {program, "python3", "openjdk-17-jre-headless"} <= set(installed)
    assert last["ENV"].startswith("PATH=/opt/groupscope/bin:")


def test_the_page_names_the_files_of_a_release(repository: Path) -> None:
    page = (repository / "docs" / "install.md").read_text("utf-8")
    assert set(re.findall(r"groupscope-(\d[\d.]*\d)", page)) == {VERSION}
    assert set(re.findall(r"groupscope:(\d[\d.]*\d)", page)) == {VERSION}
