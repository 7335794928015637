"""`--save-tables CATALOG.SCHEMA`: the tables of a workspace, saved to a catalog of Spark's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from analytics.decode.selection import Selection
from analytics.library.saved_runs import run_of
from analytics.library.saved_tables import Target, table_frame
from analytics.tables.stored_tables import KINDS, StoredTables, folder_of
from jobs.spark.session import spark_session
from reports.plain_text import count
from schemas import table, tables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from analytics.library.saved_runs import Run
    from analytics.replayed.replayed_workspace import ReplayedWorkspace
    from analytics.workspace import Workspace
    from jobs.cli.console import Console


@dataclass(frozen=True)
class Saving:
    """Where tables go, as `save_options` and `spark_options` declare it.

    Attributes:
        console: Where it is told what is done.
        schema: `--save-tables`.
        table_format: `--save-format`.
        cluster: `--cluster`; None for the id that the dump has.
        filters: The groups and topics that were chosen, by option.
        master: Of Spark.
        conf: Of Spark.
    """

    console: Console
    schema: str
    table_format: str
    cluster: str | None
    filters: Mapping[str, Sequence[str]] = field(default_factory=dict)
    master: str | None = None
    conf: Mapping[str, str] | None = None

    @contextmanager
    def target(self) -> Iterator[Target]:
        """Hand over the schema; refused where it is none, so that no work is done in vain.

        Raises:
            GroupscopeError: There is no such schema, or Spark did not start.
        """
        with spark_session(self.console, master=self.master, conf=self.conf, small=True) as session:
            target = Target(session, self.schema, self.table_format)
            target.check()
            yield target

    def check(self) -> None:
        """Refuse what is no schema, or cannot be saved to, before any work is done for it.

        Raises:
            GroupscopeError: As `target`, or the session cannot save tables of the format.
        """
        with self.target() as target:
            target.try_format()

    def run(
        self,
        state: ReplayedWorkspace,
        question: str,
        settings: Any = None,  # noqa: ANN401 - of each question its own
        *,
        is_redacted: bool = False,
    ) -> Run:
        """Return the run that tables are saved of.

        Args:
            state: The workspace.
            question: The command.
            settings: How it was asked.
            is_redacted: Names are withheld.

        Raises:
            SettingRefusedError: It is not known of which cluster it is.
        """
        return run_of(
            state,
            question,
            settings,
            cluster=self.cluster,
            chosen=self.filters,
            is_redacted=is_redacted,
        )

    def save(self, space: Workspace, run: Run, kinds: Sequence[str]) -> None:
        """Save all tables of some kinds that the workspace has.

        Raises:
            OutputRefusedError: A table there has other columns, or the session lacks the format.
        """
        stored = StoredTables(space)
        names = [each.name for each in tables().values() if each.kind in kinds]
        names = [name for name in names if stored.has(name)]
        with self.target() as target:
            self.console.say(f"saving {count(len(names), 'table', 'tables')} to {self.schema}")
            frames = {
                name: table_frame(target.spark, space, folder_of(name), table(name))
                for name in names
            }
            target.save(run, frames, {name: stored.count(name) for name in names})
        self.console.say(
            f"saved to {self.schema} as {run.run_id} of cluster {run.cluster}, "
            f"{count(len(names), 'table', 'tables')}"
        )


OF_REPLAY: Final = ("state", "history")
OF_AUDIT: Final = tuple(KINDS)


def saving_of(
    console: Console,
    *,
    save_tables: str | None,
    save_format: str,
    cluster: str | None,
    options: Mapping[str, Any],
) -> Saving | None:
    """Return where tables are saved to; None where nobody asked for that.

    Args:
        console: Where it is told what is done.
        save_tables: As the option has it.
        save_format: Likewise.
        cluster: Likewise.
        options: As `spark_options` and `group_options` declare them.
    """
    if save_tables is None:
        return None
    return Saving(
        console,
        save_tables,
        save_format,
        cluster,
        Selection.of_options(options).options,
        options.get("master"),
        options.get("conf"),
    )
