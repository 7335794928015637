"""A snapshot held against its cluster: what differs, what explains it, and what cannot be told.

The recorded cluster answered the same as its logs say. What it might have answered instead is
written into the snapshot's file of answers.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyarrow import ipc

from analytics.dump.files.cluster_answers import ANSWER_FILES, ANSWERS, answers_in_file
from tests.support.cluster_differences import Judged, Row, differences, replayed_once
from tests.support.recorded_cluster import (
    DESCRIBE_GROUPS,
    OFFSET_FETCH,
    RECORDING,
    Change,
    Request,
    document,
    recorded_cluster,
    snapshot_of_recording,
)

if TYPE_CHECKING:
    from tests.conftest import Groupscope

FIRST, SECOND = ANSWER_FILES
ANSWERED = ("group", "member", "assignment", "offset", "share_partition")


@pytest.fixture(scope="module", autouse=True)
def _impatient() -> Iterator[None]:
    """What is asked again is asked at once."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("log_reading", "cluster_description", "group_answers"):
            patch.setattr(f"analytics.snapshot.{name}._BETWEEN", 0.01)
        yield


@pytest.fixture(scope="module")
def taken(tmp_path_factory: pytest.TempPathFactory, groupscope: Groupscope) -> Path:
    """The recorded cluster's snapshot."""
    return snapshot_of_recording(groupscope, tmp_path_factory.mktemp("snapshot") / "dump")


def answers(out: Path, name: str = FIRST) -> list[Row]:
    rows: list[Row] = answers_in_file(str(out / name), 1).to_pylist()
    return rows


def write(path: Path, rows: list[Row]) -> None:
    with ipc.new_file(str(path), ANSWERS) as writer:
        writer.write_table(pa.Table.from_pylist(rows, ANSWERS))


@pytest.fixture
def changed(taken: Path, tmp_path: Path) -> Callable[..., Path]:
    """The snapshot with other answers: what `change` makes of each row, None without it.

    Asked again the cluster answers the same, but for what `later` has; of no group where that has
    nothing.
    """

    def make(
        change: Callable[[Row], Row | None], *more: Row, later: list[Row] | None = None
    ) -> Path:
        out = tmp_path / "dump"
        shutil.copytree(taken, out)
        rows = [each for row in answers(taken) if (each := change(dict(row))) is not None]
        write(out / FIRST, [*rows, *more])
        again = [{**each, "look": 2} for each in (*rows, *more) if each["kind"] in ANSWERED]
        write(out / SECOND, again if later is None else later)
        return out

    return make


@pytest.fixture(scope="module")
def judged(taken: Path) -> Iterator[Judged]:
    """What `differences` returns of a snapshot in which only answers are other ones.

    `test_another_offset_contradicts` holds both against each other.
    """
    with replayed_once(taken) as judged:
        yield judged


def row(kind: str, group: str | None, field: str, value: str | None, **more: Any) -> Row:
    return {"look": 1, "kind": kind, "group_id": group, "field": field, "value": value, **more}


def an_offset(taken: Path) -> Row:
    return next(each for each in answers(taken) if each["field"] == "committed_offset")


def a_group_of_type(taken: Path, kind: str) -> str:
    rows = answers(taken)
    with_members = {each["group_id"] for each in rows if each["kind"] == "member"}
    names = [
        each["group_id"]
        for each in rows
        if each["field"] == "listed" and each["value"] == kind and each["group_id"] in with_members
    ]
    return str(names[0])


def of_offset(place: Row, value: str | None) -> Callable[[Row], Row | None]:
    """Answer another committed offset, or none."""
    names = ("group_id", "topic", "partition")

    def change(row: Row) -> Row | None:
        if row["kind"] != "offset" or any(row[name] != place[name] for name in names):
            return row
        if value is None:
            return None
        return {**row, "value": value} if row["field"] == "committed_offset" else row

    return change


