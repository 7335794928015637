"""What tables are expected to hold: of each what its contract says, and what a suite adds.

A suite is one file in `expectations/`, named as its table, in the JSON form of great-expectations:
`expectations` with `type`, `kwargs`, `severity` and `meta`. Of types that begin as `OWN` do, the
checks are our own, exact for every 64-bit number. A suite without a table's name says it in `meta`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Final

from schemas.finding_rules import SEVERITIES
from schemas.model import SchemaError, Table

OWN: Final = "expect_rows_"
"""With this begin the names of checks of our own."""

COLUMNS_TYPE: Final = "expect_rows_to_have_columns"
NOT_NULL: Final = "expect_column_values_to_not_be_null"
IN_SET: Final = "expect_column_values_to_be_in_set"
KEY_UNIQUE: Final = "expect_rows_to_differ_in"
CONTRACT: Final = "contract"
"""The suite of what contracts say."""
WRITTEN: Final = "groupscope"
"""The suites of `expectations/`."""
OUR_SUITES: Final = frozenset({CONTRACT, WRITTEN})

_FOLDER: Final = "expectations"
_COLUMN_ARGUMENTS: Final = ("column", "column_A", "column_B", "column_list", "columns")


@dataclass(frozen=True)
class Expectation:
    """One thing that a table is expected to hold.

    Attributes:
        table: The table.
        name: Tells it apart from the table's others.
        type: A type of great-expectations, or one of our own (`OWN`).
        kwargs: Its arguments.
        severity: critical, warning or info.
        suite: Who expects it: `CONTRACT`, `groupscope`, or the name of a team's file.
        where: Which rows it is about: allowed values by column; of types of our own.
        about: What it would mean if it failed; may be empty.
    """

    table: str
    name: str
    type: str
    kwargs: Mapping[str, Any]
    severity: str
    suite: str
    where: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    about: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of its table that it names."""
        found: list[str] = []
        for name in _COLUMN_ARGUMENTS:
            said = self.kwargs.get(name, ())
            found += [said] if isinstance(said, str) else list(said)
        for name in ("per", "by", "plus", "minus", "other"):
            said = self.kwargs.get(name, ())
            found += [said] if isinstance(said, str) else list(said)
        found += [self.kwargs[name] for name in ("first", "last", "epoch") if name in self.kwargs]
        return tuple(dict.fromkeys([*found, *self.kwargs.get("restarts", {}), *self.where]))

    @property
    def is_own(self) -> bool:
        """Whether the check is of our own."""
        return self.type.startswith(OWN)


def expected_by_contract(table: Table) -> tuple[Expectation, ...]:
    """Return what a contract says: columns and types, what is never null, which columns differ."""

    def one(name: str, type_: str, **kwargs: Any) -> Expectation:  # noqa: ANN401
        return Expectation(table.name, name, type_, kwargs, "critical", CONTRACT)

    types = {each.name: each.type for each in table.columns}
    never = [each.name for each in table.columns if not each.nullable]
    return (
        one("columns", COLUMNS_TYPE, types=types),
        *(one(f"{name} not null", NOT_NULL, column=name) for name in never),
        one("key unique", KEY_UNIQUE, columns=list(table.key)),
    )


@cache
def written_suites() -> Mapping[str, tuple[Expectation, ...]]:
    """Return what is expected beyond contracts, by table.

    Raises:
        SchemaError: A file is wrong.
    """
    folder = files(__package__).joinpath(_FOLDER)
    found = {}
    for each in sorted(folder.iterdir(), key=lambda each: each.name):
        if each.name.endswith(".json"):
            name = each.name.removesuffix(".json")
            document = json.loads(each.read_text(encoding="utf-8"))
            found[name] = suite_of(document, name, WRITTEN)
    return found


def suite_of(document: Any, stem: str, suite: str) -> tuple[Expectation, ...]:  # noqa: ANN401
    """Return a suite in the JSON form of great-expectations.

    Args:
        document: The JSON object.
        stem: The file's name: the table, where `meta` of the suite names none.
        suite: What the suite is called.

    Raises:
        SchemaError: It is not a suite.
    """
    if not isinstance(document, Mapping) or not isinstance(document.get("expectations"), list):
        raise SchemaError("a suite is an object with `expectations`", file=stem)
    table = (document.get("meta") or {}).get("table", stem)
    return tuple(_expectations(document["expectations"], str(table), suite))


def _expectations(
    entries: Sequence[Mapping[str, Any]], table: str, suite: str
) -> Iterator[Expectation]:
    names: dict[str, int] = {}
    for each in entries:
        meta = each.get("meta") or {}
        type_ = each.get("type")
        severity = each.get("severity") or "warning"
        if not isinstance(type_, str) or severity not in SEVERITIES:
            raise SchemaError(
                f"an expectation has a `type`, and a `severity` of {', '.join(SEVERITIES)}",
                file=table,
            )
        kwargs = dict(each.get("kwargs") or {})
        if "words" in meta:
            kwargs["value_set"] = words(meta["words"])
        name = str(meta.get("name") or type_.removeprefix("expect_").replace("_", " "))
        names[name] = names.get(name, 0) + 1
        name = name if names[name] == 1 else f"{name} {names[name]}"
        where = {key: list(value) for key, value in (meta.get("where") or {}).items()}
        yield Expectation(
            table, name, type_, kwargs, severity, suite, where, str(meta.get("about", ""))
        )


def words(place: str) -> list[str]:
    """Return a closed vocabulary of the rules' files, as `share.statuses`.

    Raises:
        SchemaError: There is none.
    """
    file, _, section = place.partition(".")
    text = files(__package__).joinpath(f"rules/{file}.json").read_text(encoding="utf-8")
    found = json.loads(text).get(section)
    if not isinstance(found, dict):
        raise SchemaError(f"{place} is no vocabulary", file=f"rules/{file}.json")
    return [each for each in found if each != "about"]
