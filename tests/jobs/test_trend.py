"""`trend` of real audits: a cluster's dump as it was at three instants, recounted plainly."""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from hypothesis import strategies as st

from analytics.errors import EnvironmentUnfitError, InputNotRecognizedError, SettingRefusedError
from groupscope import open_runs
from reports.answers.trend import TABLES
from tests.support.examples import examples
from tests.support.grown_dump import dump_as_of

if TYPE_CHECKING:
    from tests.conftest import Groupscope

CLUSTER = "groupscopeLabCluster01"
INSTANTS = ("2026-11-21T09:18:00Z", "2026-11-21T09:20:30Z")
Row = Mapping[str, Any]


@pytest.fixture(scope="module")
def audits(
    groupscope: Groupscope,
    failover_dump: Path,
    failover_audited: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> list[Path]:
    """Workspaces of the dump as it was at two instants, and of the whole."""
    folder = tmp_path_factory.mktemp("trend")
    found = []
    for number, instant in enumerate(INSTANTS):
        dump, out = folder / f"dump-{number}", folder / f"audit-{number}"
        at = datetime.fromisoformat(instant)
        dump_as_of(failover_dump, dump, round(at.timestamp() * 1000))
        result = groupscope("audit", dump, "--out", out, "--fail-on", "never", "--quiet")
        assert result.returncode in {0, 3}, result.stderr
        found.append(out)
    return [*found, failover_audited]


def asked(groupscope: Groupscope, *arguments: str | Path) -> dict[str, Any]:
    result = groupscope("trend", *arguments, "--format", "json", "--quiet")
    assert result.returncode in {0, 3}, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    assert bool(found["gaps"]) == (result.returncode == 3)
    return found


def rows_in(workspace: Path, name: str) -> list[dict[str, Any]]:
    (folder,) = workspace.glob(f"*/{name}")
    rows: list[dict[str, Any]] = pq.read_table(folder).to_pylist()
    return rows


def as_of(workspace: Path) -> datetime:
    summary = json.loads((workspace / "summary.json").read_text("utf-8"))
    return datetime.fromisoformat(summary["as_of"]["time"])


def days_between(before: Path, now: Path) -> float:
    return (as_of(now) - as_of(before)) / timedelta(days=1)


def moment(value: datetime) -> str:
    return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def of_run(rows: Iterable[Row], workspace: Path) -> list[Row]:
    return [each for each in rows if each["as_of"] == moment(as_of(workspace))]


def test_sums_are_those_of_a_plain_recount(groupscope: Groupscope, audits: list[Path]) -> None:
    found = asked(groupscope, *audits)
    assert [each["as_of"] for each in found["rows"]] == [moment(as_of(each)) for each in audits]
    assert len({each["as_of"] for each in found["rows"]}) == len(audits)
    for run, workspace in zip(found["rows"], audits, strict=True):
        groups = rows_in(workspace, "groups")
        known = [each["lag"] for each in rows_in(workspace, "audited_groups")]
        unknown = [each["lag_not_told"] or 0 for each in rows_in(workspace, "audited_groups")]
        leading = [each for each in rows_in(workspace, "partition_usage") if each["is_leading"]]
        severities = Counter(each["severity"] for each in rows_in(workspace, "findings"))
        assert run["cluster"] == CLUSTER
        assert run["groups"] == len(groups) > 0
        assert run["lag"] == sum(each for each in known if each is not None) > 0
        assert run["lag_unknown_partitions"] == sum(unknown)
        assert run["file_bytes"] == sum(each["file_bytes"] for each in leading) > 0
        live = [each["live_bytes"] for each in rows_in(workspace, "topic_usage")]
        assert run["live_bytes"] == sum(each for each in live if each is not None)
        for each in ("critical", "warning", "info"):
            assert run[each] == severities[each], each
        assert run["incidents"] == len(rows_in(workspace, "audit_incidents"))
        counted = {
            (each["group_type"], each["state"]): each["groups"]
            for each in of_run(found["groups"], workspace)
        }
        assert counted == Counter((each["group_type"], each["state"]) for each in groups)


def test_events_are_those_after_the_run_before(groupscope: Groupscope, audits: list[Path]) -> None:
    found = asked(groupscope, *audits)["rows"]
    assert (found[0]["expired_offsets"], found[0]["rebalances"]) == (None, None)
    for before, now, run in zip(audits, audits[1:], found[1:], strict=False):
        since, until = as_of(before), as_of(now)
        begun = [
            each
            for each in rows_in(now, "rebalances")
            if each["at"] is not None and since < each["at"] <= until
        ]
        assert run["rebalances"] == sum(1 + each["missing_before"] for each in begun)
        expired = [
            each
            for each in rows_in(now, "offset_removals")
            if each["cause"] == "expiration" and since < each["removed_at"] <= until
        ]
        assert run["expired_offsets"] == len(expired)
        logs = json.loads((now / "manifest.json").read_text("utf-8"))["partitions"]
        starts = [each["complete_from"] for each in logs if each["topic"] == "__consumer_offsets"]
        assert set(starts) == {0}, "compaction took nothing of it"
        is_open = any(not each["complete"] for each in begun)
        assert run["rebalances_bound"] == ("at_least" if is_open else "exact")
    assert any(each["rebalances"] for each in found[1:])


def test_bytes_are_compared_copy_by_copy(groupscope: Groupscope, audits: list[Path]) -> None:
    found = asked(groupscope, *audits, "--disk-size", "1MiB")
    for before, now in pairwise(audits):
        then = {
            (each["topic"], each["partition"], each["copy"]): each["file_bytes"]
            for each in rows_in(before, "partition_usage")
        }
        leading = [each for each in rows_in(now, "partition_usage") if each["is_leading"]]
        for row in of_run(found["bytes"], now):
            mine = [each for each in leading if each["topic"] == row["topic"]]
            earlier = [then[each["topic"], each["partition"], each["copy"]] for each in mine]
            grown = sum(each["file_bytes"] for each in mine) - sum(earlier)
            assert row["partitions"] == len(mine)
            assert row["bytes_per_day"] == round(grown / days_between(before, now)), row
    assert any(each["bytes_per_day"] for each in found["bytes"])


def test_a_disk_is_full_when_what_grew_has_filled_it(
    groupscope: Groupscope, audits: list[Path]
) -> None:
    found = asked(groupscope, *audits, "--disk-size", "1MiB")
    before, now = audits[-2:]
    full = 0
    for disk in found["disks"]:
        sizes = [
            sum(
                each[name]
                for table, name in (
                    ("partition_usage", "file_bytes"),
                    ("data_segments", "size_bytes"),
                )
                for each in rows_in(workspace, table)
                if each["copy"] == disk["copy"]
            )
            for workspace in (before, now)
        ]
        rate = (sizes[1] - sizes[0]) / days_between(before, now)
        assert disk["file_bytes"] == sizes[1]
        assert disk["bytes_per_day"] == round(rate)
        if rate <= 0:
            assert (disk["full_at"], disk["full_bound"]) == (None, "unknown")
            assert "does not grow" in disk["reason"]
            continue
        at = as_of(now) + timedelta(days=(1 << 20) - sizes[1]) / rate
        assert disk["full_bound"] == "at_latest"
        assert abs(datetime.fromisoformat(disk["full_at"]) - at) < timedelta(milliseconds=2)
        full += 1
    assert full
    small = asked(groupscope, *audits, "--disk-size", "1kB")["disks"]
    assert {each["full_at"] for each in small} == {moment(as_of(now))}
    without = asked(groupscope, *audits)["disks"]
    assert {(each["full_at"], each["full_bound"]) for each in without} == {(None, "unknown")}
    assert all("--disk-size" in each["reason"] for each in without)


def test_findings_that_are_new_or_gone_are_those_of_a_plain_recount(
    groupscope: Groupscope, audits: list[Path]
) -> None:
    found = asked(groupscope, *audits)
    before, now = audits[-2:]
    ids = {
        word: {each["finding_id"]: each for each in rows_in(workspace, "findings")}
        for word, workspace in (("before", before), ("now", now))
    }
    rows = {each["finding_id"]: each for each in found["findings"]}
    assert set(rows) == set(ids["now"]) ^ set(ids["before"])
    for name, row in rows.items():
        possible = {"new", "cannot_tell"} if name in ids["now"] else {"gone", "cannot_tell"}
        assert row["change"] in possible
        assert (row["reason"] is not None) == (row["change"] == "cannot_tell")
    assert {"new"} < {each["change"] for each in rows.values()}
    for row in of_run(found["rules"], now):
        mine = [each for each in rows.values() if each["rule"] == row["rule"]]
        changes = Counter(each["change"] for each in mine)
        assert (row["new"], row["gone"]) == (changes["new"], changes["gone"])
        assert row["uncertain"] == changes["cannot_tell"]
        there = set(ids["now"]) & set(ids["before"])
        still = sum(ids["now"][each]["rule"] == row["rule"] for each in there)
        assert row["still_there"] == still
        assert row["findings"] == sum(each["rule"] == row["rule"] for each in ids["now"].values())


def test_it_says_the_same_of_findings_as_an_audit_since_another(
    groupscope: Groupscope, audits: list[Path], tmp_path: Path
) -> None:
    """But for those of which one of both does not tell: an audit says that they are new or gone."""
    before, now = audits[-2:]
    again = tmp_path / "again"
    shutil.copytree(now, again)
    result = groupscope("audit", again, "--out", again, "--since", before, "--quiet")
    assert result.returncode in {0, 1, 3}, result.stderr
    since = {each["finding_id"]: each["change"] for each in rows_in(again, "finding_changes")}
    for row in asked(groupscope, before, now)["findings"]:
        assert row["change"] in {since[row["finding_id"]], "cannot_tell"}


@pytest.mark.parametrize("pair", [(0, 1), (1, 2), (0, 2)])
def test_groups_that_came_or_went_and_their_lags(
    groupscope: Groupscope, audits: list[Path], pair: tuple[int, int]
) -> None:
    before, now = (audits[each] for each in pair)
    found = asked(groupscope, now, before)
    then = {each["group_id"] for each in rows_in(before, "groups")}
    here = {each["group_id"] for each in rows_in(now, "groups")}
    changed = {each["group_id"]: each["change"] for each in found["changed_groups"]}
    assert set(changed) == then ^ here
    for name, change in changed.items():
        assert change in {"new" if name in here else "gone", "cannot_tell"}
    lags = {each["group_id"]: each for each in rows_in(now, "audited_groups")}
    earlier = {each["group_id"]: each for each in rows_in(before, "audited_groups")}
    shown = of_run(found["lag"], now)
    assert len(shown) >= 10
    worst = max((each["lag"] or 0) for each in lags.values())
    assert max(each["lag"] or 0 for each in shown) == worst
    for row in shown:
        lag, old = lags.get(row["group_id"], {}), earlier.get(row["group_id"], {})
        assert row["lag"] == lag.get("lag")
        known = [each.get("lag") for each in (lag, old)]
        is_whole = not any(each.get("lag_not_told") for each in (lag, old))
        expected = known[0] - known[1] if is_whole and None not in known else None
        assert row["grown"] == expected


@examples(4, 16, chosen=st.lists(st.integers(0, 2), min_size=1, max_size=5))
def test_any_runs_in_any_order_are_each_counted_once_after_the_one_before(
    groupscope: Groupscope, audits: list[Path], chosen: list[int]
) -> None:
    found = asked(groupscope, *(audits[each] for each in chosen))
    kept = sorted(set(chosen))
    assert [each["as_of"] for each in found["rows"]] == [moment(as_of(audits[n])) for n in kept]
    whole = asked(groupscope, *(audits[each] for each in kept))
    for name in ("rows", "rules", "findings", "changed_groups", "lag", "bytes", "groups", "disks"):
        assert found[name] == whole[name], name
    if len(kept) == 1:
        assert {each["code"] for each in found["gaps"]} >= {"trend_of_one_run"}
        assert {each["change"] for each in found["rules"]} == {"first"}
        assert found["findings"] == found["changed_groups"] == found["retention"] == []


def test_people_read_first_what_is_new_what_got_worse_and_limits(
    groupscope: Groupscope, audits: list[Path]
) -> None:
    result = groupscope("trend", *audits, "--disk-size", "1GB")
    lines = result.stdout.splitlines()
    assert lines[0].startswith(f"Cluster {CLUSTER}: 3 runs; the last of ")
    heads = [line.strip() for line in lines if line.startswith("  ") and not line[2:3].isspace()]
    assert [each for each in heads if each in {"New", "Worse", "Limits", "Cannot tell"}] == [
        "New",
        "Worse",
        "Limits",
        "Cannot tell",
    ]
    assert max(map(len, lines)) <= 120
    assert "the disk of broker-2 (1.0 GB) is full by 20" in result.stdout


def test_csv_has_the_table_that_is_asked_for(groupscope: Groupscope, audits: list[Path]) -> None:
    result = groupscope("trend", *audits, "--format", "csv", "--table", "bytes", "--quiet")
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert {each["topic"] for each in rows} >= {"__consumer_offsets", "__share_group_state"}


def test_runs_whose_dumps_name_no_cluster_are_compared_where_a_person_does(
    groupscope: Groupscope, audits: list[Path], tmp_path: Path
) -> None:
    nameless = []
    for workspace in audits[:2]:
        copy = tmp_path / workspace.name
        shutil.copytree(workspace, copy)
        manifest = json.loads((copy / "manifest.json").read_text("utf-8"))
        for each in manifest["copies"]:
            each["cluster_id"] = None
        (copy / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
        nameless.append(copy)
    apart = asked(groupscope, *nameless)
    assert [each["previous_as_of"] for each in apart["rows"]] == [None, None]
    assert {each["code"] for each in apart["gaps"]} == {"trend_of_no_cluster"}
    together = asked(groupscope, *nameless, "--cluster", "prod")
    named = asked(groupscope, *audits[:2])
    assert {each["cluster"] for each in together["rows"]} == {"prod"}
    for name in ("rules", "findings", "changed_groups", "bytes"):
        unnamed = [{**each, "cluster": CLUSTER} for each in together[name]]
        assert unnamed == named[name]


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--group", "parcel-*"),
        pytest.param("--exclude-group", "parcel-*", marks=pytest.mark.long),
        pytest.param("--topic", "no-such", marks=pytest.mark.long),
    ],
)
def test_an_audit_of_some_groups_of_a_workspace_is_not_compared_with_one_of_all(
    groupscope: Groupscope, audits: list[Path], tmp_path: Path, option: str, value: str
) -> None:
    some = tmp_path / "some"
    result = groupscope(
        *("audit", audits[-1], "--out", some, option, value, "--fail-on", "never", "--quiet")
    )
    assert result.returncode in {0, 3}, result.stderr
    found = asked(groupscope, audits[0], some)
    assert "trend_filters_differ" in {each["code"] for each in found["gaps"]}
    assert {each["change"] for each in found["findings"]} <= {"cannot_tell"}
    last = of_run(found["rules"], some)
    assert {each["change"] for each in last} <= {"cannot_tell"}


