"""`--resume` of decode, replay and audit: the answer is that of a whole run."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from tests.brokers.batches import batches_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Groupscope


SMALL, SEVERAL_BROKERS = "tests/data/dumps/kafka-4.4.0-random", "examples/kafka-4.3.1-failover"
ENDS_WITH = {SMALL: 3, SEVERAL_BROKERS: 1}
"""How an audit of it ends: both have findings, and of the small one not all can be told."""


GROWS = {SMALL: "broker-1", SEVERAL_BROKERS: "broker-2"}
"""The copy whose logs were shorter."""


@pytest.fixture(
    scope="module", params=[SMALL, pytest.param(SEVERAL_BROKERS, marks=pytest.mark.long)]
)
def copied(request: pytest.FixtureRequest) -> str:
    """Where the dump is copied from."""
    return str(request.param)


@pytest.fixture(scope="module")
def dump(repository: Path, copied: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dump in a folder of its own."""
    folder = tmp_path_factory.mktemp("grown") / "dump"
    ignored = shutil.ignore_patterns("tools", "about.json", "*.properties")
    shutil.copytree(repository / copied, folder, ignore=ignored if copied == SMALL else None)
    return folder


@pytest.fixture(scope="module")
def earlier(
    copied: str, dump: Path, groupscope: Groupscope, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A replay of the dump when three of its logs were shorter, in the same folder."""
    out = tmp_path_factory.mktemp("earlier") / "workspace"
    logs = sorted(dump.glob(f"{GROWS[copied]}/__consumer_offsets-*"))
    grown = {}
    for partition in [each for each in logs if len(batches_of(each)) > 10][:3]:
        cut = batches_of(partition)[-5]
        grown[cut.segment] = cut.segment.read_bytes()
        with cut.segment.open("r+b") as file:
            file.truncate(cut.start)
    assert len(grown) == 3
    ran = groupscope("replay", dump, "--out", out)
    assert ran.returncode in {0, 3}, ran.stderr
    for segment, content in grown.items():
        segment.write_bytes(content)
    return out


def tables_of(out: Path) -> dict[str, list[str]]:
    return {
        str(folder.relative_to(out)): sorted(
            map(repr, pq.read_table(sorted(folder.glob("*.parquet"))).to_pylist())
        )
        for folder in {path.parent for path in out.rglob("*.parquet")}
    }


def manifest_of(out: Path) -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads((out / "manifest.json").read_text("utf-8"))
    return manifest


def bytes_of(out: Path) -> tuple[int, int]:
    """How many bytes of logs were kept and decoded."""
    partitions = manifest_of(out)["resumed"]["partitions"]
    kept, decoded = (
        sum(each[name] for each in partitions) for name in ("bytes_kept", "bytes_decoded")
    )
    return kept, decoded


def test_decode_in_tasks_of_spark(
    groupscope: Groupscope, dump: Path, earlier: Path, tmp_path: Path
) -> None:
    resumed, whole = tmp_path / "resumed", tmp_path / "whole"
    ran = groupscope("decode", dump, "--out", resumed, "--resume", earlier)
    assert ran.returncode == 0, ran.stderr
    assert f"of logs are kept from {earlier}, " in ran.stderr
    kept, decoded = bytes_of(resumed)
    assert kept > decoded > 0
    assert groupscope("decode", dump, "--out", whole).returncode == 0
    assert tables_of(resumed) == tables_of(whole)


@pytest.mark.long
def test_audit_answers_as_a_whole_one(
    groupscope: Groupscope, copied: str, dump: Path, earlier: Path, tmp_path: Path
) -> None:
    resumed, whole = tmp_path / "resumed", tmp_path / "whole"
    first = groupscope("audit", dump, "--out", resumed, "--resume", earlier)
    second = groupscope("audit", dump, "--out", whole)
    assert first.returncode == second.returncode == ENDS_WITH[copied]
    assert (whole / "findings.jsonl").read_bytes()
    assert first.stdout.replace(str(resumed), "DIR") == second.stdout.replace(str(whole), "DIR")
    assert tables_of(resumed) == tables_of(whole)
    assert (resumed / "findings.jsonl").read_bytes() == (whole / "findings.jsonl").read_bytes()


def test_replay_of_what_grew_and_again_of_what_is_as_it_was(
    groupscope: Groupscope, dump: Path, earlier: Path, tmp_path: Path
) -> None:
    resumed, whole, again = tmp_path / "resumed", tmp_path / "whole", tmp_path / "again"
    ran = groupscope("replay", dump, "--out", resumed, "--resume", earlier)
    assert ran.returncode == 0, ran.stderr
    assert groupscope("replay", dump, "--out", whole).returncode == 0
    assert tables_of(resumed) == tables_of(whole)
    ran = groupscope("replay", dump, "--out", again, "--resume", resumed, "--as-of", "end")
    assert ran.returncode == 0, ran.stderr
    assert bytes_of(again)[1] == 0
    assert tables_of(again) == tables_of(whole)


@pytest.mark.parametrize("command", ["decode", "replay", "audit"])
def test_a_folder_that_is_no_workspace_is_a_slip(
    groupscope: Groupscope, dump: Path, tmp_path: Path, command: str
) -> None:
    ran = groupscope(command, dump, "--out", tmp_path / "out", "--resume", tmp_path / "typo")
    assert ran.returncode == 2
    assert f"--resume {tmp_path / 'typo'}: no workspace of groupscope is there" in ran.stderr
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize("command", ["replay", "audit"])
def test_what_is_decoded_already_goes_on_from_nothing(
    groupscope: Groupscope, earlier: Path, tmp_path: Path, command: str
) -> None:
    ran = groupscope(command, earlier, "--out", tmp_path / "out", "--resume", earlier)
    assert ran.returncode == 2
    assert f"{earlier} is decoded already: --resume needs the dump" in ran.stderr


def test_a_slip_is_one_where_nothing_has_to_be_decoded_at_all(
    groupscope: Groupscope, dump: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert groupscope("replay", dump, "--out", out).returncode == 0
    ran = groupscope("audit", dump, "--out", out, "--resume", tmp_path / "typo")
    assert ran.returncode == 2
    assert f"--resume {tmp_path / 'typo'}: no workspace of groupscope is there" in ran.stderr
