"""A filter chooses rows of an answer, never what that rests on: a dump answers as its workspace."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from analytics.decode.selection import names_wanted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.conftest import Groupscope

REPOSITORY = Path(__file__).parents[2]
ALL_GROUPS, ELECTION = "kafka-4.4.0-random", "kafka-4.3.1-failover"
"""Dumps that are quick: a small one with groups of every type, and one with an election."""


def dumps(quick: str) -> list[Any]:
    return [
        pytest.param(
            each.parent,
            marks=() if each.parent.name == quick else pytest.mark.long,
            id=each.parent.name,
        )
        for each in sorted((REPOSITORY / "tests" / "data" / "dumps").glob("*/about.json"))
    ]


INSTANT = "-90s"
"""Within each dump, and before the end of it."""
SOME = "*r*"
"""Some groups of each."""
QUESTIONS: dict[str, tuple[str, ...]] = {
    "balance": (),
    "describe": (),
    "expiration": (),
    "lag": (),
    "list": (),
    "rebalances": (),
    "share": (),
    "timeline": ("--group", "*"),
    "usage": (),
}
OF_THE_END = ("usage",)
"""They answer of no other instant."""
OF_THE_COMMAND = ("input", "command")
OF_HISTORY = ("progress_score", "busiest_share", "busiest_member")
"""`balance` has them where the history of offsets is there, for which it replays no dump."""


class Asked:
    """A dump and what it was replayed into, asked alike."""

    def __init__(self, groupscope: Groupscope, dump: Path, folder: Path) -> None:
        self.groupscope, self.folder = groupscope, folder
        # All copies of a dump, without what is beside them.
        copies = [each for each in sorted(dump.iterdir()) if each.is_dir() and each.name != "tools"]
        self.dump = [f"{each.name}={each}" for each in copies]

    def workspace(self, instant: str) -> Path:
        out = self.folder / instant
        if not out.exists():
            self.groupscope("replay", *self.dump, "--as-of", instant, "--out", out)
        return out

    def answer(self, command: str, source: Sequence[str | Path], *options: str) -> tuple[int, Any]:
        run = self.groupscope(command, *source, *options, "--format", "json", "--quiet")
        assert run.stdout, run.stderr
        document = json.loads(run.stdout)
        for name in OF_THE_COMMAND:
            document.pop(name, None)
        for row in document["rows"]:
            for name in OF_HISTORY:
                row.pop(name, None)
        return run.returncode, document


@pytest.fixture(scope="module")
def asked(
    groupscope: Groupscope, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Asked:
    return Asked(groupscope, request.param, tmp_path_factory.mktemp(request.param.name))


@pytest.mark.parametrize(
    "option", ["--exclude-group", pytest.param("--group", marks=pytest.mark.long)]
)
@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("asked", dumps(ALL_GROUPS), indirect=True)
def test_a_dump_answers_with_a_filter_as_its_workspace(
    question: str, option: str, asked: Asked
) -> None:
    instant = "end" if question in OF_THE_END else INSTANT
    own = () if option == "--group" else QUESTIONS[question]
    options = (*own, option, SOME)
    of_workspace = asked.answer(question, [asked.workspace(instant)], *options)
    assert asked.answer(question, asked.dump, "--as-of", instant, *options) == of_workspace


@pytest.mark.parametrize("asked", dumps(ELECTION), indirect=True)
def test_a_filter_hides_no_election(asked: Asked) -> None:
    """A record of another group may be the first that a coordinator wrote."""

    def changes(*options: str) -> list[Any]:
        _, answer = asked.answer("timeline", asked.dump, "--as-of", INSTANT, *options)
        return [row for row in answer["rows"] if row["event"] == "coordinator_changed"]

    every = changes("--group", "*")
    kept = set(names_wanted((row["group_id"] for row in every), (SOME,)))
    assert changes("--group", SOME) == [row for row in every if row["group_id"] in kept]
