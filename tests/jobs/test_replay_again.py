"""Replaying the same files again, named in another order, gives the same bytes."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Groupscope

PARTITIONS = (
    "__consumer_offsets-2",
    "__consumer_offsets-6",
    "__consumer_offsets-8",
    "__share_group_state-0",
)


def digests(workspace: Path) -> dict[str, list[str]]:
    """What every table's files hold, whatever they are called."""
    found: dict[str, list[str]] = {}
    for kind in ("decoded", "state", "history"):
        for part in sorted((workspace / kind).rglob("*.parquet")):
            table = f"{kind}/{part.parent.name}"
            found.setdefault(table, []).append(hashlib.sha256(part.read_bytes()).hexdigest())
    return {table: sorted(each) for table, each in found.items()}


def test_neither_the_order_of_inputs_nor_another_run_changes_a_byte(
    groupscope: Groupscope, failover_dump: Path, tmp_path: Path
) -> None:
    inputs = [failover_dump / "broker-2" / each for each in PARTITIONS]
    told = []
    for number, named in enumerate((inputs, inputs[::-1])):
        out = tmp_path / str(number)
        result = groupscope("replay", *named, "--out", out, timeout=900)
        assert result.returncode in {0, 3}, result.stderr
        told.append(digests(out))
    assert {"state/committed_offsets", "state/share_partitions", "state/groups"} <= set(told[0])
    assert told[0] == told[1]
