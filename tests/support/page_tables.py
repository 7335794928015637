"""Tables of an audited workspace, made up: as many groups as wanted, of any names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from analytics.questions.findings.audited_groups import audited_groups, group_counts
from analytics.questions.findings.ended_lines import elections_of
from analytics.questions.findings.found import FINDINGS, in_order
from analytics.questions.findings.incidents import (
    INCIDENT_PARTS,
    INCIDENTS,
    incident_sums,
    incidents_of,
)
from reports.page.workspace_tables import HeldTables, WorkspaceTables
from schemas import table
from schemas.manifest import Manifest

AT = datetime(2026, 11, 21, 9, 20, tzinfo=UTC)
_TYPES = {
    "string": pa.string(),
    "int": pa.int32(),
    "smallint": pa.int16(),
    "tinyint": pa.int8(),
    "bigint": pa.int64(),
    "boolean": pa.bool_(),
    "double": pa.float64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "array<string>": pa.list_(pa.string()),
    "array<struct<member_id:string,client_id:string,client_host:string>>": pa.list_(
        pa.struct(dict.fromkeys(("member_id", "client_id", "client_host"), pa.string()))
    ),
    "array<int>": pa.list_(pa.int32()),
}
MANIFEST: Manifest = {
    "schema_version": 3,
    "groupscope_version": "0.1.0",
    "created_from": ["dump"],
    "options": {},
    "copies": [
        {
            "name": "broker-1",
            "node_id": 1,
            "cluster_id": "a-cluster",
            "clean_shutdown": False,
            "log_dirs": ["dump/broker-1"],
        }
    ],
    "partitions": [
        {
            "topic": "__consumer_offsets",
            "partition": 0,
            "copy": "broker-1",
            "is_leading": True,
            "size": 1000,
            "end_offset": 100,
            "files": [{"name": "__consumer_offsets-0/00000000000000000000.log", "kind": "log"}],
        }
    ],
    "record_types": [],
    "divergences": [],
    "kafka_version": {},
}


def rows_of(name: str, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Return rows with the columns of a contract; what is not said is null."""
    if name == "findings":
        return pa.Table.from_pylist(list(rows), schema=FINDINGS)
    columns = table(name).columns
    return pa.table(
        {
            each.name: pa.array([row.get(each.name) for row in rows], _TYPES[each.type])
            for each in columns
        }
    )


def finding(group: str | None, rule: str = "lag_growing", **said: Any) -> dict[str, Any]:
    """Return a row of `findings`."""
    return {
        "finding_id": f"{rule}-{abs(hash((group, str(said)))):x}",
        "rule": rule,
        "severity": "warning",
        "object_type": "group",
        "group_id": group,
        "message": f"the lag of {group} grows",
        "suggestion": f"kafka-consumer-groups --describe --group {group}",
        "evidence": [
            {"topic": "__consumer_offsets", "partition": 0, "offset": 12},
        ],
        **said,
    }


def workspace(
    groups: Sequence[str],
    findings: Sequence[Mapping[str, Any]],
    tables: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
    *,
    manifest: Manifest = MANIFEST,
) -> WorkspaceTables:
    """Return what a page is made of.

    Args:
        groups: Their names; each has a partition, with a lag and a history of commits.
        findings: Rows of `findings`.
        tables: Rows of other tables, by their names.
        manifest: Of the workspace.
    """
    lag = [
        {
            "group_id": group,
            "topic": "orders",
            "partition": 0,
            "kind": "owned",
            "lag": number,
            "status": "OK",
            "verdict": "behind",
            "commits": 3,
            "last_commit_at": AT,
        }
        for number, group in enumerate(groups)
    ]
    states = [
        {"group_id": group, "group_type": "classic", "state": "Stable", "member_count": 1}
        for group in groups
    ]
    history = [
        {
            "group_id": group,
            "topic": "orders",
            "partition": 0,
            "event": "commit",
            "committed_offset": step * 7,
            "effective_timestamp": AT + timedelta(seconds=step),
        }
        for group in groups[:200]
        for step in range(3)
    ]
    made = {
        "groups": rows_of("groups", states),
        "lag": rows_of("lag", lag),
        "offset_history": rows_of("offset_history", history),
        "findings": rows_of("findings", findings),
        **{name: rows_of(name, rows) for name, rows in (tables or {}).items()},
    }
    audited = audited_groups(made)
    counts: dict[str, int] = dict.fromkeys(("critical", "warning", "info"), 0)
    for row in findings:
        counts[row["severity"]] += 1
    summary = {
        "as_of": {"time": "2026-11-21T09:23:34.172Z", "is_end": True, "offsets": {}},
        "kafka_version": "4.3",
        "findings": counts,
        "suppressed": 0,
        "could_not_be_asked": {},
        "fail_on": "critical",
        "exit_code": 0,
        "exit_reason": "nothing as severe as --fail-on was found",
    }
    elections = elections_of(made["divergences"]) if "divergences" in made else ()
    sums = incident_sums(in_order(made["findings"]), elections)
    incidents = incidents_of([sums], elections)
    named = {
        **made,
        "audited_groups": audited,
        "audited_group_counts": group_counts(audited),
        INCIDENTS: incidents.incidents,
        INCIDENT_PARTS: incidents.parts,
    }
    return WorkspaceTables(HeldTables(named), manifest, summary)
