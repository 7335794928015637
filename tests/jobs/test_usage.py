"""The command `usage` on the bundled failover: what the files hold, to the byte."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from tests.brokers.truncation import truncate

if TYPE_CHECKING:
    from tests.conftest import Groupscope


def answer(groupscope: Groupscope, *arguments: str | Path) -> dict[str, Any]:
    result = groupscope("usage", *arguments, "--format", "json", "--quiet")
    assert result.returncode == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_bytes_come_out_even_with_the_files(
    groupscope: Groupscope, failover_workspace: Path, failover_dump: Path
) -> None:
    found = answer(groupscope, failover_workspace)

    files = [
        path.stat().st_size
        for pattern in ("*/__*-*/*.log", "*/__*-*/*.checkpoint")
        for path in failover_dump.glob(pattern)
        if path.name != "00000000000000000000-0000000000.checkpoint"
    ]
    assert found["comes_out_even"]
    assert found["file_bytes"] == sum(files)
    assert sum(row["file_bytes"] for row in found["partition_usage"]) == sum(files)


def test_live_commits_are_the_committed_offsets(
    groupscope: Groupscope, failover_workspace: Path
) -> None:
    rows = answer(groupscope, failover_workspace, "--by", "group")["rows"]
    committed = pq.read_table(failover_workspace / "state" / "committed_offsets").num_rows

    by_type = answer(groupscope, failover_workspace)["rows"]
    (commits,) = (row for row in by_type if row["record_type"] == "offset_commit")
    assert commits["live_records"] == committed == 81
    assert sum(row["records"] for row in rows) == sum(row["records"] for row in by_type)


def test_text_says_that_every_byte_is_accounted_for(
    groupscope: Groupscope, failover_workspace: Path
) -> None:
    result = groupscope("usage", failover_workspace, "--by", "partition")

    assert result.returncode == 0
    assert "Every byte is accounted for" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 120


def test_one_group_is_shown_and_bytes_still_come_out_even(
    groupscope: Groupscope, failover_workspace: Path
) -> None:
    found = answer(groupscope, failover_workspace, "--group", "parcel-*", "--by", "group")

    groups = [row["group_id"] for row in found["rows"]]
    assert "parcel-router" in groups
    assert all(each.startswith("parcel-") for each in groups)
    assert found["comes_out_even"]


def test_growth_since_an_earlier_dump_and_when_the_disk_is_full(
    groupscope: Groupscope, failover_workspace: Path, failover_dump: Path, tmp_path: Path
) -> None:
    """The earlier dump is the later one without the second half of what one partition has."""
    earlier = tmp_path / "earlier"
    shutil.copytree(failover_dump / "broker-2", earlier / "broker-2")
    for partition, end in (("__consumer_offsets-9", 120), ("__cluster_metadata-0", 100)):
        truncate(earlier / "broker-2" / partition, end)
    workspace = tmp_path / "workspace"
    assert groupscope("decode", earlier / "broker-2", "--out", workspace).returncode == 0

    result = groupscope(
        *("usage", failover_workspace, "--since", workspace, "--disk", "2GB", "--format", "json")
    )

    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    grown = {
        (row["topic"], row["partition"]): row["file_bytes"] - row["earlier_bytes"]
        for row in found["usage_growth"]
    }
    assert {row["copy"] for row in found["usage_growth"]} == {"broker-2"}
    log = "broker-2/__consumer_offsets-9/00000000000000000000.log"
    more = (failover_dump / log).stat().st_size - (earlier / log).stat().st_size
    assert more > 0
    assert grown["__consumer_offsets", 9] == more
    assert not any(
        more for place, more in grown.items() if place[0] == "__consumer_offsets" and place[1] != 9
    )
    (disk,) = found["disk"]
    assert disk["full_at_ms"] > 0


def test_a_partition_that_the_earlier_dump_lacks_has_no_known_growth(
    groupscope: Groupscope, failover_workspace: Path, failover_dump: Path, tmp_path: Path
) -> None:
    earlier = tmp_path / "earlier"
    shutil.copytree(failover_dump / "broker-2", earlier / "broker-2")
    shutil.rmtree(earlier / "broker-2" / "__consumer_offsets-9")
    truncate(earlier / "broker-2" / "__cluster_metadata-0", 100)
    workspace = tmp_path / "workspace"
    assert groupscope("decode", earlier / "broker-2", "--out", workspace).returncode == 0

    result = groupscope(
        *("usage", failover_workspace, "--since", workspace, "--disk", "2GB", "--format", "json")
    )

    assert result.returncode == 3
    assert "how __consumer_offsets-9 grew" in result.stderr
    assert "has no copy of them" in result.stderr
    rows = json.loads(result.stdout)["usage_growth"]
    assert all(row["topic"] != "__consumer_offsets" or row["partition"] != 9 for row in rows)


def test_a_disk_without_an_earlier_dump_is_a_wrong_call(
    groupscope: Groupscope, failover_workspace: Path
) -> None:
    result = groupscope("usage", failover_workspace, "--disk", "1TB")
    assert result.returncode == 2
    assert "--since" in result.stderr
    for size in ("much", "0", "-3GB"):
        assert groupscope("usage", failover_workspace, f"--disk={size}").returncode == 2


def test_the_same_dump_is_no_earlier_one(groupscope: Groupscope, failover_workspace: Path) -> None:
    result = groupscope("usage", failover_workspace, "--since", failover_workspace)
    assert result.returncode == 2
    assert "ends earlier" in result.stderr


def test_left_behind_groups_come_with_commands_to_review(
    groupscope: Groupscope, failover_workspace: Path
) -> None:
    result = groupscope(
        *("usage", failover_workspace, "--table", "group_deletions", "--format", "csv")
    )
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert len(rows) == 6
    assert {row["pattern"] for row in rows} == {"console-consumer-<number>"}
    assert all(row["command"].endswith(f"--group {row['group_id']}") for row in rows)


def test_how_many_more_members_fit_is_told_of_each_classic_group(
    groupscope: Groupscope, failover_workspace: Path
) -> None:
    rows = answer(groupscope, failover_workspace)["record_growth"]
    (row,) = (row for row in rows if row["group_id"] == "parcel-router")
    assert (row["record_type"], row["grows_with"]) == ("group_metadata", "members")
    assert row["more_fit"] == (row["limit_bytes"] - 61 - row["most_bytes"]) // row["bytes_each"]


def test_what_files_held_at_an_earlier_instant_cannot_be_told(
    groupscope: Groupscope, failover_workspace: Path
) -> None:
    for earlier in (("--as-of", "-1m"), ("--as-of-offset", "__consumer_offsets:9:10")):
        result = groupscope("usage", failover_workspace, *earlier)
        assert (result.returncode, result.stdout) == (3, "")
        assert "compaction has taken records out" in result.stderr
    assert groupscope("usage", failover_workspace, "--as-of", "end").returncode == 0


def test_a_partition_that_no_copy_holds_is_cannot_tell(
    groupscope: Groupscope, failover_dump: Path, tmp_path: Path
) -> None:
    broker = tmp_path / "broker-2"
    shutil.copytree(failover_dump / "broker-2", broker)
    shutil.rmtree(broker / "__consumer_offsets-5")
    result = groupscope("usage", broker, "--top", "1")
    assert result.returncode == 3
    assert "what is in __consumer_offsets-5, which no copy holds" in result.stderr
    assert "Every byte is accounted for" in result.stdout