def test_an_audit_with_settings_that_a_person_gave_says_so(
    groupscope: Groupscope, audits: list[Path], tmp_path: Path
) -> None:
    given, config = tmp_path / "given", tmp_path / "config.yaml"
    config.write_text("offsets.retention.minutes: 1\n", encoding="utf-8")
    result = groupscope(
        *("audit", audits[-1], "--out", given, "--config", config, "--fail-on", "never", "--quiet")
    )
    assert result.returncode in {0, 3}, result.stderr
    found = asked(groupscope, audits[0], given)
    why = "both runs were given other settings of brokers"
    of_expiry = [each for each in found["findings"] if each["rule"].startswith("offsets_expire")]
    rules = {each["rule"]: each for each in of_run(found["rules"], given)}
    assert all((each["change"], each["reason"]) == ("cannot_tell", why) for each in of_expiry)
    assert any(why in (each["reason"] or "") for each in rules.values())
    same = asked(groupscope, audits[0], audits[-1])
    assert not any(why in (each["reason"] or "") for each in same["rules"])


def test_a_workspace_of_another_version_is_refused_in_one_line(
    groupscope: Groupscope, audits: list[Path], tmp_path: Path
) -> None:
    other = tmp_path / "other"
    shutil.copytree(audits[0], other)
    manifest = json.loads((other / "manifest.json").read_text("utf-8"))
    manifest["schema_version"] += 1
    (other / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    result = groupscope("trend", audits[1], other)
    assert (result.returncode, result.stdout) == (3, "")
    (line,) = result.stderr.splitlines()
    assert "is a workspace of schema version" in line


def test_what_is_no_audited_workspace_is_refused_in_one_line(
    groupscope: Groupscope, failover_workspace: Path, audits: list[Path], tmp_path: Path
) -> None:
    for run, code, words in (
        (failover_workspace, 3, "was not audited to the end"),
        (tmp_path / "nowhere", 2, "there is no such folder"),
        (tmp_path, 3, "has no manifest.json"),
    ):
        result = groupscope("trend", audits[0], run)
        assert (result.returncode, result.stdout) == (code, ""), result.stderr
        (line,) = result.stderr.splitlines()
        assert words in line


@pytest.mark.parametrize("size", ["much", "0", "-3GB", "1 parsec"])
def test_what_is_no_size_is_refused(groupscope: Groupscope, tmp_path: Path, size: str) -> None:
    result = groupscope("trend", tmp_path, f"--disk-size={size}")
    assert result.returncode == 2
    assert "is no size" in result.stderr


def test_a_notebook_has_what_the_command_has(groupscope: Groupscope, audits: list[Path]) -> None:
    found = asked(groupscope, *audits, "--disk-size", "10GB")
    runs = open_runs(*map(str, audits))
    answer = runs.trend(disk_bytes=10 * 10**9)
    assert [each.as_of for each in runs.runs] == [as_of(each) for each in audits]
    assert list(answer.cannot_tell) == found["cannot_tell"]
    for name, of in TABLES.items():
        listed = found["rows" if name == "runs" else name]
        assert answer.to_arrow(of).num_rows == len(listed)
    disks = answer.trend_disks
    assert disks["copy"].to_list() == [each["copy"] for each in found["disks"]]
    assert disks["bytes_per_day"].to_list() == [each["bytes_per_day"] for each in found["disks"]]


def test_what_cannot_be_compared_in_a_notebook_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingRefusedError, match="there is no run to compare"):
        open_runs()
    with pytest.raises(SettingRefusedError, match="give a session"):
        open_runs(from_tables="lake.ops")
    with pytest.raises(InputNotRecognizedError, match="there is no such folder"):
        open_runs(str(tmp_path / "absent"))


def test_a_trend_in_a_notebook_is_saved_as_no_run(audits: list[Path]) -> None:
    with pytest.raises(EnvironmentUnfitError, match="a trend is of several runs"):
        open_runs(str(audits[0])).trend().save("lake.ops")


def test_an_audit_by_the_rules_of_another_release_is_not_compared(
    groupscope: Groupscope, audits: list[Path], tmp_path: Path
) -> None:
    """Partitions that a broker of 3.0 refuses to load were new, in a log that had not changed."""
    other = tmp_path / "other"
    options = ("--kafka-version", "3.0", "--fail-on", "never", "--quiet")
    result = groupscope("audit", audits[-1], "--out", other, *options)
    assert result.returncode in {0, 3}, result.stderr
    found = asked(groupscope, audits[0], other)
    (why,) = (each for each in found["gaps"] if each["code"] == "trend_choices_differ")
    assert why["words"].endswith("made with other options (none; --kafka-version 3.0)")
    assert {each["change"] for each in found["findings"]} <= {"cannot_tell"}
