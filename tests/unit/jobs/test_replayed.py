"""A workspace that was replayed at the instant asked about answers as it is, without Spark."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

from analytics.errors import InputNotRecognizedError, WorkspaceError
from jobs.cli.console import Console
from jobs.workspaces import replaying as replay_run
from jobs.workspaces.replayed import Replayed, replayed
from tests.support.written_workspace import group, write_workspace

COMMITS = [
    {"group_id": name, "topic": topic, "partition": number, "committed_offset": number}
    for name in ("billing", "billing-eu", "audit")
    for topic in ("orders", "returns")
    for number in (0, 1)
]
TIME = "2026-11-21T09:30:00.000Z"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    names = ("billing", "billing-eu", "audit")
    tables = {"groups": [group(name) for name in names], "committed_offsets": COMMITS}
    return write_workspace(
        tmp_path / "space",
        tables,
        partitions=[{"partition": 3, "end_offset": 9}],
        replay={"as_of": {"time": TIME, "offsets": {"__consumer_offsets-3": 7}}},
    )


@pytest.fixture
def replays(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What would have been replayed."""
    asked: list[dict[str, Any]] = []

    def instead(_folder: str, _console: Console, **options: Any) -> None:
        asked.append(options)
        raise WorkspaceError("replayed")

    monkeypatch.setattr(replay_run, "replay_into", instead)
    return asked


def test_a_workspace_replayed_under_an_assumption_does_not_answer_without_it(
    tmp_path: Path, replays: list[dict[str, Any]]
) -> None:
    space = write_workspace(
        tmp_path / "space",
        {"groups": [group("billing")]},
        partitions=[{"partition": 3, "end_offset": 9, "copy": None, "gaps": []}],
        replay={"assumed": ["no-transactions"]},
    )
    with asking(space, assume=("no-transactions",)) as state:
        assert state.response_metadata["assumed"] == ["no-transactions"]
    for assume in [(), ("complete-archive", "no-transactions")]:
        with pytest.raises(WorkspaceError, match="replayed"), asking(space, assume=assume):
            pass
    assert [each["assume"] for each in replays] == [(), ("complete-archive", "no-transactions")]


@contextmanager
def asking(workspace: Path, **options: Any) -> Iterator[Replayed]:
    with replayed(Console(quiet=True), inputs=[str(workspace)], **options) as found:
        yield found


AS_IT_IS = {"as_of": 1_795_253_400_000, "ends": {("__consumer_offsets", 3): 7}}


@pytest.mark.parametrize("options", [{}, AS_IT_IS, {"kafka_version": "4.3"}])
@pytest.mark.usefixtures("replays")
def test_the_instant_of_the_workspace_needs_no_replay(
    workspace: Path, options: dict[str, Any]
) -> None:
    with asking(workspace, **options) as found:
        assert found.tables.read("groups", ["group_id"]).num_rows == 3
        assert found.instant == f"{TIME}, __consumer_offsets-3 at 7"
        assert (found.release, found.is_end) == ("4.3", False)


@pytest.mark.parametrize(
    "options",
    [
        {"as_of": "end"},
        {"as_of": AS_IT_IS["as_of"]},
        {**AS_IT_IS, "as_of": 1},
        {"ends": {("__consumer_offsets", 3): 8}},
        {"kafka_version": "3.9"},
        {"needs": ("group_epochs",)},
        {"partitions": (3,)},
    ],
)
def test_anything_else_is_replayed(
    workspace: Path, replays: list[dict[str, Any]], options: dict[str, Any]
) -> None:
    with pytest.raises(WorkspaceError, match="replayed"), asking(workspace, **options):
        pass
    assert len(replays) == 1


def test_a_replay_that_left_groups_out_answers_that_question_alone(
    tmp_path: Path, replays: list[dict[str, Any]]
) -> None:
    workspace = write_workspace(tmp_path, {}, replay={"filters": {"groups": ["billing"]}})
    with asking(workspace, groups=("billing",)):
        assert not replays
    with pytest.raises(WorkspaceError), asking(workspace):
        pass
    assert len(replays) == 1


