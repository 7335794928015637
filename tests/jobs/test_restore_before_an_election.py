"""What the disk of the broker that led before an election gives back, alone and beside others."""

from __future__ import annotations

import csv
import shutil
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Groupscope

BEFORE = "2026-11-21T09:17:27.856Z"
"""Broker 1 led everything alone; since 09:20:36 brokers 2 and 3 do, who had been dead."""
Offsets = dict[tuple[str, str, str], str]


def disks_of(dump: Path, folder: Path, *names: str) -> Path:
    for each in (*names, "controller-100"):
        shutil.copytree(dump / each, folder / each)
    return folder


@pytest.fixture(scope="module")
def given(
    groupscope: Groupscope,
    failover_dump: Path,
    failover_workspace: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Any:
    """Return what is given back, and what is refused for which reasons."""
    folder = tmp_path_factory.mktemp("before")
    dumps = {"whole": failover_workspace}
    for name, disks in (("dead", ("broker-1",)), ("alive", ("broker-2", "broker-3"))):
        # Decoded once; what is asked of it later is asked of the same records.
        dump, dumps[name] = disks_of(failover_dump, folder / "disks" / name, *disks), folder / name
        assert groupscope("decode", dump, "--out", dumps[name]).returncode == 0

    def of(name: str, *options: str) -> tuple[Offsets, Offsets]:
        out = folder / "-".join(["out", name, *(each.strip("-") for each in options)])
        named = [str(dumps.get(each, each)) for each in options]
        asked = ("--group", "*", "--as-of", BEFORE, *named, "--out", out)
        result = groupscope("restore", dumps[name], *asked)
        assert result.returncode == (0 if name == "whole" else 3), result.stderr
        return back(out), refused(out)

    return of


def back(out: Path) -> Offsets:
    found = {}
    for path in out.glob("*.csv"):
        if path.name != "refused.csv":
            for topic, partition, offset in csv.reader(path.read_text("utf-8").splitlines()):
                found[path.stem, topic, partition] = offset
    return found


def refused(out: Path) -> Offsets:
    rows = csv.DictReader((out / "refused.csv").read_text("utf-8").splitlines())
    return {(row["group_id"], row["topic"], row["partition"]): row["reason"] for row in rows}


def test_against_the_brokers_that_lead_since_it_gives_back_what_all_disks_do(given: Any) -> None:
    whole, _ = given("whole")
    dead, _ = given("dead", "--against", "alive")
    assert dead == whole
    assert len(whole) == 8


def test_alone_it_says_that_the_present_cannot_be_told_and_not_what_it_was(given: Any) -> None:
    dead, why = given("dead")
    assert dead == {}
    assert not any("moved_on" in each for each in why.values())


def test_alone_it_gives_back_what_the_elected_brokers_surely_had(given: Any) -> None:
    """Each offset is as all disks have it, and none is given back that these refuse."""
    whole, refused_by_all = given("whole", "--include-live")
    dead, why = given("dead", "--include-live")
    assert not dead.keys() & refused_by_all.keys()
    assert all(whole.get(key, offset) == offset for key, offset in dead.items())
    assert len(dead.keys() & whole.keys()) == 11
    assert {why[key] for key in whole.keys() - dead.keys()} == {"data_uncertain"}
