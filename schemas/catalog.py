"""All schema files of records and tables, loaded once each and held against each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from types import MappingProxyType
from typing import Any

from msgspec import UNSET, UnsetType, field

from schemas.fields import ALL_VERSIONS, NO_VERSIONS
from schemas.model import (
    Column,
    Default,
    Embedded,
    EmbeddedUse,
    Field,
    RecordType,
    Sections,
    Struct,
    Table,
    VersionRange,
    closed_list,
)
from schemas.names import INTERNAL_TOPICS
from schemas.reading import (
    Explained,
    SchemaError,
    Shape,
    document,
    documents,
    is_there,
    load,
    read_as,
)
from schemas.shown import ALWAYS, MAIN, PAGE, ShownColumn, View, head_of, head_on_page

# Record types that no release of Kafka has.
#
# Those of its designs are read on request only; those of another broker show that it wrote one.

CHECKPOINT_DELTA = "checkpoint-delta"
"""Share state as control records of data partitions: an early text of KIP-932."""
KIP_932_TEXT = "kip-932-text"
"""Share state in `__share_group_state` as a late text of KIP-932 has it."""

REDPANDA = "redpanda"
"""What Redpanda writes into `__consumer_offsets` and Kafka does not."""


@cache
def dialect_types(dialect: str) -> Mapping[str, RecordType]:
    """Return the record types of a dialect by the name of their file ("share_delta").

    Raises:
        SchemaError: A file is wrong.
    """
    return MappingProxyType(
        {
            stem: parse_record_type(content, topic=dialect, table=stem, file=file)
            for stem, file, content in documents(f"dialects/{dialect}")
        }
    )


def broken_chain_words() -> Mapping[str, str]:
    """Return why a record of a chain is not applied: each word and what it means."""
    return _words().broken


def odd_chain_words() -> Mapping[str, str]:
    """Return what is odd about a record that is applied: each word and what it means."""
    return _words().odd


def reading_words() -> Mapping[str, str]:
    """Return why a record is not applied by the late text: each word and what it means."""
    return _words().readings


class _Words(Explained, frozen=True):
    broken: Mapping[str, str]
    odd: Mapping[str, str]
    readings: Mapping[str, str]


@cache
def _words() -> _Words:
    return load(_Words, "dialects/words.json")


class _EmbeddedUse(Shape, frozen=True):
    name: str = field(name="as")
    when: Mapping[str, str] = {}

    def __post_init__(self) -> None:
        if len(self.when) > 1:
            raise ValueError('"when" names one field and the string it must hold')


class _Field(Explained, frozen=True, kw_only=True, rename="camel"):
    name: str
    type: str
    fields: tuple[_Field, ...] = ()
    versions: str | None = None
    nullable: str | None = None
    default: int | str | bool | UnsetType | None = UNSET
    tag: int | None = None
    layouts: tuple[str, ...] = ()
    type_in: Mapping[str, str] = {}
    embedded: _EmbeddedUse | None = None
    withheld_by: str | None = None


class _RecordType(Explained, frozen=True, kw_only=True):
    name: str
    ids: tuple[int, ...]
    versions: str
    flexible: str
    framing: str = "coordinator"
    read: str = "decode"
    layouts: tuple[str, ...] = ()
    key: tuple[_Field, ...] = ()
    value: tuple[_Field, ...] = ()


class _Embedded(Explained, frozen=True, kw_only=True, rename="camel"):
    versions: str
    framing: str
    fields: tuple[_Field, ...]
    lenient_tail: bool = False
    may_end_early: bool = False


class _Column(Explained, frozen=True, kw_only=True):
    name: str
    type: str
    nullable: bool = True
    values: tuple[str, ...] | Sections | UnsetType = UNSET
    unit: str | None = None
    bound: str | None = None
    head: str | None = None
    rank: int = ALWAYS


class _ViewColumn(Shape, frozen=True, kw_only=True):
    name: str
    head: str | None = None
    rank: int | None = None
    sources: tuple[str, ...] = field(name="from", default=())
    form: str | None = field(name="as", default=None)


class _Table(Explained, frozen=True, kw_only=True):
    kind: str
    columns: tuple[_Column, ...]
    key: tuple[str, ...] = ()
    main_view: tuple[str | _ViewColumn, ...] | None = field(name="shown", default=None)
    views: dict[str, tuple[str | _ViewColumn, ...]] = field(default_factory=dict)


def parse_record_type(content: object, *, topic: str, table: str, file: str) -> RecordType:
    """Read the record type of one file.

    Args:
        content: The parsed JSON.
        topic: The internal topic, after which the file's folder is named.
        table: The decoded table, after which the file is named.
        file: The file's name, for errors.

    Raises:
        SchemaError: The document makes no sense; it names the file and the field.
    """
    record = read_as(_RecordType, content, file)
    with _naming_file(file):
        return RecordType(
            ids=record.ids,
            name=record.name,
            table=table,
            topic=topic,
            framing=record.framing,
            read=record.read,
            key=_struct("key", record.key),
            value=_struct("value", record.value),
            versions=VersionRange.parse(record.versions),
            flexible=VersionRange.parse(record.flexible),
            layouts=record.layouts,
            about=record.about,
        )


def parse_embedded(content: object, *, name: str, file: str) -> Embedded:
    """Read the embedded message of one file; arguments and errors as in `parse_record_type`."""
    message = read_as(_Embedded, content, file)
    with _naming_file(file):
        return Embedded(
            name=name,
            struct=_struct("fields", message.fields),
            versions=VersionRange.parse(message.versions),
            framing=message.framing,
            lenient_tail=message.lenient_tail,
            about=message.about,
            may_end_early=message.may_end_early,
        )


def parse_table(content: object, *, name: str, file: str) -> Table:
    """Read the table contract of one file; arguments and errors as in `parse_record_type`."""
    table = read_as(_Table, content, file)
    with _naming_file(file):
        columns = tuple(_column(each) for each in table.columns)
        by_name = {each.name: each for each in columns}
        views = {**({} if table.main_view is None else {MAIN: table.main_view}), **table.views}
        return Table(
            name=name,
            kind=table.kind,
            columns=columns,
            key=table.key,
            about=table.about,
            views=tuple(
                View(view, tuple(_view_column(each, by_name, view) for each in selection))
                for view, selection in views.items()
            ),
        )


def _column(column: _Column) -> Column:
    return Column(
        name=column.name,
        type=column.type,
        nullable=column.nullable,
        about=column.about,
        closed=None if column.values is UNSET else closed_list(column.values),
        unit=column.unit,
        bound=column.bound,
        head=column.head,
        rank=column.rank,
    )


def _view_column(entry: str | _ViewColumn, columns: Mapping[str, Column], view: str) -> ShownColumn:
    """Return a column of a view: its name, or an object that says what its column does not."""
    given = _ViewColumn(name=entry) if isinstance(entry, str) else entry
    column = columns.get(given.name)
    is_page = view.startswith(PAGE)
    head = (column and column.head) or head_of(given.name)
    # A column that a report makes has no type to tell how its cells are made: it has to say so.
    form = column.form_on_page if column and is_page else None
    rank = column.rank if column and not is_page else ALWAYS
    return ShownColumn(
        name=given.name,
        head=(head_on_page(given.name) if is_page else head) if given.head is None else given.head,
        rank=rank if given.rank is None else given.rank,
        sources=given.sources,
        form=form if given.form is None else given.form,
        bound=column.bound if column and is_page else None,
    )


def _struct(name: str, fields: tuple[_Field, ...]) -> Struct:
    with _naming_field(name):
        return Struct(tuple(_field(each) for each in fields))


def _field(item: _Field) -> Field:
    with _naming_field(item.name):
        nullable = _versions(item.nullable, NO_VERSIONS)
        arguments: dict[str, Any] = {
            "fields": tuple(_field(each) for each in item.fields),
            "versions": _versions(item.versions, ALL_VERSIONS),
            "nullable": nullable,
            "default": _default(item, nullable),
            "tag": item.tag,
            "layouts": item.layouts,
            "type_in": item.type_in,
            "embedded": None if item.embedded is None else _embedded_use(item.embedded),
            "withheld_by": item.withheld_by,
        }
    is_array = item.type.startswith("[]")
    return Field(
        name=item.name,
        type=item.type.removeprefix("[]"),
        is_array=is_array,
        about=item.about,
        **arguments,
    )


def _default(item: _Field, nullable: VersionRange) -> Default:
    if item.default is not UNSET:
        if item.default is None and not nullable:
            raise SchemaError("defaults to null but is never null")
        return item.default
    # What Kafka takes for a nullable field without a default is empty, not null. A string can say
    # so; the others cannot, so a tagged one, whose default is ever used, has to be explicit.
    if nullable and item.type == "string":
        return ""
    if nullable and item.tag is not None:
        raise SchemaError("a tagged field that may be null says what its default is")
    return None


def _embedded_use(use: _EmbeddedUse) -> EmbeddedUse:
    for name, value in use.when.items():
        return EmbeddedUse(use.name, when_field=name, when_value=value)
    return EmbeddedUse(use.name)


def _versions(text: str | None, otherwise: VersionRange) -> VersionRange:
    return otherwise if text is None else VersionRange.parse(text)


@contextmanager
def _naming_field(name: str) -> Iterator[None]:
    try:
        yield
    except SchemaError as error:
        raise error.inside(name) from None


@contextmanager
def _naming_file(file: str) -> Iterator[None]:
    try:
        yield
    except SchemaError as error:
        raise error.in_file(file) from None


DECODED_TEMPLATE = "decoded_record"
"""The table file that holds the columns which all decoded tables share."""


@cache
def record_types(topic: str) -> Mapping[int, RecordType]:
    """Return the record types of an internal topic by id; empty for any other topic.

    Raises:
        SchemaError: A file is wrong, or two files claim one id.
    """
    if topic not in INTERNAL_TOPICS:
        return MappingProxyType({})
    by_id: dict[int, RecordType] = {}
    for stem, file, content in documents(f"records/{topic}"):
        record_type = parse_record_type(content, topic=topic, table=stem, file=file)
        _check_embedded(record_type, file)
        for number in record_type.ids:
            if number in by_id:
                raise SchemaError(f"id {number} is also {by_id[number].name}", file=file)
            by_id[number] = record_type
    return MappingProxyType(dict(sorted(by_id.items())))


@cache
def all_record_types() -> Mapping[str, RecordType]:
    """Return every record type of every internal topic by Kafka's name, by topic and then id.

    Raises:
        SchemaError: A file is wrong, or two files share a name.
    """
    by_name: dict[str, RecordType] = {}
    for topic in INTERNAL_TOPICS:
        for record_type in record_types(topic).values():
            if by_name.setdefault(record_type.name, record_type) is not record_type:
                raise SchemaError(f"{record_type.name} is in two topics", file=f"records/{topic}")
    return MappingProxyType(by_name)


@cache
def embedded(name: str) -> Embedded:
    """Return the embedded message of that name ("consumer_protocol_subscription").

    Raises:
        KeyError: There is none.
        SchemaError: Its file is wrong.
    """
    file = f"embedded/{name}.json"
    if not is_there(file):
        raise KeyError(name)
    return parse_embedded(document(file), name=name, file=file)


@cache
def all_embedded() -> Mapping[str, Embedded]:
    """Return every embedded message by name.

    Raises:
        SchemaError: A file is wrong.
    """
    return MappingProxyType({stem: embedded(stem) for stem, _, _ in documents("embedded")})


@cache
def written_tables() -> Mapping[str, Table]:
    """Return the table contracts that have a file of their own, the shared template included.

    Raises:
        SchemaError: A file is wrong.
    """
    return MappingProxyType(
        {
            stem: parse_table(content, name=stem, file=file)
            for stem, file, content in documents("tables")
        }
    )


def _check_embedded(record_type: RecordType, file: str) -> None:
    for path, each in record_type.value.walk("value"):
        if each.embedded is None:
            continue
        try:
            embedded(each.embedded.name)
        except KeyError:
            raise SchemaError(
                f'embeds "{each.embedded.name}", which has no file', field=path, file=file
            ) from None
