"""The files of `restore`: names that are safe, lines that Kafka's tool takes, a dry run first."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pyarrow as pa
import pytest

from reports.answers.restore import (
    STREAMS_TOOL,
    Reset,
    commands_text,
    file_names,
    offsets_text,
    refused_text,
)

HOSTILE = (
    *("", ".", "..", "-rf", "/etc/passwd", "a/b", "a b", "a'b\"c", "$(touch x)", "`id`", "a\nb"),
    *("refused", "Refused", "UPPER", "upper", "é" * 120, "x" * 300, "x" * 301, "%41", "A", "a\\b"),
)


def test_every_group_has_a_file_of_its_own_whatever_its_name() -> None:
    names = file_names(HOSTILE)
    assert set(names) == set(HOSTILE)
    assert len({name.casefold() for name in names.values()}) == len(HOSTILE)
    for name in names.values():
        assert name.endswith(".csv")
        assert len(name.encode()) <= 255
        assert "/" not in name
        assert "\n" not in name
        assert name[0] not in ".-"
        assert name.casefold() != "refused.csv"


def test_a_plain_name_stays_as_it_is() -> None:
    names = file_names(["parcel-router", "app_1.eu", "a b"])
    assert names == {
        "parcel-router": "parcel-router.csv",
        "app_1.eu": "app_1.eu.csv",
        "a b": "a%20b.csv",
    }


def test_the_lines_are_topic_partition_offset_without_a_header() -> None:
    rows = pa.table({"topic": ["t", "t-2"], "partition": [0, 11], "committed_offset": [5, 1 << 40]})
    assert offsets_text(rows) == "t,0,5\nt-2,11,1099511627776\n"


def test_refused_offsets_keep_their_reasons() -> None:
    columns = {
        "group_id": ["a,b"],
        "topic": ["t"],
        "partition": [0],
        "committed_offset": [5],
        "present_offset": pa.array([None], pa.int64()),
        "reason": ["moved_on"],
        "detail": ["the log ends"],
    }
    assert refused_text(pa.table(columns)).splitlines() == [
        "group_id,topic,partition,committed_offset,present_offset,reason,detail",
        '"a,b",t,0,5,,moved_on,the log ends',
    ]
    columns["group_id"] = ["=cmd|' /C calc'!A0"]
    assert refused_text(pa.table(columns)).splitlines()[1].startswith("'=cmd|")


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """Stand-ins for Kafka's tools, which write down what they were called with."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("kafka-consumer-groups.sh", "kafka-streams-groups.sh"):
        tool = folder / name
        tool.write_text(
            f'#!/bin/sh\nprintf \'%s\\037\' {name} "$@" >> "$CALLS"\nprintf \'\\036\' >> "$CALLS"\n'
        )
        tool.chmod(0o755)
    return folder


def calls(tools: Path, script: str, *arguments: str, **environment: str) -> list[list[str]]:
    folder = tools.parent / "out"
    folder.mkdir()
    (folder / "commands.sh").write_text(script)
    written = tools.parent / "calls"
    shell = shutil.which("sh")
    assert shell is not None
    subprocess.run(
        [shell, str(folder / "commands.sh"), *arguments],
        check=True,
        env={
            "PATH": f"{tools}:/usr/bin:/bin",
            "CALLS": str(written),
            "BOOTSTRAP_SERVER": "b:9092",
            **environment,
        },
    )
    lines = written.read_text().split("\x1e")[:-1]
    assert list(folder.iterdir()) == [folder / "commands.sh"]
    return [line.split("\x1f")[:-1] for line in lines]


def test_nothing_is_executed_unless_it_is_said(tools: Path) -> None:
    script = commands_text("x", [Reset("g", "g.csv")])
    assert calls(tools, script) == [
        [
            *("kafka-consumer-groups.sh", "--bootstrap-server", "b:9092", "--group", "g"),
            *("--reset-offsets", "--from-file", "g.csv", "--dry-run"),
        ]
    ]


def test_every_dry_run_comes_before_the_first_change(tools: Path) -> None:
    resets = [
        Reset("g", "g.csv"),
        Reset("s", "s.csv", STREAMS_TOOL, ["s is Stable\nwith 1 member"]),
    ]
    found = calls(tools, commands_text("x", resets), "--execute", COMMAND_CONFIG="my client.conf")
    assert [(call[0], call[-1]) for call in found] == [
        ("kafka-consumer-groups.sh", "--dry-run"),
        ("kafka-streams-groups.sh", "--dry-run"),
        ("kafka-consumer-groups.sh", "--execute"),
        ("kafka-streams-groups.sh", "--execute"),
    ]
    assert all(call[3:5] == ["--command-config", "my client.conf"] for call in found)


def test_names_of_groups_reach_the_tool_as_they_are_and_run_nothing(tools: Path) -> None:
    names = file_names(HOSTILE)
    resets = [Reset(group, names[group], notes=[f"{group} is Stable"]) for group in HOSTILE]
    found = calls(tools, commands_text("$(touch x)\ntouch y", resets))
    groups = [
        call[4] if call[3] == "--group" else call[3].removeprefix("--group=") for call in found
    ]
    assert groups == list(HOSTILE)
