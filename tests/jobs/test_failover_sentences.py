"""Each sentence about the bundled failover, held against the timeline and `divergence.json`.

What clients were told, counted plainly by `tests/verdicts/incidents.py`; what can be given back,
against the files that `restore` wrote.
"""

from __future__ import annotations

import csv
import json
import re
from datetime import datetime
from pathlib import Path

import pytest

from tests.verdicts.incidents import Failover, failover_of, rewinds_of, timeline_of
from tests.verdicts.witness import Key

DUMP = Path(__file__).parents[1] / "data" / "dumps" / "kafka-4.3.1-failover"
ELECTED = re.compile(
    r"(?P<copy>broker-\d)'s last record in internal topics is from (?P<last>\S+); "
    r"(?P<brokers>broker-\d(?: and broker-\d)*), which lacked its last (?P<records>\d+) records in "
    r"(?P<partitions>\d+) partitions of internal topics, were elected from (?P<from>\S+) to "
    r"(?P<to>\S+) \(unclean\); (?P<commit_groups>\d+) groups lost (?P<commits>\d+) commits, "
    r"(?P<least>at least )?(?P<again>\d+) records are read again; (?P<more>\d+) more groups lost "
    r"deletions or the state of share groups\."
)
REWOUND = re.compile(
    r"(?P<groups>\d+) groups?: rewound by a member on (?P<offsets>\d+) partitions?; "
    r"(?P<again>\d+) records are read again\."
)
GIVEN_BACK = re.compile(
    r"(?P<offsets>\d+) offsets of (?P<groups>\d+) groups can be given back with the command below "
    r"\((?P<refused>\d+) refused\)\."
)


@pytest.fixture(scope="module")
def sentences(failover_incident: Path) -> list[re.Match[str]]:
    """The sentences, each of which is of a form that is held."""
    rows = json.loads((failover_incident / "incident.json").read_text("utf-8"))
    forms = (ELECTED, REWOUND, GIVEN_BACK)
    matches = [form.fullmatch(each) for form, each in zip(forms, rows["summary"], strict=True)]
    assert None not in matches, rows["summary"]
    return [each for each in matches if each is not None]


@pytest.fixture(scope="module")
def failover() -> Failover:
    divergence = json.loads((DUMP / "tools" / "divergence.json").read_text("utf-8"))
    return failover_of(timeline_of(DUMP.name), divergence)


def _epoch_ms(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def _is_commit(was: int | None) -> bool:
    return was is not None


def test_whose_records_were_lost_and_who_was_elected_and_when(
    sentences: list[re.Match[str]], failover: Failover
) -> None:
    elected = sentences[0]
    assert elected["copy"] == "broker-1"
    assert int(elected["records"]) == failover.records
    assert int(elected["partitions"]) == failover.partitions
    assert elected["brokers"] == " and ".join(f"broker-{each}" for each in failover.survivors)
    first, last = failover.elected
    # The operator's clock stands after the controller's: the election is done when it answers.
    assert first - 1000 <= _epoch_ms(elected["from"]) <= first
    assert last - 1000 <= _epoch_ms(elected["to"]) <= last
    sent, frozen = failover.last
    assert sent <= _epoch_ms(elected["last"]) <= frozen


def test_what_groups_lost_is_what_they_had_committed_to_the_dead_broker(
    sentences: list[re.Match[str]], failover: Failover
) -> None:
    elected = sentences[0]
    commits = {key for key, was in failover.lost.items() if _is_commit(was)}
    groups = {key[0] for key in commits}
    # Of members who committed without a word nobody told how much was lost.
    unwitnessed = len(failover.unwitnessed)
    assert unwitnessed == 1
    assert int(elected["commit_groups"]) == len(groups) + unwitnessed
    assert int(elected["commits"]) == len(commits) + 3 * unwitnessed
    others = ({key[0] for key in failover.lost} | failover.share_groups) - groups
    assert int(elected["more"]) == len(others)


def test_records_are_read_again_from_where_groups_went_on(
    sentences: list[re.Match[str]], failover: Failover
) -> None:
    elected = sentences[0]
    known = [each for each in failover.again.values() if each is not None]
    assert int(elected["again"]) == sum(known)
    # Of groups that never came back nothing shows it.
    assert bool(elected["least"]) is (None in failover.again.values()) is True


def test_members_that_went_back_by_themselves_are_another_cause(
    sentences: list[re.Match[str]], failover: Failover
) -> None:
    first, last = failover.elected
    after = [each for each in timeline_of(DUMP.name) if each["at"] >= first]
    rewinds = rewinds_of(after, (first, last + 120_000))
    assert int(sentences[1]["groups"]) == len({key[0] for key in rewinds})
    assert int(sentences[1]["offsets"]) == len(rewinds)
    assert int(sentences[1]["again"]) == sum(rewinds.values())


def test_what_can_be_given_back_is_in_the_files_and_was_in_force(
    sentences: list[re.Match[str]], failover: Failover, failover_incident: Path
) -> None:
    folder = failover_incident / "restore"
    given: dict[Key, int] = {}
    for path in folder.glob("*.csv"):
        if path.name != "refused.csv":
            for topic, partition, offset in csv.reader(path.read_text("utf-8").splitlines()):
                given[path.stem, topic, int(partition)] = int(offset)
    refused = list(csv.DictReader((folder / "refused.csv").read_text("utf-8").splitlines()))
    assert int(sentences[2]["offsets"]) == len(given)
    assert int(sentences[2]["groups"]) == len({key[0] for key in given})
    assert int(sentences[2]["refused"]) == len(refused)
    assert given.items() <= failover.lost.items()
