"""What `trend` does: open runs, compare them, print the answer, write the page and its tables."""

from __future__ import annotations

from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from analytics.engine.part_runs import PartRunner
from analytics.errors import OutputRefusedError
from analytics.gaps.gap import gap_documents
from analytics.library.audited_runs import audited_run
from analytics.locations import absolute_location, join
from analytics.questions.trend.question import TrendSettings, trend
from analytics.tables.parted_table import write_parquet
from jobs.asking import report_answer
from jobs.cli.console import command_line, print_text
from jobs.cli.exit_codes import CANNOT_TELL, DONE
from jobs.cli.written_text import write_pieces, write_text
from reports.row_formats import rendered
from reports.trend.answer import sections_for_programs, trend_text
from reports.trend.page import html_of, trend_page

if TYPE_CHECKING:
    from analytics.questions.answer import Answer
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
    """

    runs: tuple[str, ...]
    cluster: str | None
    disk_size: int | None
    out: str | None


def trend_of(console: Console, options: TrendOptions, output_format: OutputFormat) -> int:
    """Print the answer, and return the exit code.

    Raises:
        GroupscopeError: A RUN is no audited workspace of this version.
    """
    locations = dict.fromkeys(map(absolute_location, options.runs))
    runs = [audited_run(each, options.cluster) for each in locations]
    with TemporaryDirectory(prefix="groupscope-") as parts:
        answer = trend(runs, TrendSettings(options.disk_size), PartRunner(parts))
        report_answer(console, answer)
        code = CANNOT_TELL if answer.doubts else DONE
        if options.out is not None:
            _write(options.out, answer, code)
            console.say(f"trend: {join(options.out, PAGE)}")
        # What is printed is read as long as its parts are there.
        print_text(trend_text(answer.long_tables, answer.figures, output_format, _metadata(answer)))
    return code


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
