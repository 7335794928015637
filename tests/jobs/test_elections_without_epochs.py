"""Vouching for elections of a log without leader epochs has its instants answered, everywhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from jobs.cli.main import cli
from schemas import record_type
from tests.support.decoded_here import decoded_here
from tests.support.encoder import encode_key, encode_value
from tests.support.log_dirs import LogDir
from tests.support.segments import NOW, Record, joined, messages

BETWEEN, END = "2023-11-14T22:13:21.500Z", "end"
VOUCHED = "assumed: no election lost commits but those that the dump shows"
BY_SETTINGS = "by the settings given, no election lost commits but those that the dump shows"


@pytest.fixture(scope="module")
def decoded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four commits of one offset, a second apart, in message format 1."""
    folder = tmp_path_factory.mktemp("before-0.11")
    kind = record_type("offset_commit")
    key = encode_key(kind, 1, {"group": "g", "topic": "t", "partition": 0})
    held = []
    for offset in range(4):
        at = NOW + 1000 * offset
        said = {"metadata": "", "commit_timestamp": at, "expire_timestamp": -1}
        held.append(Record(offset, at, key, encode_value(kind, 1, {"offset": offset, **said})))
    logs = LogDir.create(folder / "logs", cluster=None)
    logs.partition("__consumer_offsets-0", {0: [joined(messages(held, 1))]})
    decoded_here([str(logs.path)], folder / "decoded")
    return folder / "decoded"


def ran(*arguments: str | Path) -> Result:
    result = CliRunner().invoke(cli, [str(each) for each in arguments], standalone_mode=False)
    assert result.exception is None, result.stderr
    return result


def asked(command: str, decoded: Path, folder: Path, *more: str | Path) -> Result:
    out = ("--out", folder / "rescue") if command == "restore" else ()
    return ran(command, decoded, *COMMANDS[command], *out, *more)


def properties(folder: Path, text: str) -> Path:
    path = folder / "server.properties"
    path.write_text(text)
    return path


COMMANDS = {
    "describe": ("--group", "g", "--as-of", BETWEEN),
    "list": ("--as-of", BETWEEN),
    "restore": ("--group", "g", "--include-live", "--as-of", BETWEEN),
    "diff": ("--from", BETWEEN, "--to", END),
    "timeline": ("--group", "g", "--as-of", BETWEEN),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_without_evidence_an_instant_is_not_answered(
    command: str, decoded: Path, tmp_path: Path
) -> None:
    assert asked(command, decoded, tmp_path).return_value == 3


@pytest.mark.parametrize("command", COMMANDS)
def test_a_person_may_vouch_for_elections(command: str, decoded: Path, tmp_path: Path) -> None:
    result = asked(command, decoded, tmp_path, "--assume", "clean-elections")
    assert result.return_value == 0
    assert VOUCHED in result.stderr


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(each, marks=() if each in {"describe", "diff"} else pytest.mark.long)
        for each in COMMANDS
    ],
)
def test_settings_that_allow_no_unclean_election_are_evidence(
    command: str, decoded: Path, tmp_path: Path
) -> None:
    config = properties(tmp_path, "broker.id=1\nunclean.leader.election.enable=false\n")
    result = asked(command, decoded, tmp_path, "--broker-config", config)
    assert result.return_value == 0
    assert f"{BY_SETTINGS}: unclean.leader.election.enable=false" in result.stderr


@pytest.mark.parametrize(
    "text",
    [
        "unclean.leader.election.enable=true",
        pytest.param("log.dirs=/kafka", id="not written, and allowed by default before 0.11"),
        "offsets.topic.replication.factor=3",
    ],
)
def test_settings_that_allow_one_are_none(text: str, decoded: Path, tmp_path: Path) -> None:
    config = properties(tmp_path, f"broker.id=1\n{text}\n")
    result = ran("describe", decoded, *COMMANDS["describe"], "--broker-config", config)
    assert result.return_value == 3


@pytest.mark.parametrize("option", ["--assume", "--broker-config"])
def test_a_replay_keeps_what_it_was_told_of_elections(
    option: str, decoded: Path, tmp_path: Path
) -> None:
    config = properties(tmp_path, "broker.id=1\noffsets.topic.replication.factor=1\n")
    told = {"--assume": "clean-elections", "--broker-config": str(config)}[option]
    ran("replay", decoded, "--as-of", BETWEEN, option, told, "--out", tmp_path / "at")
    manifest = json.loads((tmp_path / "at" / "manifest.json").read_text())
    assumed = {"--assume": ["clean-elections"], "--broker-config": ["one-replica"]}[option]
    assert manifest["replay"]["assumed"] == assumed
    assert ran("describe", tmp_path / "at", "--group", "g", option, told).return_value == 0


def test_usage_takes_it_as_every_command_that_names_an_instant_does(decoded: Path) -> None:
    result = ran("usage", decoded, "--as-of", END, "--assume", "clean-elections")
    assert VOUCHED in result.stderr
