"""The tables that rules read: every question answered into one workspace, and what it lacks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from analytics.contracts import table_of
from analytics.questions.balance.question import BALANCE, BalanceSettings
from analytics.questions.expiration.question import EXPIRATION, ExpirationSettings
from analytics.questions.lag.question import LAG, LagSettings
from analytics.questions.rebalances.question import REBALANCES, RebalanceSettings
from analytics.questions.share.question import SHARE, BacklogSettings
from analytics.questions.timeline.question import verdicts_of
from analytics.questions.usage.question import USAGE, UsageSettings
from analytics.replayed.kept_evaluations import keep_evaluations
from analytics.workspace import Workspace
from jobs.asking import answer_exit_code, report_answer
from jobs.cli.audit_config import configured_rules
from jobs.workspaces.replayed import replayed
from reports.missing_records import absent_partitions
from schemas import tables

if TYPE_CHECKING:
    from analytics.questions.question import Question
    from jobs.cli.console import Console
    from jobs.runs.audit.run import Wanted
    from jobs.workspaces.replayed import Replayed

S = TypeVar("S")

_LOGS = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("copy", pa.string()),
        ("is_leading", pa.bool_()),
        ("lacks", pa.string()),
        ("deleted_below", pa.int64()),
        ("bytes_damaged", pa.int64()),
    ]
)
_ABSENT = pa.schema([("topic", pa.string()), ("partitions", pa.int64())])
_OF_INPUT = ("topic_partition", "strict_high_watermark", "prefer_copy", "value_encoding")


def questions(wanted: Wanted, own: Mapping[str, Any]) -> Mapping[str, Callable[[Console], int]]:
    """Return each question that is asked: a call that takes a console and returns the exit code.

    Args:
        wanted: Of the audit.
        own: Options of `replayed` that ask the workspace.
    """
    asked = {
        **{name: each for name, each in own.items() if name not in _OF_INPUT},
        "out": wanted.out,
    }
    everything = dict.fromkeys(("groups", "exclude_groups"), ())
    usage = {**asked, **everything}
    usage.pop("data_topics", None)
    return {
        "expiration": lambda console: _keep(
            console,
            EXPIRATION,
            ExpirationSettings(
                wanted.minutes,
                kafka_version=asked.get("kafka_version"),
                end_offsets=wanted.end_offsets,
            ),
            asked,
        ),
        "balance": lambda console: _keep(console, BALANCE, BalanceSettings(), asked),
        "rebalances": lambda console: _keep(console, REBALANCES, RebalanceSettings(), asked),
        "lag": lambda console: _keep(
            console, LAG, LagSettings(end_offsets=wanted.end_offsets), asked
        ),
        "share": lambda console: _keep(
            console, SHARE, BacklogSettings(end_offsets=wanted.end_offsets), asked
        ),
        "usage": lambda console: _keep(console, USAGE, UsageSettings(), usage),
    }


def _keep(
    console: Console, question: Question[Any, S], settings: S, asked: Mapping[str, Any]
) -> int:
    """Answer a question, keep its tables in the folder of the audit, and return the exit code."""
    with replayed(console, needs=question.needs_of(settings), **asked) as state:
        answer = question.ask(state, settings)
        report_answer(console, answer)
        keep_evaluations(Workspace(asked["out"]), answer.tables_to_keep, state)
        return answer_exit_code(state, answer)


def audited_tables(state: Replayed, end_offsets: str | None) -> dict[str, pa.Table]:
    """Return the tables that rules read, those of a workspace and what its manifest says.

    Args:
        state: A workspace in which all questions were answered.
        end_offsets: A file.
    """
    rules = configured_rules(state.settings.given.findings)
    wanted = {rule.table for rule in rules if rule.is_on}
    stored = state.tables
    found = {
        name: stored.read(name) for name in sorted(wanted & tables().keys()) if stored.has(name)
    }
    return {
        **found,
        "offset_verdicts": table_of("offset_verdicts", verdicts_of(state, end_offsets)),
        "log_partitions": pa.Table.from_pylist(list(_logs(state.manifest)), schema=_LOGS),
        "absent_partitions": pa.Table.from_pylist(list(_absent(state.manifest)), schema=_ABSENT),
    }


def _logs(manifest: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for each in manifest["partitions"]:
        yield {
            **{name: each.get(name) for name in ("topic", "partition", "copy", "lacks")},
            "is_leading": each.get("is_leading", True),
            "deleted_below": each.get("deleted_below"),
            "bytes_damaged": each.get("bytes_damaged"),
        }


def _absent(manifest: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for topic, numbers in absent_partitions(manifest):
        yield {"topic": topic, "partitions": len(numbers)}
