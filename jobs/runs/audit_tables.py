"""The tables that rules read: every question answered into one workspace, and what it lacks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from analytics.evaluate.findings.suppressions import SUPPRESSIONS
from analytics.workspace import Workspace
from jobs.balance_run import balance_inputs
from jobs.expiration_run import Wanted as ExpirationWanted
from jobs.expiration_run import expiration_of
from jobs.rebalances_run import rebalances_of_inputs
from jobs.runs.lag import Wanted as LagWanted
from jobs.runs.lag import lag_of
from jobs.runs.share import Wanted as ShareWanted
from jobs.runs.share import share_of
from jobs.runs.usage import Wanted as UsageWanted
from jobs.runs.usage import usage_of
from jobs.stored_tables import StoredTables
from jobs.timeline_run import verdicts_of
from reports.layout.output_format import OutputFormat
from schemas import table, tables
from schemas.evaluation_rules import rebalance_rules
from schemas.finding_rules import FindingRule

if TYPE_CHECKING:
    from jobs.replayed import Replayed
    from jobs.runs.audit import Wanted

_LOGS = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("copy", pa.string()),
        ("is_leading", pa.bool_()),
        ("lacks", pa.string()),
        ("bytes_damaged", pa.int64()),
    ]
)
_ABSENT = pa.schema([("topic", pa.string()), ("partitions", pa.int64())])
_OF_INPUT = ("topic_partition", "strict_high_watermark", "prefer_copy", "value_encoding")


def questions(wanted: Wanted, options: Mapping[str, Any]) -> Mapping[str, Callable[..., Any]]:
    """Return each question that is asked, as a call that takes a console.

    Args:
        wanted: Of the audit.
        options: Of `replayed`.
    """
    # The workspace is what is asked: it was replayed at the instant already.
    asked = {
        **{name: each for name, each in options.items() if name not in _OF_INPUT},
        "inputs": (wanted.out,),
        "out": wanted.out,
        "as_of": None,
        "ends": {},
    }
    everything = dict.fromkeys(("groups", "exclude_groups"), ())
    usage = {**asked, **everything}
    usage.pop("data_topics", None)
    settings = wanted.broker_configs, wanted.config
    rules = rebalance_rules()
    as_json = OutputFormat("json")
    return {
        "expiration": lambda console: expiration_of(
            console,
            ExpirationWanted(as_json, (), None, *settings, wanted.end_offsets),
            **asked,
        ),
        "balance": lambda console: balance_inputs(console, as_json, through_history=False, **asked),
        "rebalances": lambda console: rebalances_of_inputs(
            console,
            as_json,
            time_from=None,
            time_to=None,
            storm_epochs=rules.storm_epochs,
            storm_minutes=rules.storm_minutes,
            **asked,
        ),
        "lag": lambda console: lag_of(
            console,
            LagWanted(
                "partition",
                through_history=False,
                min_lag=None,
                statuses=(),
                end_offsets=wanted.end_offsets,
            ),
            as_json,
            **asked,
        ),
        "share": lambda console: share_of(
            console, ShareWanted("partition", None, *settings, wanted.end_offsets), as_json, **asked
        ),
        "usage": lambda console: usage_of(
            console, UsageWanted("group", *settings), as_json, **usage
        ),
    }


def audited_tables(
    state: Replayed, rules: tuple[FindingRule, ...], end_offsets: str | None
) -> dict[str, pa.Table]:
    """Return the tables that rules read, those of a workspace and what its manifest says.

    Args:
        state: A workspace in which all questions were answered.
        rules: What is looked for.
        end_offsets: A file.
    """
    wanted = {rule.table for rule in rules if rule.is_on}
    stored = StoredTables(Workspace(state.tables.workspace.location), state.tables.selection)
    found = {
        name: stored.read(name) for name in sorted(wanted & tables().keys()) if stored.has(name)
    }
    verdicts = verdicts_of(state, end_offsets)
    names = [column.name for column in table("offset_verdicts").columns]
    return {
        **found,
        "offset_verdicts": pa.Table.from_pylist(
            [{name: each[name] for name in names} for each in verdicts], schema=_VERDICTS
        ),
        "log_partitions": pa.Table.from_pylist(list(_logs(state.manifest)), schema=_LOGS),
        "absent_partitions": pa.Table.from_pylist(list(_absent(state.manifest)), schema=_ABSENT),
        "suppressions": SUPPRESSIONS.empty_table(),
    }


_VERDICTS = pa.schema(
    [
        ("group_id", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("verdict", pa.string()),
        ("at", pa.timestamp("us", "UTC")),
        ("not_before", pa.timestamp("us", "UTC")),
        *((name, pa.int64()) for name in ("was", "became", "cost")),
        *((name, pa.string()) for name in ("confidence", "record", "reason")),
    ]
)


def _logs(manifest: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for each in manifest["partitions"]:
        yield {
            **{name: each.get(name) for name in ("topic", "partition", "copy", "lacks")},
            "is_leading": each.get("is_leading", True),
            "bytes_damaged": each.get("bytes_damaged", 0),
        }


def _absent(manifest: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    registered = manifest.get("registered_partitions", {})
    for topic, absent in manifest["absent_partitions"].items():
        present = {row["partition"] for row in manifest["partitions"] if row["topic"] == topic}
        numbers = {*absent, *(set(range(registered.get(topic, 0))) - present)}
        yield {"topic": topic, "partitions": len(numbers)}
