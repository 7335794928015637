"""`snapshot` of three brokers that change while they are read: leaders, replicas, and who answers.

Every snapshot is taken slowly, while clients act and cleaners pass; at last all of them are held
against what the brokers have on their disks.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from schemas.names import CONSUMER_OFFSETS, TRANSACTION_STATE
from tests.brokers.asking import Ask, Asker
from tests.brokers.programs import Programs
from tests.brokers.releases import INTERNAL, Release
from tests.brokers.snapshot_rows import place_of, rows_below
from tests.brokers.three import ThreeBrokers
from tests.brokers.troupe import Troupe
from tests.conftest import COMMAND
from tests.support.recorded_cluster import document

if TYPE_CHECKING:
    from tests.conftest import Groupscope

pytestmark = pytest.mark.maven

RELEASES = ("3.9.2", "4.2.1", "4.4.0")
SEED, SECONDS = 7, 150
"""The seed's settings have the cleaner come while the clients act."""
READING_SECONDS, UNTIL_IT_HAPPENS = 8, 1
PATIENCE = "6"
_SECONDS = 240

Act = Callable[[ThreeBrokers, Ask], None]


def leaders_change(three: ThreeBrokers, ask: Ask) -> None:
    three.lead(ask, CONSUMER_OFFSETS, (2, 3, 1))
    three.lead(ask, TRANSACTION_STATE, (3, 1, 2))


def leaders_change_again(three: ThreeBrokers, ask: Ask) -> None:
    """After replicas moved; of those that are left."""
    three.lead(ask, CONSUMER_OFFSETS, (1, 3))
    three.lead(ask, TRANSACTION_STATE, (2, 1))


def replicas_move(three: ThreeBrokers, ask: Ask) -> None:
    three.lead(ask, CONSUMER_OFFSETS, (3, 1))
    three.lead(ask, TRANSACTION_STATE, (1, 2))


def a_broker_is_killed(three: ThreeBrokers, _ask: Ask) -> None:
    three.brokers[2].kill()


def a_broker_is_too_slow(three: ThreeBrokers, _ask: Ask) -> None:
    three.brokers[1].pause()


class Happening(NamedTuple):
    """What happens while one reads, what has it be over, and options of the command."""

    act: Act
    end: Act
    options: tuple[str, ...] = ()


def nothing(_three: ThreeBrokers, _ask: Ask) -> None:
    """Nothing is to be undone."""


IN_TASKS = ("--master", "local[2]")
KILLED = Happening(a_broker_is_killed, lambda three, _: three.brokers[2].start())
HAPPENINGS = {
    "leaders change": Happening(leaders_change, nothing),
    "replicas move": Happening(replicas_move, nothing),
    "leaders change, in tasks": Happening(leaders_change_again, nothing, IN_TASKS),
    "a broker is killed": KILLED,
    "a broker is killed, in tasks": KILLED._replace(options=IN_TASKS),
    "a broker is too slow": Happening(
        a_broker_is_too_slow, lambda three, _: three.brokers[1].go_on()
    ),
}


@dataclass(frozen=True)
class Taken:
    """A snapshot, and how the command ended."""

    out: Path
    ran: subprocess.CompletedProcess[str]


@pytest.fixture(scope="module", params=RELEASES)
def release(request: pytest.FixtureRequest) -> Release:
    return Release(request.param)


def command(three: ThreeBrokers, out: Path, *options: str) -> list[str]:
    return [
        str(COMMAND), "snapshot", "--bootstrap-server", three.bootstrap, "--out", str(out),
        "--timeout", PATIENCE, *options,
    ]  # fmt: skip


def run_while(
    act: Callable[[], None], arguments: list[str], out: Path
) -> subprocess.CompletedProcess[str]:
    """Run a command; something happens while it reads."""
    with subprocess.Popen(
        arguments,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    ) as process:
        while not [*out.parent.glob(f".{out.name}.unfinished/**/*.log")]:
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)
        time.sleep(UNTIL_IT_HAPPENS)
        act()
        printed, said = process.communicate(timeout=_SECONDS)
    return subprocess.CompletedProcess(arguments, process.returncode, printed, said)


@pytest.fixture(scope="module")
def three(
    tmp_path_factory: pytest.TempPathFactory, release: Release, programs: Programs
) -> ThreeBrokers:
    return ThreeBrokers(programs, release, SEED, tmp_path_factory.mktemp("brokers"))


