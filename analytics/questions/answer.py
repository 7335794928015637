"""What a question was answered with, and what it could not tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from analytics.gaps.gap import Gap, check_gaps, words_of
from analytics.tables.parted_table import PartedTable, parted

if TYPE_CHECKING:
    import pyarrow as pa

    from analytics.gaps.group_selection import GroupSelection


@dataclass(frozen=True)
class Answer:
    """Tables, the limits of what they say, and what to know when reading them.

    Attributes:
        tables: By name, with the columns of their contracts (`schemas/tables/`).
        groups: The groups that were asked about; None where a question is not about groups.
        doubts: What single rows cannot tell.
        warnings: What may change how the tables are read, one sentence each.
        statements: By which rules and settings the question was answered, one sentence each.
        summary: What programs are told beside the tables, as JSON has it.
        figures: What sums up the rows for whoever shows them; no contract.
        stored_tables: The tables as a workspace keeps them, where those are of more than what was
            asked.
        rows_cannot_tell: Whether rows of the tables say themselves what cannot be told, and why.
    """

    tables: Mapping[str, pa.Table]
    groups: GroupSelection | None = None
    doubts: tuple[Gap, ...] = ()
    warnings: tuple[str, ...] = ()
    statements: tuple[str, ...] = ()
    summary: Mapping[str, Any] = field(default_factory=dict)
    figures: Mapping[str, Any] = field(default_factory=dict)
    stored_tables: Mapping[str, pa.Table] | None = None
    rows_cannot_tell: bool = False

    def __post_init__(self) -> None:
        """Refuse what is no gap.

        Raises:
            TypeError: What cannot be told is a sentence.
        """
        check_gaps(self.doubts)

    def rows(self, name: str) -> PartedTable:
        """Return a table whose rows may be too many to be held."""
        return parted(self.tables, name)

    @property
    def long_tables(self) -> dict[str, PartedTable]:
        """All tables by name, as what can be read in pieces."""
        return {name: self.rows(name) for name in self.tables}

    @property
    def tables_to_keep(self) -> Mapping[str, pa.Table]:
        """The tables as a workspace keeps them: other groups may be asked about later."""
        return self.tables if self.stored_tables is None else self.stored_tables

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """What the dump does not hold the answer to, each once."""
        of_groups = () if self.groups is None else self.groups.gaps
        return tuple(dict.fromkeys((*of_groups, *self.doubts)))

    @property
    def cannot_tell(self) -> tuple[str, ...]:
        """The same in words, one sentence each."""
        return words_of(self.gaps)