def test_names_of_topics_that_it_was_not_given_are_replayed(
    tmp_path: Path, replays: list[dict[str, Any]]
) -> None:
    known = ["orders", "GZ4rnq8sRxmquQaghojNEA", None]
    workspace = write_workspace(tmp_path / "space", {}, replay={"topic_ids": [known]})
    file = tmp_path / "ids.csv"
    file.write_text("topic_id,topic\nGZ4rnq8sRxmquQaghojNEA,orders\n", "utf-8")
    with asking(workspace, topic_ids=str(file)):
        assert not replays
    file.write_text("topic_id,topic\nGZ4rnq8sRxmquQaghojNEA,returns\n", "utf-8")
    with pytest.raises(WorkspaceError), asking(workspace, topic_ids=str(file)):
        pass


@pytest.mark.parametrize(
    ("options", "groups"),
    [
        ({}, {"billing", "billing-eu", "audit"}),
        ({"groups": ("billing",)}, {"billing"}),
        ({"groups": ("billing*",)}, {"billing", "billing-eu"}),
        ({"groups": ("/b.*|audit/",), "exclude_groups": ("*-eu",)}, {"billing", "audit"}),
        ({"exclude_groups": ("audit",)}, {"billing", "billing-eu"}),
        ({"groups": ("nobody",)}, set()),
    ],
)
def test_filters_apply_to_every_table_with_groups(
    workspace: Path, options: dict[str, Any], groups: set[str]
) -> None:
    with asking(workspace, **options) as found:
        for name in ("groups", "committed_offsets"):
            assert set(found.tables.read(name)["group_id"].to_pylist()) == groups


def test_topics_columns_and_conditions_narrow_what_is_read(workspace: Path) -> None:
    with asking(workspace, data_topics=("ret*",), groups=("audit",)) as found:
        rows = found.tables.read(
            "committed_offsets", ["topic", "partition"], pc.field("partition") > 0
        )
        assert rows.to_pylist() == [{"topic": "returns", "partition": 1}]


def test_a_table_that_is_not_there_is_an_error_that_says_so(workspace: Path) -> None:
    with asking(workspace) as found, pytest.raises(WorkspaceError, match="no table group_epochs"):
        found.tables.read("group_epochs")


def test_decoded_tables_may_be_in_the_workspace_that_was_replayed(tmp_path: Path) -> None:
    first = write_workspace(tmp_path / "first", {})
    said = {"decoded_in": str(first)}
    second = write_workspace(tmp_path / "second", {}, replay=said)
    (second / "decoded").rmdir()
    with asking(second) as found:
        assert found.source.root == str(first)
    (first / "manifest.json").unlink()
    with asking(second) as found:
        assert found.source.root == str(second)


def test_a_workspace_is_asked_alone_and_follows_the_copy_it_was_decoded_by(
    workspace: Path,
) -> None:
    with (
        pytest.raises(InputNotRecognizedError, match="give it as the only INPUT"),
        replayed(Console(), inputs=[str(workspace), str(workspace)]),
    ):
        pass
    with (
        pytest.raises(InputNotRecognizedError, match="name the dump"),
        asking(workspace, prefer_copy="broker-1"),
    ):
        pass


def test_a_ready_workspace_is_described_without_importing_spark(workspace: Path) -> None:
    program = (
        "import sys\n"
        "from jobs.cli.main import run\n"
        f"code = run(['describe', {str(workspace)!r}, '--format', 'json'])\n"
        "assert 'pyspark' not in sys.modules\n"
        "sys.exit(code)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=False
    )
    answer = json.loads(result.stdout)
    assert [row["group_id"] for row in answer["rows"]][:4] == ["audit"] * 4
    ends = {"__consumer_offsets-3": 7}
    assert answer["as_of"] == {"time": TIME, "is_end": False, "offsets": ends}
    assert result.returncode == 0, result.stderr
