"""A run that is saved: the same whenever the same was read and asked, and of a known cluster."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

import pytest

from analytics import open_dump
from analytics.errors import SettingRefusedError
from analytics.library.saved_runs import FILE_SETTINGS, plain_settings, run_of
from analytics.questions.lag.question import LagSettings
from analytics.questions.question import QUESTIONS, question
from analytics.replayed.given_settings import BrokerSettings, GivenSettings, Settings
from schemas import CONSUMER_OFFSETS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from analytics.replayed.replayed_workspace import ReplayedWorkspace

FEW = ["groups", "topics"]
BEFORE = "2026-11-21T09:18:30Z"
END_OF_DUMP = 2026


@pytest.fixture(scope="module")
def state(failover_dump: Path) -> Iterator[ReplayedWorkspace]:
    with open_dump(str(failover_dump)) as dump:
        yield dump.replay(tables=FEW).replayed


def test_it_is_of_the_cluster_and_the_instant_of_the_dump(state: ReplayedWorkspace) -> None:
    run = run_of(state, "replay")
    assert [run.cluster] == run.row["cluster_ids"]
    assert run.as_of is not None
    assert run.as_of.year == END_OF_DUMP
    assert run.row["is_end"]
    assert run.row["filters"] == []


def test_a_copied_dump_is_the_same_run_and_another_instant_is_not(
    state: ReplayedWorkspace, failover_dump: Path, tmp_path: Path
) -> None:
    copied = shutil.copytree(
        failover_dump, tmp_path / "elsewhere" / "dump", copy_function=shutil.copy
    )
    with open_dump(str(copied)) as dump:
        again = run_of(dump.replay(tables=FEW).replayed, "replay")
        earlier = run_of(dump.replay(tables=FEW, as_of=BEFORE).replayed, "replay")
    assert again == run_of(state, "replay")
    assert earlier.run_id != again.run_id
    assert earlier.as_of == datetime(2026, 11, 21, 9, 18, 30, tzinfo=UTC)


def test_what_is_asked_otherwise_is_another_run(state: ReplayedWorkspace, tmp_path: Path) -> None:
    ends = tmp_path / "ends.csv"
    ends.write_text("topic,partition,log_end_offset\n")
    asked = [
        run_of(state, "lag"),
        run_of(state, "lag", LagSettings()),
        run_of(state, "lag", LagSettings(by="group")),
        run_of(state, "lag", LagSettings(end_offsets=str(ends))),
        run_of(state, "lag", LagSettings(), chosen={"groups": ("billing-*",)}),
        run_of(state, "lag", LagSettings(), cluster="prod"),
    ]
    assert len({each.run_id for each in asked}) == len(asked)
    moved = shutil.move(ends, tmp_path / "moved.csv")
    assert run_of(state, "lag", LagSettings(end_offsets=str(moved))) == asked[3]
    moved.write_text("topic,partition,log_end_offset\nparcels,0,7\n")
    assert run_of(state, "lag", LagSettings(end_offsets=str(moved))) != asked[3]


def test_a_setting_that_is_called_like_a_file_there_is_no_file(
    state: ReplayedWorkspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = run_of(state, "lag", LagSettings(by="group"))
    (tmp_path / "group").write_text("nothing of a lag")
    monkeypatch.chdir(tmp_path)
    assert run_of(state, "lag", LagSettings(by="group")) == asked


def test_every_setting_that_is_a_file_counts_by_its_content() -> None:
    says_file = re.compile(r"^ {8}(\w+): (?:A file|A folder|The workspace)\b", re.MULTILINE)
    named = {
        name
        for each in QUESTIONS
        for name in says_file.findall(question(each).settings.__doc__ or "")
    }
    assert {"end_offsets", "expectations", "since"} <= named <= FILE_SETTINGS


def test_it_says_what_it_leaves_out_and_which_partitions_show_all_groups(
    state: ReplayedWorkspace,
) -> None:
    run = run_of(state, "lag", chosen={"groups": ("billing-*",)})
    assert run.row["filters"] == ["groups=billing-*"]
    whole = run.row["whole_partitions"]
    assert set(whole) <= set(range(10))
    lacks = {
        each["partition"] for each in run.row["lacks"] if each["topic"] == "__consumer_offsets"
    }
    assert not lacks & set(whole)
    partitions = [
        each
        for each in state.manifest["partitions"]
        if (each["topic"], each["partition"]) != (CONSUMER_OFFSETS, whole[0])
    ]
    less = replace(state, manifest={**state.manifest, "partitions": partitions})
    assert run_of(less, "lag").row["whole_partitions"] == whole[1:]


def test_names_stay_out_of_a_run_without_names(state: ReplayedWorkspace) -> None:
    settings = {"suppressions": [{"group_id": "billing-ledger"}]}
    chosen = {"groups": ("billing-ledger",)}
    run = run_of(state, "audit", settings, chosen=chosen, is_redacted=True)
    assert "billing" not in str(run.row["settings"]) + str(run.row["filters"])
    assert run.row["filters"]


@pytest.mark.parametrize("ids", [(), ("one", "two")])
def test_a_cluster_that_the_dump_does_not_tell_has_to_be_named(
    state: ReplayedWorkspace, ids: tuple[str, ...]
) -> None:
    copies = [{"name": f"copy-{each}", "cluster_id": each} for each in ids or (None,)]
    unknown = replace(state, manifest={**state.manifest, "copies": copies})
    with pytest.raises(SettingRefusedError, match="cannot tell of which cluster"):
        run_of(unknown, "replay")
    assert run_of(unknown, "replay", cluster="prod-eu").cluster == "prod-eu"


@pytest.mark.parametrize("name", ["", "it's", "a b", "{rows}", "a\\b", ".hidden", "a\n"])
def test_a_name_that_sql_or_a_folder_would_change_is_refused(
    state: ReplayedWorkspace, name: str
) -> None:
    with pytest.raises(SettingRefusedError, match="letters, digits"):
        run_of(state, "replay", cluster=name)


def test_settings_of_every_kind_are_plain() -> None:
    given = Settings((BrokerSettings("here/b.properties", 1, {"a": "1"}),), GivenSettings())
    plain = plain_settings({"given": given, "until": datetime(2027, 1, 1, tzinfo=UTC).date()})
    assert plain["given"]["brokers"] == [{"node": 1, "values": {"a": "1"}}]
    assert plain["until"] == "2027-01-01"
    assert plain_settings(partial(print)) is None
    with pytest.raises(TypeError, match="no setting that a run can be told by"):
        plain_settings(object())
