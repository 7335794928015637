"""What findings advise: a command of the tool for its group, or what gives back what was lost.

Findings in words: columns of values put into a sentence, and into a command.

What is said of a value is asked once for each distinct one, never for each finding.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import polars as pl
import pyarrow as pa

from analytics.contracts import polars_rows
from analytics.questions.findings.evidence import Records
from analytics.questions.findings.finding_rows import key
from analytics.tables.parted_table import Order
from schemas.finding_rules import FindingRule, command_for_type, tool_of
from schemas.gaps import NUMBER, of_count
from schemas.reading import SchemaError

if TYPE_CHECKING:
    from schemas.finding_rules import RestoreColumns


Phrasing = Mapping[str, Callable[[Any], Any]]
"""How numbers are said that are no plain ones: `bytes`, and `duration` of milliseconds."""

_NOT_KNOWN: Final = "not known"
_NO_VALUE: Final = "None"
_HARMLESS: Final = r"^[a-zA-Z0-9_@%+=:,./-]+$"
"""An argument that a shell takes as it is, as `shlex.quote` has it."""

_BEGIN: Final = "begin"


class WordedValue(NamedTuple):
    """The values of a name, one a finding, or one of all; and how they are said.

    Attributes:
        values: A column, or a number.
        how: A name of `Phrasing`; None says them as they are.
    """

    values: pl.Series | float
    how: str | None = None


def worded(
    sentence: str, values: Mapping[str, WordedValue], phrasing: Phrasing, count: int
) -> pl.Series:
    """Return a sentence with the values of its names, once for each finding.

    Args:
        sentence: With names in braces; `{offsets:offset}` is a number and its noun, and
            `{offsets:# offset is|# offsets are}` what is written of one, and of any other number.
        values: By name.
        phrasing: How numbers are said that are no plain ones.
        count: How many findings there are.
    """
    texts = [
        literal if name is None else _in_words(values[name], noun, phrasing)
        for literal, name, noun in _parts(sentence)
    ]
    return _joined(texts, count)


def worded_command(
    command: str,
    values: Mapping[str, WordedValue],
    arguments: Mapping[str, str | pl.Series],
    count: int,
) -> pl.Series:
    """Return a command in which no value can do more than be an argument, once for each finding.

    Args:
        command: With names in braces.
        values: Values by name.
        arguments: By name what is quoted for a shell already.
        count: How many findings there are.

    Raises:
        SchemaError: A name has a noun: a command has none.
    """
    texts: list[str | pl.Series] = []
    for literal, name, noun in _parts(command):
        if noun:
            raise SchemaError(f"command {command!r}: {noun!r} has no meaning in a command")
        if name is None:
            texts.append(literal)
        else:
            texts.append(arguments[name] if name in arguments else _argument(values[name]))
    return _joined(texts, count)


def as_names(values: pl.Series) -> pl.Series:
    """Return values as text, as they are compared and looked up: the number 7 is `7`."""
    if values.dtype == pl.String or values.dtype.is_integer():
        return values.cast(pl.String).fill_null(_NO_VALUE)
    return _each_once(values, str)


def quoted(texts: pl.Series) -> pl.Series:
    """Return texts as arguments that a shell takes for one each, as `shlex.quote` makes them."""
    text = pl.col(texts.name)
    escaped = text.str.replace_all("'", "'\"'\"'", literal=True)
    in_quotes = pl.concat_str(pl.lit("'"), escaped, pl.lit("'"))
    is_harmless = text.str.contains(_HARMLESS)
    return texts.to_frame().select(pl.when(is_harmless).then(text).otherwise(in_quotes)).to_series()


def _parts(template: str) -> Iterator[tuple[str, str | None, str]]:
    """Yield texts (without a name), and names with the noun that follows their colon."""
    for literal, name, noun, conversion in string.Formatter().parse(template):
        if literal:
            yield literal, None, ""
        if conversion:
            raise SchemaError(f"{template!r}: names have no conversion")
        if name is not None:
            yield "", name, noun or ""


def _joined(texts: list[str | pl.Series], count: int) -> pl.Series:
    columns = {str(n): each for n, each in enumerate(texts) if isinstance(each, pl.Series)}
    frame = pl.DataFrame({_BEGIN: pl.repeat("", count, eager=True), **columns})
    parts = [
        pl.lit(each) if isinstance(each, str) else pl.col(str(n)) for n, each in enumerate(texts)
    ]
    return frame.select(pl.concat_str(_BEGIN, *parts)).to_series()


def _in_words(value: WordedValue, noun: str, phrasing: Phrasing) -> str | pl.Series:
    values, how = value
    if noun:
        return _of_values(values, lambda each: _counted(each, noun))
    phrase = None if how is None else phrasing.get(how)
    if phrase is not None:
        return _of_values(values, lambda each: _NOT_KNOWN if each is None else str(phrase(each)))
    if isinstance(values, pl.Series) and values.dtype == pl.String:
        return values.fill_null(_NOT_KNOWN)
    return _of_values(values, _text)


def _argument(value: WordedValue) -> str | pl.Series:
    values, _ = value
    if isinstance(values, pl.Series) and values.dtype == pl.String:
        return quoted(values).fill_null(_NO_VALUE)
    return _of_values(values, _plain)


def _of_values(values: pl.Series | float, say: Callable[[Any], str]) -> str | pl.Series:
    return _each_once(values, say) if isinstance(values, pl.Series) else say(values)


def _each_once(values: pl.Series, say: Callable[[Any], str]) -> pl.Series:
    """Return what is said of each value, null among them, asked once for each distinct one."""
    if values.dtype.is_float():
        # Polars takes 0 and -0 for the same, and they are not said alike.
        return pl.Series([say(each) for each in values], dtype=pl.String)
    distinct = values.unique()
    words = pl.Series([say(each) for each in distinct.to_list()], dtype=pl.String)
    known = pl.DataFrame({"value": distinct, "words": words})
    asked = pl.DataFrame({"value": values})
    return asked.join(known, on="value", how="left", nulls_equal=True, maintain_order="left")[
        "words"
    ]


def _counted(value: Any, noun: str) -> str:  # noqa: ANN401 - a cell
    one, is_split, many = noun.partition("|")
    if not is_split:
        one, many = f"{NUMBER} {noun}", f"{NUMBER} {noun}s"
    number = "an unknown number of" if value is None else f"{value:,}"
    return of_count((one, many), value, number)


def _text(value: Any) -> str:  # noqa: ANN401 - a cell
    if value is None:
        return _NOT_KNOWN
    if isinstance(value, float):
        return f"{value:,.2f}".rstrip("0").rstrip(".")
    return f"{value:,}" if isinstance(value, int) else _plain(value)


def _plain(value: Any) -> str:  # noqa: ANN401 - a cell
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return str(value)


# Which of Kafka's tools a finding's command is of: the one for groups of its group's type.

GROUPS: Final = "groups"
"""The table that has the types of groups."""

OF_GROUP: Final = ("group_id", "group_type")
"""The columns by which a row tells the type of its group."""

_GROUP, _TYPE = OF_GROUP


def group_types(rule: FindingRule, rows: pa.Table, records: Records | None) -> pl.DataFrame | None:
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
        known.append(_typed(polars_rows(rows.select(OF_GROUP))))
    if records is not None and GROUPS in records.names and rows.num_rows:
        names = polars_rows(rows.select([_GROUP]))[_GROUP].drop_nulls().unique()
        known.append(_typed(records.types(GROUPS, OF_GROUP, names)))
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


def _typed(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.select(OF_GROUP).cast(pl.String).drop_nulls()


# Commands that give back what a loss took: the fewest that name an instant before each loss.
#
# An offset that was lost can be given back as of any instant from its last commit on until it was
# lost. Where the spans of several offsets have an instant in common, one command serves them all,
# whatever group they are of: the instants are chosen as those that stab all spans (the greedy
# choice of the earliest end is the smallest one).

MOST_GROUPS: Final = 25
"""Of one command: a longer one is hard to read and to check."""

_PLACE: Final = (_GROUP, "topic", "partition")
_BEFORE: Final = timedelta(milliseconds=1)
_COMMIT_TO_APPEND: Final = timedelta(seconds=1)
"""A commit is stamped before it is appended; a cut at an instant goes by the append."""

VALUES: Final = ("groups", "before", "folder")


class RestoreCommands(NamedTuple):
    """The commands that give back what groups lost.

    Attributes:
        served: Which command is of which group: `group_id`, `instant` and `number`.
        commands: `instant`, `number`, and `VALUES`, which are what the wording of a rule needs of a
            command, as a shell takes them.
    """

    served: pl.DataFrame
    commands: pl.DataFrame

    def of_groups(self, groups: pl.Series) -> pl.DataFrame:
        """Return a row for each command of each of these groups, a group's in order.

        Returns:
            `group_id` and `VALUES`.
        """
        served = self.served.join(groups.rename(_GROUP).to_frame(), on=_GROUP, how="semi")
        return (
            served.join(self.commands, on=["instant", "number"])
            .sort("instant", "number", _GROUP)
            .select(_GROUP, *VALUES)
        )


def shared_commands(spans: Iterable[pl.DataFrame]) -> RestoreCommands:
    """Return the fewest commands that give back what was lost.

    Args:
        spans: Those of all groups that `lost_spans` returns, in the order of `SPANS`, some at a
            time; at least one frame.
    """
    served = _instants(spans).sort("instant", _GROUP)
    served = served.with_columns(
        # The number of a command of those with the same instant.
        (pl.int_range(pl.len()).over("instant") // MOST_GROUPS + 1).alias("number"),
    )
    options = served.with_columns(
        pl.concat_str(pl.lit("--group "), quoted(served[_GROUP])).alias("option")
    )
    commands = options.group_by("instant", "number", maintain_order=True).agg(
        pl.col("option").str.join(" ").alias("groups")
    )
    return RestoreCommands(served, commands.with_columns(_places(commands)))


def _places(commands: pl.DataFrame) -> list[pl.Series]:
    """Return the instant of each command as it is printed, and the name of its folder."""
    befores = [_printed(each) for each in commands["instant"]]
    folders = [
        f"restore-{before.replace(':', '')}{f'-{number}' if number > 1 else ''}"
        for before, number in zip(befores, commands["number"], strict=True)
    ]
    return [
        pl.Series("before", befores, pl.String),
        pl.Series("folder", folders, pl.String),
    ]


def _printed(instant: datetime) -> str:
    return instant.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def lost_spans(columns: RestoreColumns, rows: pl.DataFrame) -> pl.DataFrame:
    """Return the instants as of which offsets can be given back: of each the last time it was lost.

    Args:
        columns: Where a rule's table has the offset, its commit and its loss.
        rows: Rows of whole groups that a rule is about; those without an offset, or without a time
            at which it was committed or lost, have nothing that a command could give back. (The
            start offset of a share group was never committed, and `restore` gives none back.)

    Returns:
        `group_id`, `start` and `end`, each once, in the order of `SPANS`.
    """
    lost_at = [columns.not_before] if columns.not_before else []
    # Times of records are whole milliseconds.
    lost = pl.coalesce(*lost_at, columns.lost_at)
    end = lost.dt.truncate("1ms") - _BEFORE
    start = pl.min_horizontal(pl.col(columns.committed_at) + _COMMIT_TO_APPEND, end)
    can_be_given_back = (
        pl.col(columns.offset).is_not_null()
        & pl.col(columns.committed_at).is_not_null()
        & lost.is_not_null()
    )
    spans = (
        rows.filter(can_be_given_back)
        .select(*_PLACE, start.alias("start"), end.alias("end"))
        .with_row_index("row")
        .with_columns(pl.col("row").min().over(_PLACE))
        .sort("end", descending=True, maintain_order=True)
        .unique(_PLACE, keep="first", maintain_order=True)
        .sort("end", _GROUP, "row")
    )
    # A span that its group has twice is served by what serves the first, or those between them.
    return spans.select(_GROUP, "start", "end").unique(maintain_order=True)


def _by_end(spans: pl.DataFrame) -> pl.DataFrame:
    return spans.sort("end", _GROUP, maintain_order=True)


SPANS: Final = Order(("end", _GROUP), _by_end)
"""The order of spans: by their ends; those of a group that end together stay as they are."""


def _instants(spans: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Return the instants that serve the spans of groups: `group_id` and `instant`, each once."""
    served: list[pl.DataFrame] = []
    last: int | None = None
    for each in spans:
        instants: list[int] = []
        for start, end in each.select(pl.col("start", "end").to_physical()).iter_rows():
            last = end if last is None or start > last else last
            instants.append(last)
        found = pl.Series("instant", instants, pl.Int64).cast(each.schema["end"])
        served.append(each.select(_GROUP).with_columns(found).unique())
    return pl.concat(served).unique()


