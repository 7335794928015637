"""Share state as a design of Kafka had it that no release has: its tables, and what they lack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from analytics.decode.selection import names_wanted


@dataclass(frozen=True)
class DialectState:
    """What INPUTs hold of share state, by one of its designs.

    Attributes:
        dialect: Its name.
        tables: By name: `share_partitions`, `share_batches`, and those of the dialect alone.
        unseen: Of each partition of which a part is lost, what: groups may be hidden there.
        inputs: The INPUTs as given.
    """

    dialect: str
    tables: Mapping[str, pa.Table]
    unseen: Sequence[str]
    inputs: Sequence[str]

    @property
    def cannot_tell(self) -> list[str]:
        """What cannot be told, in words."""
        rows = self.tables["share_partitions"]
        lacking = rows.filter(pc.invert(rows["complete"]))
        reasons = [
            f"{row['group_id']}: {row['topic']}-{row['partition']}: {row['missing']}"
            for row in lacking.to_pylist()
        ]
        return [*reasons, *self.unseen]

    @property
    def is_of_releases(self) -> bool:
        """Whether there are snapshots of releases, and none as the text has them."""
        if "share_readings" not in self.tables:
            return False
        rows = self.tables["share_readings"]
        fits = rows.filter(pc.equal(rows["kind"], "snapshot"))["fits"]
        return bool(pc.unique(fits).to_pylist() == ["release"])

    def selected(self, groups: Sequence[str], exclude: Sequence[str]) -> DialectState:
        """Return what is of some groups."""
        if not (groups or exclude):
            return self
        there = pc.unique(self.tables["share_partitions"]["group_id"]).to_pylist()
        wanted = pa.array(names_wanted(there, groups, exclude), pa.string())
        tables = {
            name: rows.filter(pc.is_in(rows["group_id"], wanted))
            for name, rows in self.tables.items()
        }
        return DialectState(self.dialect, tables, self.unseen, self.inputs)
