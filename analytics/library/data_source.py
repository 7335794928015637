"""A Spark Python data source over dumps and workspaces (docs/data-source.md).

``spark.dataSource.register(KafkaDump)``, then
``spark.read.format("kafka_dump").option("table", "groups").load(path)``.

Spark takes it to pieces: options and columns are looked at in one process, a read is planned in
another, and tasks read. None of them has a session. So what takes one to be replayed is an error
that says who has it, and this module imports what is heavy where it is used.

Rows that the data source `kafka_dump` has beside those of logs: of workspaces, and made anew.

What a workspace holds is read by tasks from its files. What it does not hold, and tables of a dump,
are replayed and asked where the read is planned, which has no session: as `open_dump` does it for a
small dump. Their rows are handed to the tasks, so that no machine has to see a folder, and the
driver alone the input.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.pandas.types import from_arrow_schema

from analytics.contracts import table_of_frame
from analytics.decode.workload import is_small_workspace
from analytics.errors import (
    EnvironmentUnfitError,
    InputNotRecognizedError,
    SettingRefusedError,
    WorkspaceError,
)
from analytics.library.dump import open_dump
from analytics.library.source_options import (
    ASSUME,
    BESIDE_THE_DUMP,
    GAPS,
    KAFKA_VERSION,
    LINE,
    OF_DECODING,
    OF_REPLAY,
    PREFER_COPY,
    PUSH_FILTERS,
    QUESTION,
    STATES_AROUND,
    STRICT,
    WORK,
    SourceOptions,
    questions_with,
    source_options,
)
from analytics.library.state import State
from analytics.questions.question import question
from analytics.replay.dump.choices import assumed_in
from analytics.replay.log.rules import named_release
from analytics.replayed.replayed_workspace import AUDIT, replayed_instant
from analytics.tables.decoded_records import (
    decoded_workspace,
    refuse_without_records,
    refuse_without_tables,
)
from analytics.tables.stored_tables import KINDS
from analytics.tables.table_readers import FilesReader, RowsReader
from analytics.workspace import DATA_LOGS, DECODED, DIVERGED, Workspace
from schemas import table, tables

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceReader
    from pyspark.sql.types import StructType

    from analytics.dump.files.inputs import Inputs
    from analytics.library.state import Answered
    from schemas.manifest import Manifest


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
    from analytics.decode.tables import schema_of_dump, table_schema  # noqa: PLC0415 - tasks need none of it

    whole = schema_of_dump(table_schema(request.table))
    return pa.schema([whole.field(each) for each in request.schema.names])


def _log_reader(request: SourceOptions, inputs: Inputs) -> DataSourceReader:
    """Plan the slices of a dump's logs that tasks decode.

    Raises:
        InputUnreadableError: The system refuses to read them.
    """
    from analytics.decode.elections import known_leaders  # noqa: PLC0415 - tasks need none of it
    from analytics.dump.copies.plan import PlanOptions, plan  # noqa: PLC0415
    from analytics.dump.copies.slices import Edges  # noqa: PLC0415
    from analytics.tables.table_readers import FilteringSliceReader, SliceReader  # noqa: PLC0415

    options = PlanOptions(
        prefer_copy=request.values.get(PREFER_COPY),
        edges=Edges(strict_high_watermark=request.flag(STRICT)),
    )
    line = request.values.get(LINE, "")
    slices = [each for each in plan(inputs, options, known_leaders).slices if each.line == line]
    kind = FilteringSliceReader if request.flag(PUSH_FILTERS) else SliceReader
    return kind(request.table, _schema_of_logs(request, inputs), slices)


MOST_BYTES: Final = 256 << 20
"""So many bytes of rows are handed to tasks: they pass through the driver."""
_PARQUET: Final = ".parquet"
_DATA_LOG: Final = "data_log"
_FOLDERS: Final = {**KINDS, _DATA_LOG: DATA_LOGS}


def table_reader(request: SourceOptions, inputs: Inputs) -> DataSourceReader:
    """Plan the read of a table of a workspace, or of one that is replayed or request.

    Args:
        request: The table, and what of it.
        inputs: A workspace; or a dump, unless the table is one of decoded records.

    Raises:
        GroupscopeError: The workspace is not what it has to be, or does not have the table, or a
            session is needed to make it.
    """
    if not inputs.workspaces:
        return RowsReader(_replayed_or_answered(request, None))
    space = Workspace(inputs.workspaces[0])
    if request.is_decoded:
        return FilesReader(request.schema, _decoded_files(request, space))
    manifest = space.manifest()
    is_answer = not request.is_asked and _is_usable(manifest, request.table)
    files = _files(space, _folder(request.table)) if is_answer else []
    if files:
        return FilesReader(request.schema, files)
    if table(request.table).kind == _DATA_LOG:
        raise _lacking(request, space, "decode the dump's data topics with it")
    return RowsReader(_replayed_or_answered(request, manifest))


# Tables that a workspace holds.


def _is_usable(manifest: Manifest, name: str) -> bool:
    """Whether what is kept of a table is all of it.

    An answer that some groups or other settings were asked for is not: it is asked again, where
    options can. What an audit keeps was asked as the audit was.
    """
    kept = manifest.get("evaluations", {}).get(name)
    if kept is None or kept.get("question") == AUDIT or not questions_with(name):
        return True
    return kept.get("is_whole", False)


def _folder(name: str) -> str:
    return f"{_FOLDERS[table(name).kind]}/{name}"


def _decoded_files(request: SourceOptions, space: Workspace) -> list[tuple[str, int]]:
    """Return the files of a decoded table, and how many bytes each has.

    Raises:
        CannotTellError: The workspace was redacted, or is of a dialect.
        SettingRefusedError: An option is of logs, and these were decoded already.
        WorkspaceError: It has no decoded records, or the line is none of its lines.
    """
    for each in OF_DECODING:
        if each in request.values:
            raise SettingRefusedError(
                f"option {each} says how logs are read, and those of {space.location} are decoded"
            )
    refuse_without_records(space)
    source = decoded_workspace(space)
    refuse_without_tables(source)
    line = request.values.get(LINE, "")
    folder = f"{DIVERGED}/{line}/{DECODED}" if line else DECODED
    files = _files(source, f"{folder}/{request.table}")
    if not files:
        raise _lacking(request, source, "decode the dump again")
    return files


def _files(space: Workspace, folder: str) -> list[tuple[str, int]]:
    return [
        (space.table(name), size)
        for name, size in sorted(space.sizes_in([folder]).items())
        if name.endswith(_PARQUET)
    ]


def _lacking(request: SourceOptions, space: Workspace, how: str) -> WorkspaceError:
    """Return what is said of a table that a workspace does not hold."""
    line = request.values.get(LINE, "")
    of_line = f" of line {line!r}" if line else ""
    return WorkspaceError(
        f"{space.location} has no table {request.table}{of_line}: {how}; it has {_held(space)}"
    )


def _held(space: Workspace) -> str:
    """Return which tables a workspace holds, in words."""
    names = {name.rsplit("/", 2)[-2] for name in space.sizes_in(_FOLDERS.values())}
    held = [each for each in tables() if each in names]
    decoded = ["decoded tables"] if space.sizes_in([DECODED]) else []
    lines = sorted({name.split("/")[1] for name in space.sizes_in([DIVERGED])})
    of_lines = [f"decoded tables of line {each!r}" for each in lines]
    return ", ".join((*decoded, *of_lines, *held)) or "none"


# Tables that are made where the read is planned.


def _replayed_or_answered(request: SourceOptions, manifest: Manifest | None) -> pa.Table:
    """Return rows of a table that is replayed, or of the answer to a question.

    Args:
        request: The table, and what of it.
        manifest: Of the workspace that is asked; None for a dump.

    Raises:
        GroupscopeError: As `table_reader`.
    """
    _check_makable(request)
    with _state(request, manifest) as state:
        if request.is_of_state:
            rows = state.replayed.tables.read(request.table, request.schema.names)
        else:
            rows = _of_answer(request, _answered(request, state)).select(request.schema.names)
    if rows.nbytes > MOST_BYTES:
        raise EnvironmentUnfitError(
            f"table {request.table} has {rows.num_rows:,} rows, too many to be handed to tasks: "
            f"{_instead(request)}"
        )
    return rows.cast(request.schema)


def _check_makable(request: SourceOptions) -> None:
    """Refuse a table that is neither replayed nor the answer to one question.

    Raises:
        InputNotRecognizedError: A command writes it.
        SettingRefusedError: Several questions have it, and none is named; or no option can ask.
    """
    if request.is_of_state or request.question is not None:
        return
    name = request.table
    if table(name).kind == _DATA_LOG:
        raise InputNotRecognizedError(
            f"table {name} is made when a dump is decoded: load a workspace of it"
        )
    possible = [each.name for each in questions_with(name)]
    if possible:
        raise SettingRefusedError(
            f"table {name} is of several questions ({', '.join(possible)}): option {QUESTION} says "
            f"which is asked"
        )
    beside = [each for each in BESIDE_THE_DUMP if name in question(each).tables]
    if beside:
        raise SettingRefusedError(
            f"table {name} is of {beside[0]}, which no option can ask: in Python, "
            f"open_dump(...).replay().{beside[0]}({BESIDE_THE_DUMP[beside[0]]}=...) has it; a "
            f"workspace in which it was kept has it, too"
        )
    raise InputNotRecognizedError(
        f"table {name} is no answer to a question: load a workspace in which an audit, or a "
        f"replay of a dialect, kept it"
    )


@contextmanager
def _state(request: SourceOptions, manifest: Manifest | None) -> Iterator[State]:
    """Hand over the state that is asked about.

    A workspace that was replayed is asked as it is; where an option names another release, or what
    is assumed, it is replayed at its own instant, and so it is where it lacks the table.

    Raises:
        EnvironmentUnfitError: It takes a session to replay it, or to ask it.
        GroupscopeError: As `Dump.replay`.
    """
    replay = None if manifest is None else manifest.get("replay")
    if manifest is not None:
        space = Workspace(request.paths[0])
        refuse_without_records(space)
        if not is_small_workspace(manifest):
            raise _too_large(request, space)
        if replay is not None and not _is_replayed_anew(request):
            yield State(None, space, (), named_release(manifest))
            return
    instant: dict[str, Any] = {"as_of": request.as_of}
    if replay is not None and request.as_of is None and not _is_of_end(request):
        own = replayed_instant(replay["as_of"])
        instant = {"as_of": own.timestamp_ms, "ends": own.offsets}
    with open_dump(*request.paths, work=_work(request)) as dump:
        try:
            state = dump.replay(
                **instant,
                kafka_version=request.values.get(KAFKA_VERSION),
                assume=request.names(ASSUME) or ([] if manifest is None else assumed_in(manifest)),
                tables=_needs(request),
            )
        except EnvironmentUnfitError:
            raise _too_large(request) from None
        yield state


def _is_replayed_anew(request: SourceOptions) -> bool:
    """Return whether a workspace that was replayed is no answer as it is."""
    is_other = any(each in request.values for each in OF_REPLAY)
    return is_other or request.is_of_state or _is_of_end(request)


def _is_of_end(request: SourceOptions) -> bool:
    """Return whether a question is asked at the end of a dump, and replays it around an instant."""
    return (
        request.question is not None and STATES_AROUND in question(request.question).setting_names
    )


def _needs(request: SourceOptions) -> Sequence[str]:
    """Return the tables of state and history that are replayed.

    Raises:
        SettingRefusedError: A value is none of its setting's.
    """
    if request.question is None:
        return [request.table]
    found = question(request.question)
    return found.needs_of(found.settings_from(request.settings))


def _work(request: SourceOptions) -> str | None:
    """Return the folder for tables while they are needed.

    Raises:
        SettingRefusedError: It is no folder.
    """
    work = request.values.get(WORK)
    if work is not None and not Path(work).is_dir():
        raise SettingRefusedError(f"option {WORK} is {work!r}, which is no folder")
    return work


def _too_large(request: SourceOptions, space: Workspace | None = None) -> EnvironmentUnfitError:
    """Return what is said where a session is needed: of a dump, or of a workspace that lacks it."""
    held = "" if space is None else f"; the workspace has {_held(space)}"
    return EnvironmentUnfitError(
        f"{request.paths[0]} is too large to make table {request.table} of it without a session: "
        f"{_instead(request)}{held}"
    )


def _answered(request: SourceOptions, state: State) -> Answered:
    """Ask the question.

    Raises:
        GroupscopeError: As `State.ask`; it says which question.
    """
    name = str(request.question)
    try:
        return state.ask(name, **request.settings)
    except SettingRefusedError as error:
        raise SettingRefusedError(f"{name}, for table {request.table}: {error}") from error


def _of_answer(request: SourceOptions, answer: Answered) -> pa.Table:
    """Return a table of an answer, or what it cannot tell.

    Raises:
        SettingRefusedError: With these settings the question does not answer with the table.
    """
    if request.table == GAPS:
        return table_of_frame(GAPS, answer.gaps)
    if request.table not in answer.tables:
        raise SettingRefusedError(
            f"{answer.question} does not answer with table {request.table} as it was asked; it has "
            f"{', '.join((*answer.tables, GAPS))}"
        )
    return answer.to_arrow(request.table)


def _instead(request: SourceOptions) -> str:
    """Return what makes a table where this cannot be done without a session."""
    if request.is_of_state:
        return (
            "open_dump(...).replay(spark) has it, and so has a workspace that groupscope replay "
            "wrote (--out)"
        )
    return (
        f"open_dump(...).replay(spark).{request.question}() has it, and so has a workspace in "
        f"which a command kept it (--out)"
    )
