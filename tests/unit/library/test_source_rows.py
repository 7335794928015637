"""The data source has the rows of workspaces, of replays and of questions, as `open_dump` has them.

Spark asks it in processes of its own (tests/spark/test_data_source_tables.py); here it is asked as
these do.
"""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analytics import Dump, KafkaDump, State, open_dump
from analytics.decode import workload
from analytics.errors import (
    CannotTellError,
    EnvironmentUnfitError,
    GroupscopeError,
    InputNotRecognizedError,
    InputUnreadableError,
    ReadFailedError,
    SettingRefusedError,
    WorkspaceError,
)
from analytics.library import data_source
from analytics.tables import table_readers
from analytics.tables.table_readers import FilesReader, RowsReader
from analytics.workspace import Workspace
from tests.conftest import ELECTION
from tests.support.source_rows import assert_same, loaded, reader
from tests.support.value_order import in_value_order

if TYPE_CHECKING:
    from tests.conftest import Groupscope

EARLY = "2026-11-21T09:20:00Z"


def stored(workspace: Path, folder: str) -> pa.Table:
    return pa.concat_tables(pq.read_table(each) for each in sorted((workspace / folder).iterdir()))


@pytest.fixture(scope="module")
def early_workspace(
    groupscope: Groupscope, failover_dump: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The bundled dump, replayed at an instant before its election."""
    out = tmp_path_factory.mktemp("early") / "workspace"
    ran = groupscope("replay", failover_dump, "--as-of", EARLY, "--out", out)
    assert ran.returncode == 0, ran.stderr
    return out


@pytest.fixture(scope="module")
def early(failover_dump: Path) -> Iterator[State]:
    """What `open_dump` says of the same instant."""
    with open_dump(str(failover_dump)) as dump:
        yield dump.replay(as_of=EARLY)


@pytest.fixture(scope="module")
def at_end(failover_dump: Path) -> Iterator[State]:
    """What it says of the end of the dump."""
    with open_dump(str(failover_dump)) as dump:
        yield dump.replay()


@pytest.fixture(scope="module")
def one_partition(failover_dump: Path) -> Path:
    """A log of the bundled dump, for what does not depend on how much there is."""
    return failover_dump / "broker-2" / "__consumer_offsets-9"


@pytest.fixture(scope="module")
def share_dump(repository: Path) -> Iterator[tuple[Path, State]]:
    """A dump with share groups, and what `open_dump` says of its end."""
    folder = repository / "tests" / "data" / "dumps" / "kafka-4.2.1-share"
    with open_dump(str(folder)) as dump:
        yield folder, dump.replay()


def changed(workspace: Path, folder: Path, **sections: object) -> Path:
    """A copy of a workspace without a folder, whose manifest says something besides."""
    shutil.copytree(workspace, folder)
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    without = str(sections.pop("without"))
    shutil.rmtree(folder / without)
    kept = {each: size for each, size in manifest["files"].items() if not each.startswith(without)}
    changes = json.dumps({**manifest, "files": kept, **sections})
    (folder / "manifest.json").write_text(changes, "utf-8")
    return folder


# What a workspace holds.


@pytest.mark.parametrize(
    "table",
    [
        *("decoded/offset_commit", "decoded/share_snapshot", "decoded/control_markers"),
        *("decoded/undecoded", "decoded/partition_record", "data_logs/data_segments"),
        *("state/groups", "state/members", "state/share_partitions", "history/offset_history"),
        *("history/divergences", "evaluations/findings", "evaluations/lag", "evaluations/gaps"),
    ],
)
def test_tables_of_a_workspace_are_what_lies_in_it(failover_audited: Path, table: str) -> None:
    name = table.rpartition("/")[2]
    assert_same(loaded(failover_audited, table=name), stored(failover_audited, table))


def test_columns_are_read_alone_and_in_their_order(failover_workspace: Path) -> None:
    found = loaded(failover_workspace, table="groups", columns="state,group_id")
    assert_same(found, stored(failover_workspace, "state/groups").select(["state", "group_id"]))


def test_a_line_that_did_not_survive_is_read_of_a_workspace(
    failover_workspace: Path, failover_dump: Path
) -> None:
    found = loaded(failover_workspace, line="broker-1")
    assert found.num_rows > 0
    assert_same(found, loaded(failover_dump, line="broker-1"))
    with pytest.raises(WorkspaceError, match=r"of line 'broker-7'.*of line 'broker-1'"):
        loaded(failover_workspace, line="broker-7")


def test_how_logs_are_read_is_no_option_of_what_was_decoded(failover_workspace: Path) -> None:
    with pytest.raises(SettingRefusedError, match="option preferCopy says how logs are read"):
        loaded(failover_workspace, preferCopy="broker-1")


def test_decoded_records_are_read_where_a_replay_left_them(
    groupscope: Groupscope, failover_workspace: Path, tmp_path: Path
) -> None:
    out = tmp_path / "replayed"
    ran = groupscope("replay", failover_workspace, "--as-of", EARLY, "--out", out)
    assert ran.returncode == 0, ran.stderr
    assert not (out / "decoded").exists()
    assert_same(
        loaded(out, table="group_metadata"), loaded(failover_workspace, table="group_metadata")
    )


def test_small_files_are_read_together_and_a_task_reads_no_more_than_it_has_to(
    failover_workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, _ = reader(failover_workspace, {"table": "offset_commit"})
    assert isinstance(whole, FilesReader)
    assert len(whole.partitions()) == 1
    monkeypatch.setattr(table_readers, "FILE_BYTES", 1)
    alone, _ = reader(failover_workspace, {"table": "offset_commit"})
    assert len(alone.partitions()) == len(whole.files) >= 1


def test_a_file_that_a_machine_does_not_see_is_an_error_and_not_no_rows(
    failover_workspace: Path, tmp_path: Path
) -> None:
    workspace = tmp_path / "workspace"
    shutil.copytree(failover_workspace, workspace)
    found, _ = reader(workspace, {"table": "groups"})
    (part,) = found.partitions()
    shutil.rmtree(workspace)
    with pytest.raises(ReadFailedError, match="every machine that runs tasks has to see"):
        list(found.read(part))


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        ("no manifest", InputUnreadableError, "the run that wrote it never finished"),
        ("damaged manifest", InputUnreadableError, "manifest.json cannot be read"),
        ("lost file", WorkspaceError, "is gone"),
    ],
)
def test_an_unfinished_or_damaged_workspace_says_so(
    failover_workspace: Path,
    tmp_path: Path,
    change: str,
    kind: type[GroupscopeError],
    words: str,
) -> None:
    workspace = tmp_path / "workspace"
    shutil.copytree(failover_workspace, workspace)
    manifest = workspace / "manifest.json"
    if change == "no manifest":
        manifest.unlink()
    elif change == "damaged manifest":
        manifest.write_text("{", "utf-8")
    else:
        shutil.rmtree(workspace / "state" / "groups")
    for name in ("groups", "offset_commit"):
        with pytest.raises(kind, match=words):
            loaded(workspace, table=name)


# What is replayed, and what is asked.


@pytest.mark.parametrize(
    "table",
    [
        "group_events",
        *(
            pytest.param(each, marks=pytest.mark.long)
            for each in ("groups", "committed_offsets", "configs", "divergences", "load_faults")
        ),
    ],
)
def test_tables_of_a_dump_are_those_of_its_replay_at_the_instant(
    failover_dump: Path, early: State, table: str
) -> None:
    wanted = early.table(table)
    assert wanted.height > 0 or table == "load_faults"
    assert_same(loaded(failover_dump, table=table, asOf=EARLY), wanted)


@pytest.mark.parametrize("table", ["share_partitions", "share_batches"])
def test_share_state_of_a_dump_is_that_of_its_end(
    share_dump: tuple[Path, State], table: str
) -> None:
    folder, state = share_dump
    wanted = state.table(table)
    assert wanted.height > 0
    assert_same(loaded(folder, table=table), wanted)


def test_a_release_and_what_is_assumed_are_those_of_the_replay(
    failover_dump: Path, at_end: State
) -> None:
    with open_dump(str(failover_dump)) as dump:
        wanted = dump.replay(kafka_version="2.0", assume=["clean-elections"]).groups
    found = loaded(failover_dump, table="groups", kafkaVersion="2.0", assume="clean-elections")
    assert_same(found, wanted)
    assert not in_value_order(wanted).equals(in_value_order(at_end.groups))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kafkaVersion": "four"}, "invalid release 'four'"),
        ({"assume": "clean-election"}, "did you mean 'clean-elections'"),
        ({"work": "nowhere"}, "option work is 'nowhere', which is no folder"),
    ],
)
def test_a_release_an_assumption_and_a_folder_have_to_be_some(
    failover_dump: Path, options: dict[str, str], words: str
) -> None:
    with pytest.raises(SettingRefusedError, match=words):
        loaded(failover_dump, table="groups", **options)


def test_files_that_a_replay_needs_are_in_the_folder_that_is_named_and_go(
    one_partition: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    opened = data_source.open_dump

    def watched(*inputs: str, work: str | None = None) -> object:
        made.append(work)
        return opened(*inputs, work=work)

    monkeypatch.setattr(data_source, "open_dump", watched)
    assert loaded(one_partition, table="groups", work=str(tmp_path)).num_rows > 0
    assert made == [str(tmp_path)]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("table", "options", "asked"),
    [
        ("lag", {}, ("lag", {})),
        ("retention_what_if", {"retentionMinutes": "1,1440"}, ("expiration", {"retention_minutes": (1, 1440)})),  # noqa: E501 - a row
        ("assignment_alternatives", {"history": "true"}, ("balance", {"history": True})),
        ("rebalance_storms", {"stormEpochs": "2"}, ("rebalances", {"storm_epochs": 2})),
        pytest.param(
            "incident_owners", {"around": ELECTION}, ("forensics", {"around": ELECTION}),
            marks=pytest.mark.long,
        ),
        ("offset_verdicts", {"question": "timeline"}, ("timeline", {})),
        ("group_events", {"question": "timeline", "timeTo": EARLY}, ("timeline", {"time_to": EARLY})),  # noqa: E501 - a row
    ],
)  # fmt: skip
def test_tables_of_questions_are_those_of_their_answers(
    failover_workspace: Path,
    at_end: State,
    table: str,
    options: dict[str, str],
    asked: tuple[str, dict[str, object]],
) -> None:
    name, settings = asked
    wanted = at_end.ask(name, **settings).to_arrow(table)
    assert wanted.num_rows > 0
    assert_same(loaded(failover_workspace, table=table, **options), wanted)


def test_a_question_to_a_dump_is_asked_of_its_replay(share_dump: tuple[Path, State]) -> None:
    folder, state = share_dump
    wanted = state.lag().to_arrow("lag")
    assert wanted.num_rows > 0
    assert_same(loaded(folder, table="lag"), wanted)


@pytest.mark.parametrize("name", ["lag", "usage"])
def test_what_a_question_cannot_tell_is_a_table(one_partition: Path, name: str) -> None:
    with open_dump(str(one_partition)) as dump:
        wanted = dump.replay().ask(name).gaps
    assert wanted["question"].to_list() == [name]
    assert_same(loaded(one_partition, table="gaps", question=name), wanted)


def test_a_workspace_is_asked_about_the_instant_that_it_was_replayed_at(
    early: State, early_workspace: Path
) -> None:
    wanted = early.lag().to_arrow("lag")
    assert_same(loaded(early_workspace, table="lag"), wanted)
    assert_same(loaded(early_workspace, table="lag", withCapacity="false"), wanted)
    assert_same(loaded(early_workspace, table="groups"), early.groups)
    # By the rules of a release that is named it is replayed again, at its own instant.
    release = str(early.manifest["replay"]["kafka_version"])
    assert_same(loaded(early_workspace, table="groups", kafkaVersion=release), early.groups)


def test_what_a_workspace_was_replayed_without_is_replayed_at_its_instant(
    early: State, early_workspace: Path, tmp_path: Path
) -> None:
    workspace = changed(early_workspace, tmp_path / "workspace", without="state/members")
    assert early.members.height > 0
    assert_same(loaded(workspace, table="members"), early.members)


def test_what_a_workspace_was_replayed_under_goes_on_to_be_assumed(
    early_workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replay = json.loads((early_workspace / "manifest.json").read_text("utf-8"))["replay"]
    under = {**replay, "assumed": ["clean-elections"]}
    workspace = changed(early_workspace, tmp_path / "w", without="state/members", replay=under)
    assumed: list[object] = []
    replayed = Dump.replay

    def watched(dump: Dump, **options: Any) -> State:
        assumed.append(options["assume"])
        return replayed(dump, **options)

    monkeypatch.setattr(Dump, "replay", watched)
    loaded(workspace, table="members")
    assert assumed == [["clean-elections"]]


def test_what_was_kept_is_no_answer_to_other_settings(failover_audited: Path) -> None:
    kept = loaded(failover_audited, table="retention_what_if")
    asked = loaded(failover_audited, table="retention_what_if", retentionMinutes="1,2")
    assert set(asked["retention_minutes"].to_pylist()) == {1, 2}
    assert not in_value_order(kept).equals(in_value_order(asked))


@pytest.mark.parametrize(
    ("table", "kind", "words"),
    [
        ("offset_verdicts", SettingRefusedError, "of several questions .timeline, forensics."),
        ("gaps", SettingRefusedError, "of several questions .*lag.*: option question says which"),
        ("changed_members", SettingRefusedError, r"is of diff.*replay\(\)\.diff\(since=...\)"),
        ("restore_plan", SettingRefusedError, "forensics, for table restore_plan: no incident"),
        ("findings", InputNotRecognizedError, "table findings is no answer to a question"),
        ("data_segments", InputNotRecognizedError, "made when a dump is decoded"),
        ("lag_growth", SettingRefusedError, "lag does not answer with table lag_growth"),
    ],
)
def test_what_cannot_be_asked_says_why(
    one_partition: Path, table: str, kind: type[GroupscopeError], words: str
) -> None:
    with pytest.raises(kind, match=words):
        loaded(one_partition, table=table)


def test_a_dump_of_several_paths_is_one(one_partition: Path) -> None:
    folders = [str(one_partition), str(one_partition.with_name("__consumer_offsets-7"))]
    source = KafkaDump({"paths": json.dumps(folders), "table": "groups"})
    found = source.reader(source.schema())  # type: ignore[arg-type]
    rows = [batch for each in found.partitions() for batch in found.read(each)]
    with open_dump(*folders) as dump:
        wanted = dump.replay().groups
    assert_same(pa.Table.from_batches(rows), wanted)
    assert all(wanted.height > loaded(Path(each), table="groups").num_rows > 0 for each in folders)


# What takes a session.


def test_a_large_dump_says_what_replays_it(
    failover_dump: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workload, "SMALL_BYTES", 0)
    with pytest.raises(EnvironmentUnfitError, match=r"too large.*replay\(spark\).*groupscope repl"):
        loaded(failover_dump, table="groups")
    with pytest.raises(EnvironmentUnfitError, match=r"too large.*replay\(spark\)\.lag\(\)"):
        loaded(failover_dump, table="lag")
    assert loaded(failover_dump, table="offset_commit").num_rows > 0


def test_of_a_large_workspace_what_lies_in_it_is_read_and_nothing_made(
    early_workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workload, "SMALL_RECORDS", 0)
    assert loaded(early_workspace, table="groups").num_rows > 0
    for options in ({"table": "lag"}, {"table": "groups", "asOf": EARLY}):
        with pytest.raises(EnvironmentUnfitError, match=r"too large.*the workspace has.*groups"):
            loaded(early_workspace, **options)


def test_too_many_rows_are_not_handed_to_tasks(
    one_partition: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_source, "MOST_BYTES", 100)
    with pytest.raises(EnvironmentUnfitError, match="rows, too many to be handed to tasks"):
        loaded(one_partition, table="groups")


def test_a_redacted_workspace_has_its_tables_and_no_records(
    failover_audited: Path, tmp_path: Path
) -> None:
    workspace = changed(failover_audited, tmp_path / "out", without="decoded", redacted=True)
    assert loaded(workspace, table="lag").num_rows > 0
    for options in ({"table": "offset_commit"}, {"table": "lag", "by": "group"}):
        with pytest.raises(CannotTellError, match="it was redacted"):
            loaded(workspace, **options)


# Rows that are handed to tasks.


def test_rows_are_handed_over_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_readers, "PIECE_BYTES", 1000)
    rows = pa.table({"number": pa.array(range(1000), pa.int64())})
    found = RowsReader(rows)
    assert len(found.partitions()) > 5
    there = pickle.loads(pickle.dumps(found))
    batches = [batch for each in found.partitions() for batch in there.read(each)]
    assert pa.Table.from_batches(batches).equals(rows.combine_chunks())
    assert len(pickle.dumps(found)) < 1000


def test_no_rows_are_no_rows() -> None:
    found = RowsReader(pa.schema([("number", pa.int64())]).empty_table())
    (part,) = found.partitions()
    assert list(found.read(part)) == []


def test_a_workspace_beside_something_else_is_refused(
    failover_dump: Path, failover_workspace: Path
) -> None:
    paths = json.dumps([str(failover_workspace), str(failover_dump)])
    with pytest.raises(InputNotRecognizedError, match="give it as the only input"):
        KafkaDump({"paths": paths}).schema()


def test_a_workspace_knows_its_files(failover_workspace: Path) -> None:
    """What is planned is what the manifest says of the files."""
    files = Workspace(str(failover_workspace)).manifest()["files"]
    found, _ = reader(failover_workspace, {"table": "groups"})
    assert isinstance(found, FilesReader)
    assert {Path(name).name: size for name, size in found.files} == {
        Path(name).name: size for name, size in files.items() if name.startswith("state/groups/")
    }
