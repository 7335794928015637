"""A trend with something of everything, of tables that are held; names are hostile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from analytics.questions.question import Answer
from analytics.questions.trend.question import TrendSettings, trend
from tests.support.held_runs import Audit

HOSTILE: Final = (
    "<script>document.title = 1</script>",
    "x" * 300,
    "a\u202eb\x00c",
    '"><img src=x>',
)
COMMAND: Final = "groupscope trend a b --out </code><script>"


def trend_of_held(cluster: str = "prod <b>", disk_bytes: int | None = 10_000) -> Answer:
    """Return the answer: two runs of one cluster, and one of another."""
    audits = [_audit(1, cluster), _audit(2, cluster), _audit(1, "other")]
    return trend([each.run() for each in audits], TrendSettings(disk_bytes))


def _audit(day: int, cluster: str) -> Audit:
    groups = [f"group-{number}" for number in range(4 * day)]
    names = [*groups, *(HOSTILE if day > 1 else HOSTILE[1:])]
    return Audit(day, cluster, tables=_tables(day, names))


def _tables(day: int, names: list[str]) -> Mapping[str, Any]:
    place = {"topic": "orders", "partition": 0}
    return {
        "groups": [
            {
                "group_id": each,
                "group_type": "consumer" if number % 2 else "classic",
                "state": "Stable",
                "coordinator_partition": 0,
                "complete": True,
            }
            for number, each in enumerate(names)
        ],
        "audited_groups": [
            {
                "group_id": each,
                "lag": day * 100 + number,
                "lag_not_told": int(number == 0 and day > 1),
                "complete": True,
            }
            for number, each in enumerate(names)
        ],
        "lag": [
            {
                "group_id": each,
                **place,
                "lag": 5,
                "loss_in_ms": (40 - 10 * day) * 3_600_000,
                "loss_in_bound": "exact",
            }
            for each in names
        ],
        "partition_usage": [
            {
                "topic": "__consumer_offsets",
                "partition": number,
                "copy": "broker-1",
                "is_leading": True,
                "file_bytes": 1000 * day,
            }
            for number in (0, 1)
        ],
        "findings": [
            {
                "finding_id": f"f-{each}",
                "rule": "offsets_expired",
                "severity": "critical",
                "group_id": each,
                "message": f"offsets of {each} expired",
            }
            for each in names
        ],
        "applied_rules": [
            {
                "rule": "offsets_expired",
                "severity": "critical",
                "is_on": True,
                "was_applied": True,
                "thresholds": "",
                "findings": len(names),
            }
        ],
    }
