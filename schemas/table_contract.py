"""The contract of a table: what every stage that reads or writes it relies on."""

from __future__ import annotations

from dataclasses import dataclass

from schemas.errors import SchemaError
from schemas.names import SNAKE_CASE, refuse_duplicates

TABLE_KINDS = frozenset({"decoded", "data_log", "state", "history", "evaluation", "control"})


@dataclass(frozen=True)
class Column:
    """A column of a table; `type` is Spark DDL ("array<struct<path:string,tag:int>>")."""

    name: str
    type: str
    nullable: bool
    about: str

    def __post_init__(self) -> None:
        """Refuse a column without a proper name, type or meaning.

        Raises:
            SchemaError: One of the three is missing or malformed.
        """
        if not SNAKE_CASE.fullmatch(self.name):
            raise SchemaError("a column's name is written in snake_case", field=self.name)
        if not self.type.strip() or not self.about.strip():
            raise SchemaError("has no type or says nothing about itself", field=self.name)


@dataclass(frozen=True)
class Table:
    """The contract of a table: its columns in order, and the columns that tell rows apart."""

    name: str
    kind: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    about: str

    def __post_init__(self) -> None:
        """Refuse a table that could not be written.

        Raises:
            SchemaError: Columns collide, or the key names a column that is not there.
        """
        if not SNAKE_CASE.fullmatch(self.name):
            raise SchemaError(f'name "{self.name}" is not snake_case')
        if self.kind not in TABLE_KINDS:
            raise SchemaError(f'unknown kind "{self.kind}"')
        if not self.columns or not self.about.strip():
            raise SchemaError("has no columns or says nothing about itself")
        names = [column.name for column in self.columns]
        refuse_duplicates("column", names)
        refuse_duplicates("key column", self.key)
        for name in self.key:
            if name not in names:
                raise SchemaError(f'key names "{name}", which is no column')

    def column(self, name: str) -> Column:
        """Return the column of that name.

        Raises:
            KeyError: The table has no such column.
        """
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)

    def ddl(self, *, not_null: bool = True) -> str:
        """Return the columns as Spark DDL, with NOT NULL where a null would break the contract.

        Args:
            not_null: False leaves NOT NULL out, as files read by Spark never promise it.
        """
        return ", ".join(
            f"`{column.name}` {column.type}"
            + (" NOT NULL" if not_null and not column.nullable else "")
            for column in self.columns
        )