# --- the recorded cluster ---------------------------------------------------------------------


def test_the_cluster_was_asked_for_every_kind_of_group_and_all_that_they_have(taken: Path) -> None:
    rows = answers(taken)
    assert {each["kind"] for each in rows} >= {
        *("group", "member", "assignment", "offset", "share_partition", "log_read"),
    }
    listed = {
        each["value"] for each in rows if (each["kind"], each["field"]) == ("group", "listed")
    }
    assert listed == {"classic", "consumer", "share", "streams"}
    assert [each for each in rows if each["error"] is not None] == []
    assert document(taken).checked_at is not None


def test_nothing_contradicts_a_cluster_that_is_still(taken: Path) -> None:
    verdicts = {each["verdict"] for each in differences(taken)}
    assert verdicts <= {"explained"}


def test_it_says_so(groupscope: Groupscope, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with recorded_cluster(RECORDING) as address:
        ran = groupscope(
            "snapshot", "--bootstrap-server", address, "--out", out, "--fail-on", "info"
        )
    assert ran.returncode == 0, ran.stderr
    assert "  held against the cluster: " in ran.stdout


def test_without_the_check_nothing_is_asked_and_the_snapshot_says_so(
    groupscope: Groupscope, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with recorded_cluster(RECORDING) as address:
        ran = groupscope("snapshot", "--bootstrap-server", address, "--out", out, "--no-check")
    assert ran.returncode == 0, ran.stderr
    assert "  not held against the cluster" in ran.stdout
    assert document(out).checked_at is None
    assert not (out / FIRST).exists()
    assert differences(out) == []


# --- what differs -----------------------------------------------------------------------------


def test_another_offset_contradicts(
    taken: Path, changed: Callable[..., Path], judged: Judged
) -> None:
    place = an_offset(taken)
    dump = changed(of_offset(place, "123456789"))
    rows = differences(dump)
    (found,) = [each for each in rows if each["verdict"] == "contradicts"]
    assert (found["kind"], found["field"]) == ("offset", "committed_offset")
    assert {name: found[name] for name in ("group_id", "topic", "partition")} == {
        name: place[name] for name in ("group_id", "topic", "partition")
    }
    assert (found["snapshot_value"], found["cluster_value"]) == (place["value"], "123456789")
    assert found["reason"] is None
    # So it is where only answers are laid beside logs that were replayed before.
    assert judged(dump) == rows


def test_an_offset_that_the_cluster_does_not_have_is_one_difference(
    taken: Path, changed: Callable[..., Path], judged: Judged
) -> None:
    place = an_offset(taken)
    found = [
        each for each in judged(changed(of_offset(place, None))) if each["verdict"] == "contradicts"
    ]
    assert [(each["field"], each["cluster_value"]) for each in found] == [
        ("committed_offset", None)
    ]


def test_a_record_that_was_written_since_explains_its_offset_and_no_other(
    taken: Path, changed: Callable[..., Path], judged: Judged
) -> None:
    place = an_offset(taken)
    where = {"topic": place["topic"], "partition": place["partition"]}
    written = row("record", place["group_id"], "offset", "written", **where)
    elsewhere = row("record", place["group_id"], "offset", "written", topic="t", partition=9)
    dump = changed(of_offset(place, "123456789"), written, elsewhere)
    (found,) = [each for each in judged(dump) if each["kind"] == "offset"]
    assert (found["verdict"], found["reason"]) == ("explained", "written_since")
    shutil.rmtree(dump)
    dump = changed(of_offset(place, "123456789"), elsewhere)
    (found,) = [each for each in judged(dump) if each["kind"] == "offset"]
    assert found["verdict"] == "contradicts"


def test_an_answer_that_is_another_one_later_is_explained(
    taken: Path, changed: Callable[..., Path], judged: Judged
) -> None:
    place = an_offset(taken)
    group = place["group_id"]
    later = [
        {**row("group", group, "offsets", "answered"), "look": 2},
        {**place, "look": 2},
    ]
    (found,) = [
        each
        for each in judged(changed(of_offset(place, "123456789"), later=later))
        if each["kind"] == "offset"
    ]
    assert (found["verdict"], found["reason"]) == ("explained", "answered_otherwise_later")


def test_what_logs_hold_behind_the_end_and_could_not_be_read_leaves_it_open(
    taken: Path, changed: Callable[..., Path], judged: Judged
) -> None:
    place = an_offset(taken)

    def change(row: Row) -> Row | None:
        if row["kind"] == "log_read":
            return {**row, "value": None, "error": "TOPIC_AUTHORIZATION_FAILED"}
        return of_offset(place, "123456789")(row)

    (found,) = [each for each in judged(changed(change)) if each["kind"] == "offset"]
    assert found["verdict"] == "cannot_tell"
    assert found["missing"] == (
        "what was written since could not be read: TOPIC_AUTHORIZATION_FAILED"
    )


def test_a_member_that_the_cluster_does_not_have_is_one_difference(
    taken: Path, changed: Callable[..., Path], judged: Judged
) -> None:
    group = a_group_of_type(taken, "consumer")
    dump = changed(
        lambda row: None if row["group_id"] == group and row["member_id"] is not None else row
    )
    found = [each for each in judged(dump) if each["verdict"] == "contradicts"]
    members = {each["member_id"] for each in answers(taken) if each["group_id"] == group} - {None}
    assert {(each["group_id"], each["field"]) for each in found} == {(group, "member_id")}
    assert {each["member_id"] for each in found} == members
    # The column has the id; as a value it would be a name that nothing redacts.
    assert {(each["snapshot_value"], each["cluster_value"]) for each in found} == {("yes", None)}


def test_names_of_clients_are_compared_and_not_shown(
    taken: Path, changed: Callable[..., Path], judged: Judged
) -> None:
    group = a_group_of_type(taken, "consumer")

    def change(row: Row) -> Row | None:
        is_host = row["group_id"] == group and row["field"] == "client_host"
        return {**row, "value": "/10.0.0.99"} if is_host else row

    found = [each for each in judged(changed(change)) if each["verdict"] == "contradicts"]
    assert {each["field"] for each in found} == {"client_host"}
    assert {(each["snapshot_value"], each["cluster_value"]) for each in found} == {(None, None)}


def test_a_classic_group_that_rebalances_is_in_memory_only(
    taken: Path, changed: Callable[..., Path], judged: Judged
) -> None:
    group = a_group_of_type(taken, "classic")

    def change(row: Row) -> Row | None:
        is_state = row["group_id"] == group and row["field"] == "state"
        return {**row, "value": "PreparingRebalance"} if is_state else row

    (found,) = [each for each in judged(changed(change)) if each["group_id"] == group]
    assert (found["field"], found["verdict"]) == ("state", "explained")
    assert found["reason"] == "in_memory_only"


def test_a_classic_group_without_members_and_offsets_is_in_memory_only(
    changed: Callable[..., Path],
    judged: Judged,
) -> None:
    answered = (("listed", "classic"), ("description", "answered"), ("offsets", "answered"))
    bare = [row("group", "bare", field, value) for field, value in answered]
    (found,) = [
        each for each in judged(changed(lambda row: row, *bare)) if each["group_id"] == "bare"
    ]
    assert (found["field"], found["reason"]) == ("listed", "in_memory_only")


def test_a_group_with_offsets_that_the_snapshot_lacks_contradicts(
    taken: Path, changed: Callable[..., Path], judged: Judged
) -> None:
    answered = (("listed", "classic"), ("description", "answered"), ("offsets", "answered"))
    more = [row("group", "other", field, value) for field, value in answered]
    more.append({**an_offset(taken), "group_id": "other"})
    found = [
        each for each in judged(changed(lambda row: row, *more)) if each["group_id"] == "other"
    ]
    assert [(each["field"], each["verdict"]) for each in found] == [("listed", "contradicts")]


@pytest.mark.parametrize(
    ("error", "verdict", "missing"),
    [
        (None, "cannot_tell", "brokers leave out groups that may not be described"),
        ("GROUP_AUTHORIZATION_FAILED", "cannot_tell", "answered GROUP_AUTHORIZATION_FAILED"),
        ("GROUP_ID_NOT_FOUND", "contradicts", ""),
    ],
)
def test_a_group_that_is_not_listed_contradicts_only_where_there_is_none_by_its_name(
    taken: Path,
    changed: Callable[..., Path],
    judged: Judged,
    error: str | None,
    verdict: str,
    missing: str,
) -> None:
    group = a_group_of_type(taken, "consumer")
    later = [{**row("group", group, "description", None), "look": 2, "error": error}]
    dump = changed(
        lambda row: None if row["group_id"] == group else row, later=later if error else None
    )
    (found,) = [each for each in judged(dump) if each["group_id"] == group]
    assert (found["field"], found["verdict"]) == ("listed", verdict)
    assert missing in (found["missing"] or "")


@pytest.mark.parametrize("end", ["missing", "empty", "cut"])
def test_what_differs_contradicts_only_where_the_group_was_asked_for_again(
    taken: Path, changed: Callable[..., Path], end: str
) -> None:
    """A snapshot that was interrupted between its looks has no answers of the second one."""
    dump = changed(of_offset(an_offset(taken), "123456789"), later=[])
    if end == "missing":
        (dump / SECOND).unlink()
    if end == "cut":
        (dump / SECOND).write_bytes((dump / SECOND).read_bytes()[:100])
    (found,) = [each for each in differences(dump) if each["kind"] == "offset"]
    assert found["verdict"] == "cannot_tell"
    assert found["missing"].startswith("the group was not asked for again")
    assert (SECOND in found["missing"]) == (end == "cut")


def unlike(kind: str) -> Callable[[Row], Row | None]:
    """Answer other numbers of a kind."""

    def change(row: Row) -> Row | None:
        is_number = row["kind"] == kind and row["field"] in {"committed_offset", "start_offset"}
        return {**row, "value": "987654"} if is_number else row

    return change


@pytest.mark.parametrize(
    ("kind", "topic"),
    [("offset", "__consumer_offsets"), ("share_partition", "__share_group_state")],
)
@pytest.mark.parametrize("kept", ["nothing", "the first batch"])
def test_what_rests_on_a_log_that_was_not_read_to_its_end_is_not_contradicted(
    changed: Callable[..., Path], judged: Judged, kind: str, topic: str, kept: str
) -> None:
    """As where reading is refused half way, or `--max-bytes` is reached."""
    dump = changed(unlike(kind))
    assert {each["verdict"] for each in judged(dump) if each["kind"] == kind} == {"contradicts"}
    for each in dump.glob(f"{topic}-*/*.log"):
        content = each.read_bytes()
        first = 12 + int.from_bytes(content[8:12], "big")
        each.write_bytes(b"" if kept == "nothing" else content[:first])
    found = [each for each in differences(dump) if each["kind"] in (kind, "group")]
    assert found
    assert {each["verdict"] for each in found} <= {"cannot_tell", "explained"}
    assert any(topic in (each["missing"] or "") for each in found)


@pytest.mark.parametrize(
    "options",
    [
        ("--partitions", "0"),
        pytest.param(("--topics", "__consumer_offsets"), marks=pytest.mark.long),
    ],
)
def test_what_was_not_decoded_is_not_contradicted(
    groupscope: Groupscope, changed: Callable[..., Path], tmp_path: Path, options: tuple[str, str]
) -> None:
    dump, workspace = changed(lambda row: row), tmp_path / "workspace"
    assert groupscope("decode", dump, "--out", workspace, *options).returncode == 0
    found = differences(workspace)
    whys = {each["missing"] for each in found if each["verdict"] != "explained"}
    assert whys == {"only some internal topics or partitions were decoded"}
    assert "contradicts" not in {each["verdict"] for each in found}


def test_a_file_of_answers_that_is_damaged_cannot_tell(taken: Path, tmp_path: Path) -> None:
    dump = tmp_path / "dump"
    shutil.copytree(taken, dump)
    (dump / FIRST).write_bytes((dump / FIRST).read_bytes()[:100])
    found = differences(dump)
    assert {each["verdict"] for each in found} == {"cannot_tell"}
    assert FIRST in found[0]["missing"]


# --- what the cluster answers -----------------------------------------------------------------


def refusing(api: int, code: int) -> Change:
    """Answer an error for each group, as brokers do without the operation Describe."""

    def change(request: Request, response: bytes) -> bytes:
        if request.api != api:
            return response
        from kafka.protocol.admin import DescribeGroupsResponse  # noqa: PLC0415
        from kafka.protocol.consumer import OffsetFetchResponse  # noqa: PLC0415

        kind = {DESCRIBE_GROUPS: DescribeGroupsResponse, OFFSET_FETCH: OffsetFetchResponse}[api]
        tags = 1 if kind.flexible_version_q(request.version) else 0
        decoded: Any = kind.decode(response[tags:], version=request.version)
        for each in decoded.groups:
            each.error_code = code
        decoded._header = None
        encoded: bytes = decoded.encode(version=request.version)
        return bytes(tags) + encoded

    return change


def test_offsets_that_are_refused_cannot_be_told(groupscope: Groupscope, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with recorded_cluster(RECORDING, refusing(OFFSET_FETCH, 30)) as address:
        ran = groupscope("snapshot", "--bootstrap-server", address, "--out", out, "--quiet")
    assert ran.returncode == 3
    assert "the cluster answered GROUP_AUTHORIZATION_FAILED" in ran.stderr
    found = [each for each in differences(out) if each["verdict"] != "explained"]
    assert {(each["kind"], each["field"], each["verdict"]) for each in found} == {
        ("group", "offsets", "cannot_tell")
    }


def test_what_nothing_explains_is_a_finding(
    groupscope: Groupscope, tmp_path: Path, taken: Path
) -> None:
    place = an_offset(taken)

    def change(request: Request, response: bytes) -> bytes:
        if request.api != OFFSET_FETCH:
            return response
        from kafka.protocol.consumer import OffsetFetchResponse  # noqa: PLC0415

        decoded: Any = OffsetFetchResponse.decode(response[1:], version=request.version)
        for group in decoded.groups:
            for topic in group.topics:
                for each in topic.partitions:
                    key = group.group_id, topic.name, each.partition_index
                    if key == (place["group_id"], place["topic"], place["partition"]):
                        each.committed_offset = 123456789
        decoded._header = None
        encoded: bytes = decoded.encode(version=request.version)
        return b"\0" + encoded

    out = tmp_path / "out"
    with recorded_cluster(RECORDING, change) as address:
        ran = groupscope(
            "snapshot", "--bootstrap-server", address, "--out", out, "--fail-on", "warning"
        )
    assert ran.returncode == 1, ran.stderr
    assert "between the snapshot and what the cluster answered" in ran.stderr
    assert "1 that nothing explains" in ran.stdout
    # It was asked again for this group alone, and answered the same.
    assert {each["group_id"] for each in answers(out, SECOND)} - {None} == {place["group_id"]}
    audited = groupscope(
        *("audit", out, "--out", tmp_path / "audited", "--table", "findings"),
        *("--format", "json", "--fail-on", "never"),
    )
    rows = json.loads(audited.stdout)["rows"]
    (found,) = [each for each in rows if each["rule"] == "snapshot_contradicts_cluster"]
    assert found["group_id"] == place["group_id"]
