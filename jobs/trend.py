"""What `trend` does: open runs, compare them, print the answer, write the page and its tables."""

from __future__ import annotations

from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from analytics.engine.part_runs import PartRunner
from analytics.gaps.gap import gap_documents
from analytics.library.audited_runs import audited_run
from analytics.locations import absolute_location
from analytics.questions.trend.question import TrendSettings, trend
from jobs.asking import report_answer
from jobs.cli.console import print_text
from jobs.cli.exit_codes import CANNOT_TELL, DONE
from reports.trend.answer import trend_text

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
    """

    runs: tuple[str, ...]
    cluster: str | None
    disk_size: int | None


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
        # What is printed is read as long as its parts are there.
        print_text(trend_text(answer.long_tables, answer.figures, output_format, _metadata(answer)))
    return CANNOT_TELL if answer.doubts else DONE


def _metadata(answer: Answer) -> dict[str, Any]:
    return {
        "input": answer.rows("trend_runs").whole()["run"].to_pylist(),
        "cannot_tell": list(answer.cannot_tell),
        "gaps": gap_documents(answer.gaps),
        "figures": dict(answer.figures),
    }
