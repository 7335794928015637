"""A dump, workspace, page, findings and files in a store of objects are those of a local disk."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analytics.errors import WorkspaceError
from analytics.locations import join
from analytics.workspace import Part, Staging, Workspace
from tests.conftest import Groupscope
from tests.support.counting_proxy import CUT, PASSES, SLOW_DOWN, Fault, proxy_before
from tests.support.store import SEAWEED, Store, seaweed_here, store_here

DUMP = Path(__file__).parents[1] / "data" / "dumps" / "kafka-4.4.0-random" / "broker-1"
ONE_LOG = "__consumer_offsets-0"

MOST_REQUESTS = 5_500
"""Of an audit of it: some 4,700, of which two fifths read what the audit itself has written."""


@pytest.fixture(scope="module", params=["moto", pytest.param("seaweed", marks=pytest.mark.long)])
def store(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Store]:
    """A store, empty at first."""
    if request.param == "seaweed" and SEAWEED is None:
        pytest.skip("weed, the server of SeaweedFS, is not installed")
    seaweed = partial(seaweed_here, tmp_path_factory.mktemp("seaweed"))
    with (store_here if request.param == "moto" else seaweed)() as here:
        yield here


@pytest.fixture(scope="module")
def one_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One log of the dump: who waits after each fault waits for a second or so."""
    one = tmp_path_factory.mktemp("one") / "broker-1"
    shutil.copytree(DUMP / ONE_LOG, one / ONE_LOG)
    return one


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that commands are run in: nothing may appear in it."""
    place = tmp_path / "cwd"
    place.mkdir()
    monkeypatch.chdir(place)
    return place


def local(folder: Path) -> dict[str, bytes]:
    """Return the files in a folder, by the path in it."""
    return {
        str(each.relative_to(folder)): each.read_bytes()
        for each in folder.rglob("*")
        if each.is_file()
    }


def named_alike(value: Any, names: dict[str, str]) -> Any:
    """Return JSON in which locations are other ones."""
    text = json.dumps(value, default=str)
    for name, other in names.items():
        text = text.replace(json.dumps(name)[1:-1], other)
    return json.loads(text)


def without_times(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return a manifest without what a copy of a dump has of its own: when files were written."""
    return {name: each for name, each in manifest.items() if name != "input_listing"}


def rows_of(content: bytes) -> list[dict[str, Any]]:
    """Return the rows of a Parquet file."""
    rows: list[dict[str, Any]] = pq.read_table(pa.BufferReader(content)).to_pylist()
    return rows


def test_a_dump_in_a_store_is_the_same_dump(
    groupscope: Groupscope, store: Store, folder: Path
) -> None:
    there = store.put(DUMP, "looked-at/broker-1")
    theirs = groupscope("inspect", DUMP, "--format", "json")
    for location in (there, there.replace("s3://", "s3a://")):
        ours = groupscope("inspect", location, "--format", "json")
        names = {location: str(DUMP)}
        assert json.loads(ours.stdout)["rows"], ours.stderr
        assert without_times(named_alike(json.loads(ours.stdout), names)) == without_times(
            json.loads(theirs.stdout)
        )
    assert list(folder.iterdir()) == []


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_an_audit_from_a_store_into_a_store(
    groupscope: Groupscope, store: Store, folder: Path, tmp_path: Path, scheme: str
) -> None:
    store.put(DUMP, f"{scheme}/broker-1")
    with proxy_before(store.address) as proxy:
        counted = Store(proxy.address)
        there = counted.location(f"{scheme}/broker-1", scheme)
        out = counted.location(f"audited-{scheme}", scheme)
        metrics = counted.location(f"metrics-{scheme}.prom", scheme)
        beside = ("--metrics", metrics, "--format", "json")
        answer = groupscope("audit", there, "--out", out, *beside)
    assert 500 < len(proxy.requests) < MOST_REQUESTS, proxy.kinds()
    here = tmp_path / "audited"
    plain = groupscope(
        "audit", DUMP, "--out", here, "--metrics", tmp_path / "m.prom", "--format", "json"
    )
    assert answer.returncode == plain.returncode, answer.stderr
    assert list(folder.iterdir()) == []
    ours, theirs = store.files(f"audited-{scheme}"), local(here)
    assert ours.keys() == theirs.keys()
    head, _, query = there.partition("?")
    # A file of the dump has the query behind it, the dump in a command its quotes around it.
    names = {shlex.quote(there): "DUMP", there: "DUMP", head: "DUMP", f"?{query}": ""}
    names |= {shlex.quote(str(DUMP)): "DUMP", str(DUMP): "DUMP"}
    for name in sorted(theirs):
        if name.endswith(".parquet"):
            assert named_alike(rows_of(ours[name]), names) == named_alike(
                rows_of(theirs[name]), names
            ), name
    for name in ("findings.jsonl", "summary.json"):
        assert ours[name], name
    assert named_alike(ours["findings.jsonl"].decode(), names) == named_alike(
        theirs["findings.jsonl"].decode(), names
    )
    assert f"audit: {counted.location(f'audited-{scheme}/report/index.html', scheme)}" in (
        answer.stderr
    )
    assert store.files("")[f"metrics-{scheme}.prom"].endswith(b"# EOF\n")


