"""The command `replay`: what the coordinators knew at an instant."""

from __future__ import annotations

from typing import Any

import click

from jobs.cli.console import Console, pass_console, print_text
from jobs.cli.exit_codes import CANNOT_TELL, DONE
from jobs.cli.options.answer import max_undecoded_option
from jobs.cli.options.shared import (
    input_options,
    inputs_argument,
    out_option,
    output_options,
    resume_option,
    save_options,
    selection_options,
    spark_options,
    summary_format_options,
    workspace_folder,
)
from jobs.cli.options.state import (
    assume_option,
    dialect_option,
    instant_options,
    refuse_other_options,
)
from jobs.cli.settings_files import settings_options, topic_ids_option

EPILOG = """
\b
Examples:
  groupscope replay examples/kafka-4.3.1-failover --out state
  groupscope replay examples/kafka-4.3.1-failover --as-of-offset __consumer_offsets:9:200
"""


@click.command(epilog=EPILOG)
@inputs_argument
@out_option
@resume_option
@instant_options
@topic_ids_option
@settings_options
@assume_option
@dialect_option
@summary_format_options
@save_options
@selection_options
@input_options
@max_undecoded_option
@spark_options
@output_options
@pass_console
def replay(
    console: Console,
    /,
    out: str | None,
    output_format: str,
    dialect: str | None,
    **options: Any,  # noqa: ANN401
) -> int:
    """Compute what the coordinators knew at an instant.

    Writes into the workspace state/ (committed and pending offsets, groups, members,
    assignments, share partitions and their batches, topics, settings, partition leaders) and
    history/ (how they came to be). A dump is decoded first; the tables of a workspace are used
    as they are.
    """
    # Spark and Arrow are heavy: --help answers without them.
    from analytics.gaps.internal_topics import refused_partitions  # noqa: PLC0415
    from analytics.replayed.replayed_workspace import answered_instant  # noqa: PLC0415
    from analytics.tables.decoded_records import decoded_workspace  # noqa: PLC0415
    from analytics.tables.stored_tables import StoredTables  # noqa: PLC0415
    from analytics.workspace import Workspace  # noqa: PLC0415
    from jobs.cli.options.answer import is_exceeded  # noqa: PLC0415
    from jobs.spark.session import one_session  # noqa: PLC0415
    from jobs.workspaces.replayed import Replayed  # noqa: PLC0415
    from jobs.workspaces.replaying import replay_into  # noqa: PLC0415
    from jobs.workspaces.saved import OF_REPLAY, saving_of  # noqa: PLC0415
    from reports.run_summary import replay_summary  # noqa: PLC0415

    if dialect is not None:
        return _replay_dialect(console, dialect, out, output_format, options)
    limit = options.pop("max_undecoded")
    saved = {name: options.pop(name) for name in ("save_tables", "save_format", "cluster")}
    saving = saving_of(console, **saved, options=options)
    with one_session(), workspace_folder(out, console) as folder:
        if saving is not None:
            saving.check()
        result = replay_into(folder, console, **options)
        space = Workspace(folder)
        tables = StoredTables(space)
        state = Replayed(tables, decoded_workspace(space), result.manifest)
        instant = answered_instant(state)
        exceeded = is_exceeded(state.source.manifest(), limit)
        for each in refused_partitions(tables, result.manifest["replay"]["kafka_version"]):
            console.warn(each)
        if saving is not None:
            saving.save(space, saving.run(state, "replay"), OF_REPLAY)
    print_text(replay_summary(result.manifest, instant, output_format))
    return result.exit_code or (CANNOT_TELL if exceeded else DONE)


def _replay_dialect(
    console: Console, dialect: str, out: str | None, output_format: str, options: dict[str, Any]
) -> int:
    from jobs.workspaces.dialects import DIALECT_OPTIONS, dialect_answer, dialect_state  # noqa: PLC0415

    refuse_other_options(DIALECT_OPTIONS)
    wanted = {name: options[name] for name in DIALECT_OPTIONS}
    answer, code = dialect_answer(
        console, dialect_state(console, dialect=dialect, out=out, **wanted), output_format
    )
    print_text(answer)
    return code
