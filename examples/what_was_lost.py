"""What an unclean election cost: the commits that only a dead broker's disk still has.

Reads a workspace that `groupscope decode` wrote, with nothing but pyarrow, and says for every group
with commits on a line that did not survive: how many, for how many partitions, and how far back the
survivors' last word is. Commits in transactions are left out: markers decide which of them count.

    python examples/what_was_lost.py WORKSPACE
"""

from __future__ import annotations

import sys
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

KEY = ["group", "topic", "partition"]


def commits(folder: Path) -> pa.Table:
    """Return the commits below `folder`: group, topic, partition, committed, offset in the log."""
    columns = ["key", "value", "offset", "is_transactional"]
    rows = pq.read_table(folder / "decoded" / "offset_commit", columns=columns)
    rows = rows.filter(pc.and_(pc.is_valid(rows["value"]), pc.invert(rows["is_transactional"])))
    fields = {name: pc.struct_field(rows["key"], name) for name in KEY}
    return pa.table(
        {**fields, "committed": pc.struct_field(rows["value"], "offset"), "offset": rows["offset"]}
    )


def last_commits(rows: pa.Table) -> pa.Table:
    """Return the last commit of each group and partition: the one latest in the log."""
    ordered = rows.sort_by("offset")
    return ordered.group_by(KEY, use_threads=False).aggregate(
        [("committed", "last"), ("committed", "count")]
    )


def said_of(rows: list[dict[str, Any]]) -> str:
    """Return how far back the survivors' last word is, over the partitions of one group."""
    known = [row for row in rows if row["known"] is not None]
    if not known:
        return "nothing of these"
    behind = sum(max(0, row["lost"] - row["known"]) for row in known)
    said = f"{behind} records behind" if behind else "as much, or more by now"
    return said if len(known) == len(rows) else f"{said}; {len(rows) - len(known)} not at all"


def main(workspace: Path) -> None:
    """Print one line for each group that lost commits."""
    surviving = last_commits(commits(workspace)).rename_columns([*KEY, "known", "_"])
    for line in sorted((workspace / "diverged").iterdir()):
        lost = last_commits(commits(line)).rename_columns([*KEY, "lost", "commits"])
        both = lost.join(surviving, KEY, join_type="left outer").sort_by("group").to_pylist()
        print(f"Commits that only {line.name} has: {sum(row['commits'] for row in both)}\n")
        print(f"{'GROUP':<24}COMMITS  PARTITIONS  SURVIVORS KNOW")
        for group, found in groupby(both, key=lambda row: row["group"]):
            rows = list(found)
            count = sum(row["commits"] for row in rows)
            print(f"{group[:22]:<24}{count:>7}  {len(rows):>10}  {said_of(rows)}")
        print()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
