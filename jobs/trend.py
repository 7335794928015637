"""What `trend` does: open runs, compare them, print the answer, write the page and its tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from analytics.engine.part_runs import PartRunner
from analytics.errors import OutputRefusedError
from analytics.gaps.gap import gap_documents
from analytics.library.audited_runs import audited_run, saved_audits
from analytics.library.saved_tables import Target
from analytics.locations import absolute_location, join
from analytics.questions.trend.question import TrendSettings, trend
from analytics.tables.stored_tables import write_parquet
from jobs.asking import report_answer
from jobs.cli.console import command_line, print_text
from jobs.cli.exit_codes import CANNOT_TELL, DONE
from jobs.cli.written_text import write_pieces, write_text
from jobs.spark.session import spark_session
from reports.answers.trend import sections_for_programs, trend_text
from reports.page.trend import html_of, trend_page
from reports.row_formats import rendered

if TYPE_CHECKING:
    from analytics.questions.question import Answer
    from analytics.questions.trend.runs import AuditedRun
    from jobs.cli.console import Console
    from reports.layout.output_format import OutputFormat


@dataclass(frozen=True)
class TrendOptions:
    """The options of the command.

    Attributes:
        runs: Workspaces.
        cluster: Of which cluster runs are whose dumps do not say so.
        disk_size: Bytes of the disk of each broker.
        out: Where the page and tables are written; None is nowhere.
        from_tables: The schema of a catalog that audits were saved to, too; None is none.
        master: Of Spark.
        conf: Of Spark.
    """

    runs: tuple[str, ...]
    cluster: str | None
    disk_size: int | None
    out: str | None
    from_tables: str | None
    master: str | None
    conf: Mapping[str, str]


def trend_of(console: Console, options: TrendOptions, output_format: OutputFormat) -> int:
    """Print the answer, and return the exit code.

    Raises:
        GroupscopeError: A RUN is no audited workspace of this version, or there is no such schema.
    """
    with _runs(console, options) as runs, TemporaryDirectory(prefix="groupscope-") as parts:
        answer = trend(runs, TrendSettings(options.disk_size), PartRunner(parts))
        report_answer(console, answer)
        code = CANNOT_TELL if answer.doubts else DONE
        if options.out is not None:
            _write(options.out, answer, code)
            console.say(f"trend: {join(options.out, PAGE)}")
        # What is printed is read as long as its parts are there.
        print_text(trend_text(answer.long_tables, answer.figures, output_format, _metadata(answer)))
    return code


@contextmanager
def _runs(console: Console, options: TrendOptions) -> Iterator[list[AuditedRun]]:
    """Hand over the runs, those of a catalog as long as its session is there.

    Raises:
        GroupscopeError: As `trend_of`.
    """
    locations = dict.fromkeys(map(absolute_location, options.runs))
    runs = [audited_run(each, options.cluster) for each in locations]
    if options.from_tables is None:
        yield runs
        return
    with spark_session(console, master=options.master, conf=options.conf, small=True) as session:
        saved = saved_audits(Target(session, options.from_tables))
        if not saved:
            console.warn(f"{options.from_tables}: no audit was saved there")
        yield [*runs, *saved]


PAGE: Final = "trend.html"
LINES: Final = "trend.json"
_TABLES: Final = "tables"


def _write(out: str, answer: Answer, code: int) -> None:
    """Write the page, its rows as JSON, and its tables as Parquet.

    Raises:
        OutputRefusedError: A file cannot be written.
    """
    try:
        for name, rows in answer.long_tables.items():
            write_parquet(rows, join(out, f"{_TABLES}/{name}.parquet"))
        write_pieces(
            join(out, LINES),
            rendered(sections_for_programs(answer.long_tables), "json", _metadata(answer)),
        )
        page = trend_page(
            answer.long_tables, answer.figures, answer.cannot_tell, command_line(), code
        )
        write_text(join(out, PAGE), html_of(page))
    except OSError as error:
        why = error.strerror or error
        raise OutputRefusedError(f"{out} cannot be written: {why}") from error


def _metadata(answer: Answer) -> dict[str, Any]:
    return {
        "input": answer.rows("trend_runs").whole()["run"].to_pylist(),
        "cannot_tell": list(answer.cannot_tell),
        "gaps": gap_documents(answer.gaps),
        "figures": dict(answer.figures),
    }
