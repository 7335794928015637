"""Hold `groupscope replay --as-of-offset` against what real brokers answered at the cuts of a dump.

Run as ``python -m tests.support.cut_check DUMP [--cut NAME ...] [--groupscope COMMAND]``: the
installed command replays the copy at each cut, and every table is compared field by field. Prints
one line a cut, and what differs; exit code 1 where something does.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pyarrow.dataset as ds

from analytics.replay.topics import METADATA_LOG
from tests.support.broker_state import CutBatch
from tests.support.cuts import Cut, cuts_of
from tests.support.replayed_cuts import Replayed, by_cut, differences

INTERNAL_TOPICS = ("__consumer_offsets", "__share_group_state")
MOST_PARTITIONS = 50
TABLES = ("committed_offsets", "pending_offsets", "groups", "members", "assignments")


def replay(command: str, cut: Cut, log_dir: Path, out: Path) -> None:
    """Replay a copy at a cut; partitions that it does not name hold nothing."""
    ends = {
        (topic, n): 0
        for topic in INTERNAL_TOPICS
        for n in range(MOST_PARTITIONS)
        # A partition without a copy would make the whole instant one that cannot be told.
        if (log_dir / f"{topic}-{n}").exists()
    }
    options = [
        part
        for (topic, number), end in (ends | cut.end_offsets).items()
        for part in ("--as-of-offset", f"{topic}:{number}:{end}")
    ]
    subprocess.run(
        [command, "replay", str(log_dir), "--out", str(out), *options],
        check=True,
        capture_output=True,
    )


def rows_of(out: Path, table: str) -> list[Any]:
    """Read a state table; its groups are marked as those of the only cut."""
    rows = ds.dataset(out / "state" / table, format="parquet").to_table().to_pylist()
    return [SimpleNamespace(**(row | {"group_id": f"0|{row['group_id']}"})) for row in rows]


def share_differences(out: Path, cut: Cut) -> list[str]:
    """Return what differs in the share partitions that the broker was asked for."""
    found = {_share_key(row): row for row in rows_of(out, "share_partitions")}
    batches: dict[tuple[str, str, int], list[CutBatch]] = defaultdict(list)
    for row in rows_of(out, "share_batches"):
        batch = CutBatch(row.first_offset, row.last_offset, row.delivery_state, row.delivery_count)
        batches[_share_key(row)].append(batch)
    differing = []
    for told in cut.state.share_partitions:
        row = found.get(told.key)
        exists = row is not None and row.state_epoch is not None
        if exists != told.exists:
            differing.append(f"{told.key}: exists {exists}, the broker says {told.exists}")
        if row is None or not (exists and told.exists):
            continue
        pairs = [
            ("state_epoch", row.state_epoch, told.state_epoch),
            ("start_offset", row.start_offset, told.start_offset),
            ("batches", tuple(sorted(batches[told.key])), told.batches),
        ]
        if told.leader_epoch is not None:
            pairs.append(("leader_epoch", row.leader_epoch, told.leader_epoch))
        differing += [
            f"{told.key}: {name} {ours}, the broker says {theirs}"
            for name, ours, theirs in pairs
            if ours != theirs
        ]
    return differing


def _share_key(row: Any) -> tuple[str, str, int]:
    return row.group_id.removeprefix("0|"), row.topic_id, row.partition


def check(command: str, dump: Path, cut: Cut, *, asked_for_pending: bool) -> list[str]:
    """Replay a cut and return what differs."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "workspace"
        replay(command, cut, dump / cut.copy, out)
        topics = ds.dataset(out / "state" / "topics", format="parquet").to_table().to_pylist()
        # Where the metadata log tells of topics, one that only records name was gone before.
        told = any(each["source"] == METADATA_LOG for each in topics)
        gone = {
            each["topic_id"]
            for each in topics
            if each["deleted_at"] is not None or (told and each["source"] != METADATA_LOG)
        }
        ours = by_cut({name: rows_of(out, name) for name in TABLES}).get(0, Replayed())
        # The broker knew the topics of the end, and could not name those that were deleted.
        ours.assignments = {each for each in ours.assignments if each.topic_id not in gone}
        tables = differences(ours, cut.state, asked_for_pending=asked_for_pending)
        return [
            f"{table}: only ours {mine}, only the broker's {theirs}"
            for table, (mine, theirs) in tables.items()
        ] + share_differences(out, cut)


@click.command()
@click.argument("dump", type=click.Path(exists=True, path_type=Path))
@click.option("--cut", "names", multiple=True, help="A cut by name; all of them without.")
@click.option("--groupscope", "command", default=str(Path(sys.executable).with_name("groupscope")))
def main(dump: Path, names: tuple[str, ...], command: str) -> None:
    """Compare every cut of DUMP."""
    cuts = [cut for cut in cuts_of(dump) if not names or cut.name in names]
    asked_for_pending = any(cut.state.asked_for_pending for cut in cuts_of(dump))
    failed = 0
    for cut in cuts:
        differing = check(command, dump, cut, asked_for_pending=asked_for_pending)
        failed += bool(differing)
        click.echo(f"{cut.name} {cut.kind}: {'DIFFERS' if differing else 'equal'}")
        for line in differing:
            click.echo(f"  {line[:2000]}")
    answered = sum(cut.state.size for cut in cuts)
    click.echo(f"{len(cuts) - failed} of {len(cuts)} cuts equal, {answered} answers compared")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
