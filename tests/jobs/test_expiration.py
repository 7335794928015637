"""The installed command `expiration`, on what a broker expired and with its settings."""

from __future__ import annotations

import csv
import io
import json
import shlex
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from analytics.questions.findings.found import findings
from analytics.tables.stored_tables import StoredTables
from analytics.workspace import Workspace
from schemas.finding_rules import finding_rules
from tests.support.removed_by_brokers import read_removals

if TYPE_CHECKING:
    from tests.conftest import Groupscope

pytestmark = pytest.mark.long

EXPIRY = Path(__file__).parents[1] / "data" / "expiry"
DUMP = EXPIRY / "kafka-4.3.1-expiry"
END = datetime(2026, 11, 22, tzinfo=UTC)
PROPERTIES = DUMP / "broker-1.server.properties"
WAYS = ("restore", "unchanged", "refused")
"""What `restore` does with an offset, the best first."""


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("expiration") / "workspace"


@pytest.fixture(scope="module")
def told(groupscope: Groupscope, workspace: Path) -> dict[str, Any]:
    run = groupscope(
        "expiration", DUMP / "broker-1", "--out", workspace,
        "--broker-config", PROPERTIES, "--retention-minutes", "1,60", "--format", "json",
    )  # fmt: skip
    assert run.returncode in {0, 3}, run.stderr
    answer: dict[str, Any] = json.loads(run.stdout)
    return answer


def test_rules_and_retention_are_said(told: dict[str, Any]) -> None:
    assert told["rules"] == "current"
    assert "written by Kafka 4.3 or newer" in told["rules_said"]
    assert told["retention"][0].startswith("offsets.retention.minutes = 1 (from the settings")
    assert told["findings"] == []


def test_every_offset_has_a_rule_and_a_status(told: dict[str, Any]) -> None:
    rows = told["rows"]
    assert {row["retention_source"] for row in rows} <= {"broker_config", "record"}
    rules = {row["group_id"]: (row["rule"], row["status"]) for row in rows}
    assert rules["modern-regex"] == ("subscribed_topic", "protected")
    assert rules["streams-live"] == ("subscribed_topic", "protected")
    assert rules["legacy-day"] == ("explicit_expire_timestamp", "scheduled")


def test_every_removal_has_its_true_cause(told: dict[str, Any]) -> None:
    true = read_removals(EXPIRY / "removals-kafka-4.3.1-expiry.json")
    ours = {
        (row["coordinator_partition"], row["record_offset"]): row["cause"]
        for row in told["removals"]
    }
    assert ours == {place: each["cause"] for place, each in true.items()}
    verdicts = Counter(row["verdict"] for row in told["removals"])
    assert set(verdicts) == {"on_time", "late", "not_applicable"}


def test_what_if_is_told_by_retention_and_group(told: dict[str, Any]) -> None:
    found = {(row["retention_minutes"], row["group_id"]): row for row in told["what_if"]}
    # Its offsets went once, and were committed again: another hour would have kept them.
    assert found[1, "abandoned-etl"]["verdict"] == "would_have_lost"
    assert found[60, "abandoned-etl"]["verdict"] == "not_lost_in_period"
    assert found[1, "streams-live"]["verdict"] == "safe"
    # A few minutes of log do not show that an hour is enough.
    assert found[60, "streams-live"]["verdict"] == "not_lost_in_period"
    assert all(row["observed_from"] <= row["observed_to"] for row in told["what_if"])
    assert all(row["lost_now"] <= row["offsets"] for row in told["what_if"])


def test_groups_whose_offsets_have_all_expired_are_dead_with_a_tombstone(
    told: dict[str, Any],
) -> None:
    ended = {row["group_id"]: row for row in told["endings"]}
    # A commit pending in a transaction keeps one; another went when its transaction had ended.
    assert ended.pop("tx-open-2")["verdict"] == "kept_by_transaction"
    late = ended.pop("tx-keeps-alive")
    assert (late["verdict"], late["tombstone_at"] > late["removed_at"]) == ("dead", True)
    assert len(ended) == 21
    for row in ended.values():
        assert (row["verdict"], row["tombstone_at"]) == ("dead", row["removed_at"])


def test_versions_of_the_request_are_told_by_group(told: dict[str, Any]) -> None:
    found = {(row["group_id"], row["request"]): row["may_be"] for row in told["requests"]}
    # A retention of its own makes an expire time, which no other request does.
    assert found["legacy-day", "2-4 with a retention"] > 0
    assert found["legacy-day", "5 and later"] == 0
    assert found["modern-regex", "2-4 with a retention"] == 0
    assert found["modern-regex", "5 and later"] > 0


def test_the_tables_are_kept(told: dict[str, Any], workspace: Path) -> None:
    for name, rows in (
        ("offset_expiration", told["rows"]),
        ("offset_removals", told["removals"]),
        ("retention_what_if", told["what_if"]),
        ("group_endings", told["endings"]),
        ("commit_requests", told["requests"]),
    ):
        kept = pq.read_table(workspace / "evaluations" / name)
        assert kept.num_rows == len(rows) > 0


def test_without_settings_the_past_is_not_judged(
    groupscope: Groupscope, told: dict[str, Any], workspace: Path
) -> None:
    del told  # the workspace is there
    # The first lost all they had, the second still has all of it.
    groups = ("--group", "connect-*", "--group", "slow-committer")
    run = groupscope("expiration", workspace, *groups, "--format", "csv")
    assert run.returncode == 3, run.stderr
    assert "Kafka's default, assumed" in run.stderr
    assert "cannot tell: whether 4 offsets were removed rightly" in run.stderr
    rows = list(csv.DictReader(io.StringIO(run.stdout)))
    assert {(row["group_id"], row["retention_source"]) for row in rows} == {
        ("slow-committer", "default_assumed")
    }


def test_what_the_rules_advise_gives_back_what_expired(
    groupscope: Groupscope, told: dict[str, Any], workspace: Path, tmp_path: Path
) -> None:
    assert told["removals"]
    removals = StoredTables(Workspace(str(workspace))).read("offset_removals")
    rules = [rule for rule in finding_rules() if rule.restore and rule.table == "offset_removals"]
    dump = {"dump": shlex.quote(str(workspace))}
    rows = findings(rules, {"offset_removals": removals}, END, {"duration": str}, dump).to_pylist()
    commands = {each for row in rows for each in row["suggestion"].split("; ")}
    back: dict[Any, set[Any]] = {}
    for command in sorted(each for each in commands if " restore " in each):
        run = groupscope(
            *shlex.split(command)[1:], "--table", "offsets", "--format", "json", cwd=tmp_path
        )
        assert run.returncode == 0, run.stderr
        for row in json.loads(run.stdout)["rows"]:
            place = row["group_id"], row["topic"], row["partition"]
            said = row["committed_offset"], row["verdict"], row["reason"]
            back.setdefault(place, set()).add(said)
    lost = {
        (row["group_id"], row["topic"], row["partition"]): row["last_offset"]
        for row in sorted(removals.to_pylist(), key=lambda row: row["removed_at"])
        if row["cause"] in {"expiration", "group_deleted"} and row["last_offset"] is not None
    }
    # One that was lost twice may be refused as of one loss and come back as of the other.
    ways = Counter(
        min((word for value, word, _ in back[place] if value == offset), key=WAYS.index)
        for place, offset in lost.items()
    )
    assert ways == {"restore": 93, "refused": 5}
    reasons = {why for place in lost for _, word, why in back[place] if word == "refused"}
    assert reasons == {"moved_on", "pending_transaction"}
