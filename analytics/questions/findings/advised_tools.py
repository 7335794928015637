"""Which of Kafka's tools a finding's command is of: the one for groups of its group's type."""

from __future__ import annotations

from typing import Final

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from analytics.questions.findings.evidence import KnownRecords
from analytics.replay.log.arrow_rows import polars_rows
from schemas.finding_rules import FindingRule, command_for_type, tool_of

GROUPS: Final = "groups"
"""The table that has the types of groups."""

OF_GROUP: Final = ("group_id", "group_type")
"""The columns by which a row tells the type of its group."""

_GROUP, _TYPE = OF_GROUP


def group_types(
    rule: FindingRule, rows: pa.Table, records: KnownRecords | None
) -> pl.DataFrame | None:
    """Return the types of the groups that a rule is about; what is not known has none.

    Args:
        rule: Where none of its commands is of the tool for a group, nothing is read.
        rows: Those it is about, with `OF_GROUP` as far as its table has them. Their own type counts
            where a group is not there any more.
        records: Reads the table `groups`.

    Returns:
        `OF_GROUP`, a row a group; None where no command needs them.
    """
    if not rule.names_tool_of_group():
        return None
    known = [pl.DataFrame(schema=dict.fromkeys(OF_GROUP, pl.String))]
    if _TYPE in rows.column_names:
        known.append(_typed(rows))
    if records is not None and GROUPS in records.names and rows.num_rows:
        names = pc.unique(pc.drop_null(rows[_GROUP].combine_chunks()))
        known.append(_typed(records.read(GROUPS, OF_GROUP, pc.field(_GROUP).isin(names))))
    return pl.concat(known).unique(_GROUP, keep="last", maintain_order=True)


def with_tool(command: str, group_type: str | None) -> tuple[str, dict[str, str]]:
    """Return a command, and what `{tool}` and `{topic_option}` stand for in it.

    Where the type of its group is not known, no tool is known to answer for it: the command is the
    one that tells the type.

    Raises:
        SchemaError: There is no such type.
    """
    if "{tool}" not in command:
        return command, {}
    if group_type is None:
        return command_for_type(), {}
    tool = tool_of(group_type)
    return command, {"tool": tool.name, "topic_option": tool.topic_option}


def _typed(rows: pa.Table) -> pl.DataFrame:
    return polars_rows(rows.select(OF_GROUP)).cast(pl.String).drop_nulls()
