"""What has been about to be created or deleted for so long that it is stuck, as rows of faults."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from analytics.questions.share.lifecycle.phases import DELETING, INITIALIZING
from analytics.questions.share.state_log.state_faults import FAULTS
from schemas import CONSUMER_OFFSETS

if TYPE_CHECKING:
    from datetime import datetime

    from schemas.share_rules import ShareRules


def stuck_phases(found: pa.Table, rules: ShareRules, as_of: datetime) -> pa.Table:
    """Return what is stuck: `FAULTS`; a topic that is being deleted has no partition.

    Args:
        found: Of `phases`.
        rules: After how long something is stuck.
        as_of: The instant.
    """
    since = found["phase_since"]
    limits = {INITIALIZING: rules.initializing_minutes, DELETING: rules.deleting_minutes}
    is_stuck = pa.array([False] * found.num_rows, pa.bool_())
    for phase, minutes in limits.items():
        latest = pa.scalar(as_of - timedelta(minutes=minutes), since.type)
        is_old = pc.fill_null(pc.less_equal(since, latest), fill_value=False)
        is_stuck = pc.or_(is_stuck, pc.and_(pc.equal(found["phase"], phase), is_old))
    stuck = found.filter(is_stuck)
    nothing = pa.nulls(stuck.num_rows, pa.int64())
    columns = {
        **{name: stuck[name] for name in ("group_id", "topic_id")},
        "topic": pc.coalesce(stuck["topic"], stuck["topic_id"]),
        "partition": stuck["partition"],
        "fault": pc.binary_join_element_wise(
            pa.repeat("stuck", stuck.num_rows), stuck["phase"].combine_chunks(), "_"
        ),
        "at": stuck["phase_since"],
        "before": nothing,
        "found": nothing,
        "is_assumed": pa.array([False] * stuck.num_rows, pa.bool_()),
        "record_topic": pa.repeat(CONSUMER_OFFSETS, stuck.num_rows),
        "coordinator_partition": stuck["coordinator_partition"],
        "record_offset": stuck["record_offset"],
    }
    return pa.table(columns).cast(FAULTS)
