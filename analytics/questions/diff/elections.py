"""What an election took away: rows whose record is on a line that the second state lost."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from analytics.dump.files.model import METADATA_LOG
from analytics.questions.diff.paired import APPEARED, CHANGED, VANISHED, WENT_BACK, chosen, replaced
from analytics.replay.log.lines import parsed_time

if TYPE_CHECKING:
    from analytics.replayed.replayed_workspace import ReplayedWorkspace

LOST: Final = "lost_by_election"
CAME_BACK: Final = "deletion_lost_by_election"

LOST_LINES = pa.schema(
    [
        ("home", pa.int64()),
        ("diverges_at", pa.int64()),
        ("copy", pa.string()),
        ("elected_at", pa.timestamp("us", tz="UTC")),
        ("elected_after", pa.timestamp("us", tz="UTC")),
        ("groups_only_there", pa.list_(pa.string())),
    ]
)
"""Lines that the first state is of, and the second is not; one a partition.

Where `elected_after` is there, the election was between it and `elected_at`.
"""

Followed = tuple[str, int, str]
"""Topic, partition and copy of a followed line."""


def followed_copies(state: ReplayedWorkspace) -> set[Followed]:
    """Return topic, partition and copy of the lost lines a state is of, chosen or then in force."""
    preferred = state.manifest["options"].get("prefer_copy")
    return {
        *((each.topic, each.partition, each.copy) for each in state.lines),
        *(
            (each["topic"], each["partition"], each["copy"])
            for each in state.manifest.get("divergences", ())
            if each["copy"] == preferred
        ),
    }


def lost_lines(
    divergences: Iterable[Mapping[str, Any]],
    before: Collection[Followed],
    after: Collection[Followed],
    topic: str,
) -> pa.Table:
    """Return the lines of a topic that were lost between two states (`LOST_LINES`).

    Args:
        divergences: As the manifest has them.
        before: Lines that did not survive, and that the first state follows.
        after: Those that the second state follows.
        topic: The internal topic.
    """
    gone = set(before) - set(after)
    rows = [
        {
            "home": each["partition"],
            "diverges_at": each["diverges_at"],
            "copy": each["copy"],
            "elected_at": parsed_time(each["elected_at"]),
            "elected_after": None
            if _is_exact(each)
            else parsed_time(each.get("lost_to_timestamp")),
            "groups_only_there": each.get("groups_only_there") or [],
        }
        for each in divergences
        if each["topic"] == topic and (topic, each["partition"], each["copy"]) in gone
    ]
    return pa.Table.from_pylist(rows, schema=LOST_LINES)


def _is_exact(line: Mapping[str, Any]) -> bool:
    return line.get("election_shown_by") == METADATA_LOG


def with_elections(rows: pa.Table, lines: pa.Table) -> pa.Table:
    """Say of each row whether an election took away what the first state had.

    Args:
        rows: With `group_id`, `change`, and `coordinator_partition` and `record_offset` of both
            states.
        lines: As `LOST_LINES`.

    Returns:
        The rows with `cause` (null where it was no election), and the `copy` that alone has the
        record, `elected_at` and `elected_after`, all null where `cause` is.
    """
    homes = [rows[f"{side}_coordinator_partition"].cast(pa.int64()) for side in ("from", "to")]
    rows = rows.append_column("home", pc.coalesce(*homes))
    only_there = {
        (home, group)
        for home, groups in zip(
            lines["home"].to_pylist(), lines["groups_only_there"].to_pylist(), strict=True
        )
        for group in groups
    }
    rows = rows.join(lines.drop_columns(["groups_only_there"]), ["home"], join_type="left outer")
    is_only_there = pa.chunked_array(
        [
            pa.array(
                [
                    key in only_there
                    for key in zip(
                        rows["home"].to_pylist(), rows["group_id"].to_pylist(), strict=True
                    )
                ],
                pa.bool_(),
            )
        ]
    )
    changes = pa.array([WENT_BACK, VANISHED, CHANGED])
    was_lost = pc.or_kleene(
        pc.greater_equal(rows["from_record_offset"], rows["diverges_at"]), is_only_there
    )
    came_back = pc.less(rows["to_record_offset"], rows["diverges_at"])
    cause = chosen(
        (pc.and_kleene(pc.is_in(rows["change"], changes), was_lost), LOST),
        (pc.and_kleene(pc.equal(rows["change"], APPEARED), came_back), CAME_BACK),
    )
    rows = rows.append_column("cause", cause)
    for name in ("copy", "elected_at", "elected_after"):
        rows = replaced(rows, name, pc.if_else(pc.is_valid(cause), rows[name], None))
    return rows.drop_columns(["home", "diverges_at"])