@pytest.mark.long
def test_a_page_is_made_again_where_its_workspace_lies(
    groupscope: Groupscope, store: Store, folder: Path, failover_audited: Path
) -> None:
    there = store.put(failover_audited, "audited")
    for form in ("text", "markdown", "json"):
        ours = groupscope("report", there, "--format", form)
        theirs = groupscope("report", failover_audited, "--format", form)
        assert (ours.returncode, ours.stdout) == (0, theirs.stdout), ours.stderr
    page = store.location("page.html")
    assert groupscope("report", there, "--output", page).stdout == f"{page}\n"
    assert store.files("")["page.html"] == store.files("audited")["report/index.html"]
    assert list(folder.iterdir()) == []


def test_what_lies_beside_a_dump_and_the_answer_may_be_in_a_store(
    groupscope: Groupscope, store: Store, folder: Path, tmp_path: Path, failover_workspace: Path
) -> None:
    sides = tmp_path / "sides"
    sides.mkdir()
    ends = "topic,partition,log_start_offset,log_end_offset\nparcels,0,0,123456\n"
    (sides / "ends.csv").write_text(ends, "utf-8")
    (sides / "settings.yaml").write_text("offsets.retention.minutes: 7\n", "utf-8")
    there = store.put(sides, "sides")
    asked = ("lag", failover_workspace, "--format", "json")
    plain = groupscope(
        *asked, "--end-offsets", sides / "ends.csv", "--config", sides / "settings.yaml"
    )
    ours = groupscope(
        *(*asked, "--end-offsets", join(there, "ends.csv")),
        *("--config", join(there, "settings.yaml"), "--output", store.location("lag.json")),
    )
    assert (ours.returncode, ours.stdout) == (plain.returncode, ""), ours.stderr
    assert store.files("")["lag.json"].decode() == plain.stdout
    assert list(folder.iterdir()) == []


def test_offsets_are_given_back_in_a_store(
    groupscope: Groupscope, store: Store, folder: Path, tmp_path: Path, failover_workspace: Path
) -> None:
    asked = ("restore", failover_workspace, "--group", "*", "--as-of", "2026-11-21T09:17:00Z")
    plain = groupscope(*asked, "--out", tmp_path / "rescue")
    out = store.location("rescue")
    for _ in range(2):
        ours = groupscope(*asked, "--out", out)
        assert (ours.returncode, ours.stdout) == (plain.returncode, plain.stdout), ours.stderr
        assert store.files("rescue") == local(tmp_path / "rescue")
    store.put(folder.parent / "rescue", "foreign")
    store.remove("foreign/restore.json")
    refused = groupscope(*asked, "--out", store.location("foreign"))
    assert refused.returncode == 2
    assert "was not written by restore" in refused.stderr
    assert list(folder.iterdir()) == []


def test_tables_in_a_store_stay_where_they_are_kept_or_a_part_is_not_there(store: Store) -> None:
    space = Workspace(store.location("published"))
    rows = pa.table({"group_id": ["a"]})

    def part(staging: Staging) -> Part:
        path = space.path(f"{staging.name}/task/groups.parquet")
        pq.write_table(rows, path, filesystem=space.filesystem)
        return Part("state/groups", path, rows.num_rows)

    first = space.prepare()
    first.publish([part(first)], ["state"], {})
    files = store.files("published")
    assert files.keys() == {".groupscope", "manifest.json", "state/groups/part-00000.parquet"}
    second = space.prepare()
    lost = Part("state/groups", space.path(f"{second.name}/task-1/groups.parquet"), 1)
    with pytest.raises(WorkspaceError, match="not to be seen from here"):
        second.publish([part(second), lost], ["state"], {})
    second.discard()
    assert store.files("published") == files
    kept = Part("state/groups", space.path("state/groups/part-00000.parquet"), 1)
    third = space.prepare()
    third.publish([kept, part(third)], ["state"], {})
    both = {f"state/groups/part-{number:05d}.parquet" for number in range(2)}
    assert store.files("published").keys() == {".groupscope", "manifest.json", *both}


FAULTS: dict[str, Fault] = {
    "a store that throttles": lambda number: SLOW_DOWN if number % 4 == 3 else PASSES,
    "connections that are cut": lambda number: CUT if number % 4 == 3 else PASSES,
}


@pytest.mark.parametrize("logs", ["one", pytest.param("all", marks=pytest.mark.long)])
@pytest.mark.parametrize("what", FAULTS)
def test_a_dump_is_the_same_through_faults_that_pass(
    groupscope: Groupscope, store: Store, request: pytest.FixtureRequest, what: str, logs: str
) -> None:
    dump = DUMP if logs == "all" else request.getfixturevalue("one_log")
    name = f"disturbed-{logs}/broker-1"
    store.put(dump, name)
    theirs = groupscope("inspect", dump, "--format", "json")
    with proxy_before(store.address, FAULTS[what]) as proxy:
        there = Store(proxy.address).location(name)
        ours = groupscope("inspect", there, "--format", "json")
    assert len(proxy.faults) == 2, proxy.faults
    assert ours.returncode == theirs.returncode, ours.stderr
    renamed = named_alike(json.loads(ours.stdout), {there: str(dump)})
    assert without_times(renamed) == without_times(json.loads(theirs.stdout))


def test_a_store_that_goes_on_throttling_is_one_line(
    groupscope: Groupscope, store: Store, one_log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("analytics.failed_reads.PAUSES", (0.01, 0.01))
    store.put(one_log, "throttled/broker-1")
    with proxy_before(store.address, lambda number: SLOW_DOWN if number > 10 else PASSES) as proxy:
        there = Store(proxy.address).location("throttled/broker-1")
        ran = groupscope("inspect", there)
    assert ran.returncode == 3, ran.stderr
    assert ran.stderr.endswith("this says nothing about what is in it; try again\n")
    assert ran.stderr.count("\n") == 1
    assert ran.stdout == ""
