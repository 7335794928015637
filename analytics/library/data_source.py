"""A Spark Python data source over dumps and workspaces (docs/data-source.md).

``spark.dataSource.register(KafkaDump)``, then
``spark.read.format("kafka_dump").option("table", "groups").load(path)``.

Spark takes it to pieces: options and columns are looked at in one process, a read is planned in
another, and tasks read. None of them has a session. So what takes one to be replayed is an error
that says who has it, and this module imports what is heavy where it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.pandas.types import from_arrow_schema

from analytics.errors import InputNotRecognizedError
from analytics.library.source_options import (
    LINE,
    PREFER_COPY,
    PUSH_FILTERS,
    STRICT,
    SourceOptions,
    source_options,
)

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from analytics.dump.files.inputs import Inputs


class KafkaDump(DataSource):
    """The data source ``kafka_dump``.

    Raises:
        InputNotRecognizedError: There is no path.
        SettingRefusedError: There is no such table, column, question or option.
    """

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        self._request = source_options(options)

    @classmethod
    def name(cls) -> str:
        """Return the name to use in ``format``."""
        return "kafka_dump"

    def schema(self) -> StructType:
        """Return the table's columns, or those that ``columns`` names.

        Raises:
            GroupscopeError: The input is not what it has to be.
        """
        if not self._request.is_decoded:
            return from_arrow_schema(self._request.schema)
        return from_arrow_schema(_schema_of_logs(self._request, self._inputs()))

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 - ours is exact
        """Plan a read.

        Raises:
            GroupscopeError: The input is not what it has to be, or does not have the table, or it
                takes a session to make it.
        """
        inputs = self._inputs()
        if self._request.is_decoded and not inputs.workspaces:
            return _log_reader(self._request, inputs)
        from analytics.library.source_rows import table_reader  # noqa: PLC0415 - tasks need none

        return table_reader(self._request, inputs)

    def _inputs(self) -> Inputs:
        """Recognise what was given.

        Raises:
            InputNotRecognizedError: It is nothing known, or nothing that is read here.
            InputUnreadableError: The system refuses to read it, or a workspace is unfinished.
        """
        from analytics.dump.files.inputs import recognize  # noqa: PLC0415 - tasks need none of it

        inputs = recognize(self._request.paths)
        _check_inputs(inputs)
        return inputs


def _check_inputs(inputs: Inputs) -> None:
    """Refuse what is there and is not read here: no rows would look as if there were none.

    Raises:
        InputNotRecognizedError: There are archived rows, or a workspace beside something else.
    """
    if inputs.raw_rows:
        raise InputNotRecognizedError(
            f"{inputs.raw_rows[0].argument}: archived rows, which kafka_dump does not read: "
            f"replay them with open_dump(...).replay(spark), or decode them into a workspace and "
            f"load that"
        )
    if inputs.workspaces and len(inputs.arguments) > 1:
        raise InputNotRecognizedError(
            f"{inputs.workspaces[0]} is a workspace: give it as the only input"
        )


def _schema_of_logs(request: SourceOptions, inputs: Inputs) -> pa.Schema:
    """Return the columns of a decoded table; what rows of logs always have is not nullable.

    Workspaces may be of archived rows, which lack all that a batch would say.
    """
    if inputs.workspaces:
        return request.schema
    from analytics.decode.records.tables import (  # noqa: PLC0415 - tasks need none of it
        schema_of_dump,
        table_schema,
    )

    whole = schema_of_dump(table_schema(request.table))
    return pa.schema([whole.field(each) for each in request.schema.names])


def _log_reader(request: SourceOptions, inputs: Inputs) -> DataSourceReader:
    """Plan the slices of a dump's logs that tasks decode.

    Raises:
        InputUnreadableError: The system refuses to read them.
    """
    from analytics.decode.elections import known_leaders  # noqa: PLC0415 - tasks need none of it
    from analytics.decode.slice_reader import (  # noqa: PLC0415
        FilteringSliceReader,
        SliceReader,
    )
    from analytics.dump.copies.plan import PlanOptions, plan  # noqa: PLC0415
    from analytics.dump.copies.slices import Edges  # noqa: PLC0415

    options = PlanOptions(
        prefer_copy=request.values.get(PREFER_COPY),
        edges=Edges(strict_high_watermark=request.flag(STRICT)),
    )
    line = request.values.get(LINE, "")
    slices = [each for each in plan(inputs, options, known_leaders).slices if each.line == line]
    kind = FilteringSliceReader if request.flag(PUSH_FILTERS) else SliceReader
    return kind(request.table, _schema_of_logs(request, inputs), slices)