@pytest.fixture(scope="module")
def taken(
    three: ThreeBrokers,
    release: Release,
    programs: Programs,
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, Taken]:
    """A snapshot by what happened meanwhile; all brokers have ended."""
    folder = tmp_path_factory.mktemp("snapshots")
    clients = Troupe(folder / "clients.txt")
    found = {}
    with three.running():
        try:
            with Asker(programs, three.addresses[0].bootstrap) as ask:
                three.wait_for_all(ask)
                clients.begin(programs, release, three.addresses[0].bootstrap, SEED, SECONDS)
                time.sleep(20)
                for number, (name, happening) in enumerate(HAPPENINGS.items()):
                    rate = _rate(three, folder / f"whole-{number}")
                    out = folder / f"dump-{number}"
                    arguments = command(three, out, "--max-rate", str(rate), *happening.options)
                    ran = run_while(partial(happening.act, three, ask), arguments, out)
                    happening.end(three, ask)
                    found[name] = Taken(out, ran)
                    three.wait_for_all(ask)
        finally:
            clients.kill()
    return found


def _rate(three: ThreeBrokers, out: Path) -> int:
    """Return at how many bytes a second a snapshot takes as long as it is to take."""
    ran = subprocess.run(
        command(three, out, "--no-check"), capture_output=True, encoding="utf-8", check=False
    )
    assert ran.returncode in {0, 3}, ran.stderr
    return max(sum(each.bytes for each in document(out).logs) // READING_SECONDS, 1)


@pytest.mark.parametrize("name", HAPPENINGS)
def test_it_is_whole_or_says_what_it_is_not(taken: dict[str, Taken], name: str) -> None:
    out, ran = taken[name].out, taken[name].ran
    assert ran.returncode in {0, 3}, ran.stderr
    assert "Traceback" not in ran.stderr
    assert out.exists(), ran.stderr
    snapshot = document(out)
    failures = [each for each in snapshot.logs if each.failure is not None]
    assert (ran.returncode == 3) == bool(snapshot.unread or "cannot tell: " in ran.stderr)
    assert not failures or "not read: " in ran.stderr
    # Brokers change; what is committed does not.
    assert "contradicts" not in ran.stderr
    assert {(each.topic, each.partition) for each in snapshot.logs} == {
        (topic, each)
        for topic in {log.topic for log in snapshot.logs}
        for each in range(INTERNAL[topic])
    }


@pytest.mark.parametrize(
    "name", [each for each in HAPPENINGS if each.startswith(("leaders", "replicas"))]
)
def test_what_has_another_leader_is_read_again_from_it(taken: dict[str, Taken], name: str) -> None:
    snapshot = document(taken[name].out)
    assert any(each.readings > 1 for each in snapshot.logs)
    assert [each.failure for each in snapshot.logs if each.failure is not None] == []


@pytest.mark.parametrize("name", HAPPENINGS)
def test_nothing_that_the_disks_have_is_lacking(
    groupscope: Groupscope,
    three: ThreeBrokers,
    taken: dict[str, Taken],
    tmp_path: Path,
    name: str,
) -> None:
    out = taken[name].out
    ends = {
        (each.topic, each.partition): each.log_end_offset or 0
        for each in document(out).logs
        if each.failure is None
    }
    tables = []
    for number, inputs in enumerate(([out], three.log_dirs)):
        workspace = tmp_path / str(number)
        ran = groupscope("decode", *inputs, "--out", workspace, "--quiet")
        assert ran.returncode in {0, 3}, ran.stderr
        tables.append(rows_below(workspace, ends))
    snapshot, disk = tables
    for table, rows in disk.items():
        lacking = [rows[each] for each in rows.keys() - snapshot.get(table, {}).keys()]
        # A tombstone the cleaner of one broker has removed, and that of another one not yet.
        assert [each for each in lacking if not each.get("is_tombstone")] == [], table
    # What is gone the cleaner removed later; where there is a record it is the same one.
    there = {place_of(each) for rows in disk.values() for each in rows.values()}
    for table, rows in snapshot.items():
        gone = [rows[each] for each in rows.keys() - disk.get(table, {}).keys()]
        assert [each for each in gone if place_of(each) in there] == [], table
    assert snapshot["offset_commit"]
