"""A question to a workspace goes by the release named for its replay, as one to the dump does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from jobs.cli.main import cli
from schemas import record_type
from tests.support.encoder import encode_key, encode_value
from tests.support.log_dirs import LogDir
from tests.support.segments import NOW, Record, batch


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    """A commit and an empty group as releases from 2.3 to 3.9 write them alike."""
    commit, group = record_type("offset_commit"), record_type("group_metadata")
    key = encode_key(commit, 1, {"group": "g", "topic": "t", "partition": 0})
    value = {"offset": 7, "leader_epoch": -1, "metadata": "", "commit_timestamp": NOW}
    state = {
        "protocol_type": "consumer",
        "generation": 1,
        "protocol": None,
        "leader": None,
        "current_state_timestamp": NOW,
        "members": [],
    }
    rows = [
        Record(0, NOW, key, encode_value(commit, 3, value)),
        Record(1, NOW, encode_key(group, 2, {"group": "g"}), encode_value(group, 3, state)),
    ]
    logs = LogDir.create(tmp_path / "logs")
    logs.partition("__consumer_offsets-3", {0: [batch([row]).data for row in rows]})
    return logs.path


def ran(*arguments: str | Path) -> Result:
    result = CliRunner().invoke(cli, [str(each) for each in arguments], standalone_mode=False)
    assert result.exception is None, result.stderr
    return result


def rules(*arguments: str | Path) -> str:
    said: dict[str, Any] = json.loads(ran("expiration", *arguments, "--format", "json").stdout)
    return str(said["rules"])


@pytest.mark.parametrize("release", ["2.3", pytest.param("4.1", marks=pytest.mark.long)])
def test_expiration_has_the_rules_of_the_named_release(
    release: str, dump: Path, tmp_path: Path
) -> None:
    space, again = tmp_path / "space", tmp_path / "again"
    ran("replay", dump, "--out", space, "--kafka-version", release)
    ran("replay", space, "--out", again)

    expected = rules(dump, "--kafka-version", release)
    assert [rules(space), rules(again)] == [expected, expected]


def test_a_dump_is_asked_without_what_was_named_for_an_earlier_question(
    dump: Path, tmp_path: Path
) -> None:
    space = tmp_path / "space"
    named = rules(dump, "--out", space, "--kafka-version", "2.3")

    assert (named, rules(dump, "--out", space)) == ("2.1-2.3", "3.2-3.9")
