"""What findings advise: a command each, of the tool for its group or to give back what was lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import polars as pl

from analytics.questions.findings.advised_tools import OF_GROUP, with_tool
from analytics.questions.findings.finding_rows import key
from analytics.questions.findings.restore_commands import VALUES
from analytics.questions.findings.wording import WordedValue, worded_command
from schemas.finding_rules import FindingRule

_GROUP, _TYPE = OF_GROUP
_ROW: Final = "row"
_COMMAND: Final = "command"

Values = Mapping[str, WordedValue]


@dataclass(frozen=True)
class Advice:
    """What suggestions need besides what findings rest on.

    Attributes:
        rule: The rule.
        asked_of: `input` and `dump`.
        types: Of groups, as `group_types` returns them; None where no command needs them.
        restoring: As `RestoreCommands.of_groups` returns them; None where the rule gives nothing
            back.
    """

    rule: FindingRule
    asked_of: Mapping[str, str]
    types: pl.DataFrame | None
    restoring: pl.DataFrame | None

    def suggestions(self, rows: pl.DataFrame, values: Values) -> pl.Series:
        """Return the command of each finding; where it takes several, one after the other.

        Args:
            rows: Of `finding_rows`.
            values: What is said of them, by name.

        Raises:
            SchemaError: A group is of a type that there is not.
        """
        rule = self.rule
        if rule.restore is None or self.restoring is None:
            return self._with_tool(rule.suggestion, rows, values)
        otherwise = self._with_tool(rule.restore.otherwise, rows, values)
        given_back = self._restoring(self.restoring, rows, values)
        return pl.select(pl.coalesce(given_back, otherwise)).to_series()

    def _with_tool(self, command: str, rows: pl.DataFrame, values: Values) -> pl.Series:
        if self.types is None:
            return worded_command(command, values, self.asked_of, len(rows))
        types = rows.select(pl.col(key(_GROUP)).alias(_GROUP)).join(
            self.types, on=_GROUP, how="left", maintain_order="left"
        )[_TYPE]
        chosen = pl.repeat(None, len(rows), dtype=pl.String, eager=True)
        for each in types.unique(maintain_order=True):
            command_of_type, of_tool = with_tool(command, each)
            arguments = {**self.asked_of, **of_tool}
            commands = worded_command(command_of_type, values, arguments, len(rows))
            chosen = chosen.zip_with(types.ne_missing(pl.Series([each], dtype=pl.String)), commands)
        return chosen

    def _restoring(self, restoring: pl.DataFrame, rows: pl.DataFrame, values: Values) -> pl.Series:
        """Return the commands that give back what was lost; null where there are none."""
        groups = rows.select(pl.col(key(_GROUP)).alias(_GROUP)).with_row_index(_ROW)
        used = groups.join(restoring, on=_GROUP, how="inner", maintain_order="left_right")
        repeated = {
            name: each._replace(values=each.values.gather(used[_ROW]))
            if isinstance(each.values, pl.Series)
            else each
            for name, each in values.items()
        }
        arguments: dict[str, str | pl.Series] = {
            **self.asked_of,
            **{name: used[name] for name in VALUES},
        }
        commands = worded_command(self.rule.suggestion, repeated, arguments, len(used))
        together = (
            pl.DataFrame({_ROW: used[_ROW], _COMMAND: commands})
            .group_by(_ROW, maintain_order=True)
            .agg(pl.col(_COMMAND).str.join("; "))
        )
        return groups.join(together, on=_ROW, how="left", maintain_order="left")[_COMMAND]
