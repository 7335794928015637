"""Rows of the tables beside the expiry of offsets: endings of groups, and versions of requests."""

from __future__ import annotations

from typing import Final

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from reports.durations import durations
from reports.layout.section import companion_section
from reports.row_formats import Section

_ENDINGS: Final = {
    "group_id": "GROUP",
    "offsets": "EXPIRED",
    "removed_at": "LAST-REMOVED-AT",
    "tombstone_at": "TOMBSTONE-AT",
    "verdict": "VERDICT",
    "named_by": "NAMED-BY",
    "reason": "REASON",
}
_REQUESTS: Final = {
    "group_id": "GROUP",
    "request": "REQUEST",
    "stores": "STORES",
    "offsets": "OFFSETS",
    "may_be": "MAY-BE",
    "first_expires_at": "FIRST-EXPIRES-AT",
    "last_expires_at": "LAST-EXPIRES-AT",
    "longest": "RETENTION",
    "about": "EXPIRE-TIME",
}
_ENDED: Final = "Groups whose offsets have all expired"
_PROBLEM: Final = "still_there"


def ending_section(rows: pa.Table) -> Section:
    """Return the rows of the table `group_endings`; a group that should be gone is marked."""
    rows = rows.append_column("is_problem", pc.equal(rows["verdict"], _PROBLEM))
    title = "Groups whose offsets have all expired"
    spare = ("removed_at",)
    return companion_section(
        rows, _ENDINGS, "endings", title=title, problem="is_problem", spare=spare
    )


def request_section(rows: pa.Table) -> Section:
    """Return the rows of the table `commit_requests`."""
    longest = pl.from_arrow(rows.select(["longest_retention_ms"]))
    assert isinstance(longest, pl.DataFrame)
    told = longest.select(durations(pl.col("longest_retention_ms"))).to_series().to_arrow()
    rows = rows.append_column("longest", told.cast(pa.string()))
    rows = rows.append_column("is_problem", pa.repeat(False, rows.num_rows))  # noqa: FBT003
    title = "What a commit of each request version would have been given (KIP-211)"
    spare = ("first_expires_at",)
    return companion_section(
        rows, _REQUESTS, "requests", title=title, problem="is_problem", spare=spare
    )


def has_problems(section: Section) -> bool:
    """Return whether any row is marked."""
    return bool(pc.any(section.rows["is_problem"]).as_py())
