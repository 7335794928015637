"""Writes docs/tables.md and docs/replayed-tables.md from the schemas: every table, field by field.

    python docs/render_tables.py

A test fails while the pages are not what this would write.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import schemas
from schemas import Column, Field, RecordType
from schemas.releases import (
    RuleDifference,
    loading_rule_differences,
    replay_rule_differences,
)

DOCS = Path(__file__).parent

HEAD = """\
<!-- Written by `make docs` from schemas/. Do not edit. -->
# Tables

What `groupscope decode INPUT... --out DIR` writes: one Parquet table per record type in
`DIR/decoded/<table>/`, and the same for lines of history that did not survive in
`DIR/diverged/<copy>/decoded/<table>/`. Where a cleaner's `.swap` files lie beside the segments
that they take the place of, `DIR/before_swaps/decoded/<table>/` holds these partitions as they
were before. Decoded tables hold what is stored: Kafka's own numbers, unconverted.
`DIR/manifest.json` says what was read, what was left out by which rule, and what the
dump cannot answer; without it, a run never finished.

`key` and `value` are structs of the record's fields: `select key.group, value.offset from
offset_commit`. A value's struct is the union of its fields over all versions: a field the version
lacks is null; a tagged field that was not written holds its default, as Kafka reads it. A field is
in all versions unless the column *in* says otherwise.
"""

REPLAYED_HEAD = """\
<!-- Written by `make docs` from schemas/. Do not edit. -->
# Tables of a replay

What `groupscope replay INPUT... --out DIR` writes as Parquet: `DIR/state/<table>/` is what the
coordinators knew at the instant asked about, `DIR/history/<table>/` how that came to be.
They hold what it means: times are UTC, ids are as Kafka prints them, a number that Kafka stores as
-1 for "none" is null. What releases do differently is at the end.
"""


def pages() -> dict[str, str]:
    """Return the pages by the name of their file."""
    return {"tables.md": decoded_page(), "replayed-tables.md": replayed_page()}


def replayed_page() -> str:
    """Return the page of state and history tables."""
    parts = [REPLAYED_HEAD]
    for kind, title in (("state", "State"), ("history", "History")):
        parts.append(f"## {title}\n")
        for name, table in schemas.tables().items():
            if table.kind == kind:
                key = ", ".join(f"`{each}`" for each in table.key)
                parts.append(f"### `{name}`\n\n{table.about} Rows differ in {key}.\n")
                parts.append(_columns(table.columns))
    parts.append("## What releases do differently\n\n| rule | since | |\n|---|---|---|")
    rules = {**replay_rule_differences(), **loading_rule_differences()}
    parts.extend(_rule(*each) for each in rules.items())
    return "\n".join(parts).rstrip() + "\n"


def _rule(name: str, difference: RuleDifference) -> str:
    values = "; ".join(f"{since} `{value}`" for since, value in difference.values)
    return f"| `{name}` | {values} | {_cell(difference.about)} |"


def decoded_page() -> str:
    """Return the page of decoded tables."""
    parts = [HEAD, *_shared()]
    for topic in schemas.INTERNAL_TOPICS:
        parts.append(f"## Of `{topic}`\n")
        types = {record.name: record for record in schemas.record_types(topic).values()}
        for record in types.values():
            if record.read == "decode":
                parts.extend(_record(record))
        parts.extend(_not_decoded(types.values()))
    parts.append("## Inside bytes\n")
    for name, embedded in schemas.all_embedded().items():
        parts.append(f"### `{name}`\n\n{embedded.about}\n\n{_fields(embedded.row.fields)}")
    return "\n".join(parts).rstrip() + "\n"


def _shared() -> Iterator[str]:
    tables = schemas.tables()
    around = schemas.table("offset_commit").columns
    yield "## Columns of every decoded table\n"
    yield _columns(around)
    for name, table in tables.items():
        if table.kind == "control":
            yield f"## `{name}`\n\n{table.about}\n"
            yield _columns(table.columns)
        elif table.kind == "data_log":
            yield f"## `{name}`\n\n{table.about} In `DIR/data_logs/{name}/`.\n"
            yield _columns(table.columns)


def _columns(columns: Iterable[Column]) -> str:
    rows = [
        f"| `{column.name}` | {_counted(column)} | {_cell(_about_column(column))} |"
        for column in columns
    ]
    return "\n".join(["| column | type | |", "|---|---|---|", *rows, ""])


def _about_column(column: Column) -> str:
    if column.closed is None or all(each in column.about for each in column.closed.values):
        return column.about
    words = ", ".join(f"`{each}`" for each in column.closed.values)
    return f"{column.about} One of {words}."


def _counted(column: Column) -> str:
    """Return the type of a column, and what it counts."""
    unit = f", {column.unit}" if column.unit else ""
    return f"{_type(column.type)}{unit}"


def _type(ddl: str) -> str:
    # The struct of key and value differs from table to table.
    return "struct" if ddl.startswith("struct<") else f"`{ddl}`"


def _record(record: RecordType) -> Iterator[str]:
    ids = " and ".join(map(str, record.ids))
    facts = [f"Kafka's {record.name}, type {ids}, value versions {record.versions}"]
    if record.layouts:
        facts.append("layouts " + " and ".join(f"`{layout}`" for layout in record.layouts))
    yield f"### `{record.table}`\n\n{record.about} ({', '.join(facts)}.)\n"
    for part, struct in (("key", record.key), ("value", record.value)):
        if struct.fields:
            yield f"`{part}`:\n\n{_fields(struct.fields)}"


def _fields(fields: Iterable[Field]) -> str:
    rows = ["| field | type | in | |", "|---|---|---|---|"]
    for depth, field in _walk(fields, 0):
        name = "&nbsp;" * 4 * depth + f"`{field.column}`"
        rows.append(f"| {name} | {_kind(field)} | {_presence(field)} | {_cell(_about(field))} |")
    return "\n".join([*rows, ""])


def _walk(fields: Iterable[Field], depth: int) -> Iterator[tuple[int, Field]]:
    for field in fields:
        yield depth, field
        yield from _walk(field.fields, depth + 1)


def _kind(field: Field) -> str:
    if field.type == "struct":
        return "array of struct" if field.is_array else "struct"
    return f"`{schemas.spark_type(field)}`"


def _about(field: Field) -> str:
    if field.embedded is None:
        return field.about
    return f"{field.about} Parsed into `{field.column}_decoded`: `{field.embedded.name}` below."


def _presence(field: Field) -> str:
    words = [] if str(field.versions) == "0+" else [str(field.versions)]
    if field.tag is not None:
        words.append(f"tag {field.tag}")
    if field.layouts:
        words.append("layout " + ", ".join(field.layouts))
    return ", ".join(words)


def _not_decoded(records: Iterable[RecordType]) -> Iterator[str]:
    rows = [
        f"| {record.name} | {', '.join(map(str, record.ids))} | {record.read} | {record.about} |"
        for record in records
        if record.read != "decode"
    ]
    if rows:
        yield "Counted in the manifest and not decoded:\n"
        yield "\n".join(["| type | id | | |", "|---|---|---|---|", *rows, ""])


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    for name, text in pages().items():
        DOCS.joinpath(name).write_text(text, encoding="utf-8")
