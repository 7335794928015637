"""A question about the lag of one group, as tests put it together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import polars as pl
import pyarrow as pa

from analytics.questions.lag.offsets import GroupTables
from analytics.questions.lag.pace import log_ends
from analytics.questions.lag.table import Lag, LagQuestion, evaluate_lag
from analytics.replayed.end_offsets import SAMPLES
from schemas.evaluation_rules import lag_rules
from tests.unit.questions.lag.commits import NO_HISTORY

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
TIME = pa.timestamp("us", "UTC")


@dataclass(frozen=True)
class Asked:
    """A question, and the state of the groups that it is asked of."""

    question: LagQuestion
    tables: GroupTables

    def found(self, history: pl.DataFrame = NO_HISTORY) -> Lag:
        """What commits show of it."""
        return evaluate_lag(self.question, self.tables, history)

    def of(self, **more: Any) -> Asked:
        """The same question, of which something is another."""
        return replace(self, question=replace(self.question, **more))


def table(names_and_types: dict[str, pa.DataType], rows: list[dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame(pa.Table.from_pylist(rows, pa.schema(list(names_and_types.items()))))


def asked(
    *,
    committed: list[dict[str, Any]] | None = None,
    owned: list[tuple[str, str, int, str]] | None = None,
    subscribed: dict[str, list[str] | None] | None = None,
    topics: list[dict[str, Any]] | None = None,
    ends: dict[tuple[str, int], tuple[int | None, int | None]] | None = None,
    samples: list[tuple[str, int, datetime, int]] | None = None,
    written: list[tuple[str, int, datetime, int]] | None = None,
) -> Asked:
    """Make a question about one group `g` that members `m` and others are in."""
    text, number, long = pa.string(), pa.int32(), pa.int64()
    everyone = [
        {"group_id": "g", "group_type": "classic"},
        {"group_id": "s", "group_type": "share"},
    ]
    tables = GroupTables(
        groups=table({"group_id": text, "group_type": text}, everyone),
        members=table(
            {
                **dict.fromkeys(("group_id", "member_id", "client_id", "client_host"), text),
                "subscribed_topics": pa.list_(text),
                "subscribed_regex": text,
            },
            [
                {"group_id": "g", "member_id": name, "client_id": f"c-{name}"}
                | {"subscribed_topics": each}
                for name, each in (subscribed or {}).items()
            ],
        ),
        assignments=table(
            {
                **dict.fromkeys(("group_id", "topic", "member_id"), text),
                **dict.fromkeys(("kind", "role", "subtopology_id"), text),
                "partition": number,
            },
            [
                {"group_id": group, "topic": topic, "partition": place, "member_id": member}
                | {"kind": "current"}
                for group, topic, place, member in owned or ()
            ],
        ),
        committed=table(
            {
                **dict.fromkeys(("group_id", "topic", "topic_id", "missing"), text),
                "partition": number,
                "committed_offset": long,
                "commit_timestamp": TIME,
                "complete": pa.bool_(),
            },
            [{"group_id": "g", "complete": True, **each} for each in committed or ()],
        ),
    )
    question = LagQuestion(
        topics=table(
            {"topic": text, "topic_id": text, "partitions": number, "deleted_at": TIME},
            topics or [],
        ),
        ends=table(
            {"topic": text, "partition": number, "log_start_offset": long, "log_end_offset": long},
            [
                {"topic": topic, "partition": place}
                | {"log_start_offset": start, "log_end_offset": end}
                for (topic, place), (start, end) in (ends or {}).items()
            ],
        ),
        samples=sampled(samples),
        written=sampled(written),
        as_of=NOW,
        rules=lag_rules(),
    )
    return Asked(question, tables)


def sampled(samples: list[tuple[str, int, datetime, int]] | None) -> pl.DataFrame:
    rows = [
        {"topic": topic, "partition": place, "timestamp": at, "log_end_offset": end}
        for topic, place, at, end in samples or ()
    ]
    return log_ends(pa.Table.from_pylist(rows, SAMPLES))
