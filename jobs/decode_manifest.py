"""The manifest of a decode run: what was read, how far it can be trusted, where everything went."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jobs.accounts import record_counts
from jobs.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from analytics.dump.model import Plan
    from jobs.accounts import Account
    from jobs.decoding import Decoding

SCHEMA_VERSION = 1


def decode_manifest(
    created_from: Sequence[str],
    options: Mapping[str, Any],
    plan: Plan,
    decoding: Decoding,
    accounts: Sequence[Account],
) -> dict[str, Any]:
    """Put the manifest of tables.md together."""
    return {
        "schema_version": SCHEMA_VERSION,
        "groupscope_version": VERSION,
        "created_from": list(created_from),
        "options": dict(options),
        "record_types": record_counts(decoding),
        "reconciliation": [each.as_json() for each in accounts],
        "divergences": divergence_rows(plan, decoding),
        "kafka_version": {
            "at_least": decoding.kafka_version.at_least,
            "evidence": decoding.kafka_version.evidence,
        },
    }


def divergence_rows(plan: Plan, decoding: Decoding) -> list[dict[str, Any]]:
    """Return the rows of the table `divergences`; times in milliseconds."""
    return [
        {
            "topic": each.topic,
            "partition": each.partition,
            "copy": each.copy,
            "diverges_at": each.diverges_at,
            "lost_records": each.lost_records,
            "lost_from_timestamp": each.lost_from_timestamp,
            "lost_to_timestamp": each.lost_to_timestamp,
            "lost_leader_epoch": each.lost_leader_epoch,
            "surviving_leader_epoch": each.surviving_leader_epoch,
            "surviving_copy": each.surviving_copy,
            "elected_at": each.elected_at,
            "groups_only_there": decoding.groups_only_there.get(
                (each.copy, each.topic, each.partition), []
            ),
        }
        for each in plan.divergences
    ]