# What findings advise: a command each, of the tool for its group or to give back what was lost.

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
        distinct = types.unique(maintain_order=True).to_list()
        if len(distinct) == 1:
            return self._of_type(command, distinct[0], values, len(rows))
        found = [pl.DataFrame(schema={_ROW: pl.UInt32, _COMMAND: pl.String})]
        for each in distinct:
            mine = types.eq_missing(pl.Series([each], dtype=pl.String)).arg_true()
            commands = self._of_type(command, each, _of_rows(values, mine), len(mine))
            found.append(pl.DataFrame({_ROW: mine, _COMMAND: commands}))
        return pl.concat(found).sort(_ROW)[_COMMAND]

    def _of_type(
        self, command: str, group_type: str | None, values: Values, count: int
    ) -> pl.Series:
        """Return the commands of findings of groups of one type, which may be none."""
        command_of_type, of_tool = with_tool(command, group_type)
        return worded_command(command_of_type, values, {**self.asked_of, **of_tool}, count)

    def _restoring(self, restoring: pl.DataFrame, rows: pl.DataFrame, values: Values) -> pl.Series:
        """Return the commands that give back what was lost; null where there are none."""
        groups = rows.select(pl.col(key(_GROUP)).alias(_GROUP)).with_row_index(_ROW)
        used = groups.join(restoring, on=_GROUP, how="inner", maintain_order="left_right")
        repeated = _of_rows(values, used[_ROW])
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


def _of_rows(values: Values, rows: pl.Series) -> Values:
    """Return the values of some findings; one of all stays what it is."""
    return {
        name: each._replace(values=each.values.gather(rows))
        if isinstance(each.values, pl.Series)
        else each
        for name, each in values.items()
    }
