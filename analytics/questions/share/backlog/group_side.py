"""What records of groups tell of share partitions: who owns them, in which phase they are."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analytics.questions.share.places import places_in
from analytics.questions.share.state_log.share_log import KEY
from analytics.questions.share.state_log.window import NONE


def with_members(rows: pa.Table, groups: pa.Table, assignments: pa.Table) -> pa.Table:
    """Add how many members own each partition; null where the group is not there, or not whole.

    Args:
        rows: Share partitions.
        groups: The table `groups`: `group_id`, `complete`.
        assignments: The table `assignments`: `group_id`, `kind`, `topic_id`, `partition`.
    """
    given = assignments.filter(pc.equal(assignments["kind"], "current"))
    place = places_in(rows, given, KEY)
    owners = np.bincount(place[place >= 0], minlength=rows.num_rows)
    told = groups.filter(groups["complete"])
    there = pc.is_in(rows["group_id"], told["group_id"].combine_chunks())
    return rows.append_column("members", pa.array(owners, mask=~there.to_numpy()))


def with_phases(rows: pa.Table, found: pa.Table) -> pa.Table:
    """Add since when partitions are being initialised, or topics deleted.

    Args:
        rows: Share partitions, with their `phase`.
        found: Of `phases`.
    """
    of_partition = found.filter(pc.is_valid(found["partition"]))
    of_topic = found.filter(pc.is_null(found["partition"]))
    since = np.full(rows.num_rows, NONE)
    for each, keys in ((of_partition, KEY), (of_topic, KEY[:2])):
        named = each.select([*keys])
        place = places_in(named, rows, keys)
        # Where none is known all are null, and those would be fractions.
        times = pc.fill_null(each["phase_since"].cast(pa.int64()), NONE).to_numpy()
        since = np.where(place >= 0, np.append(times, NONE)[place], since)
    is_passing = pc.is_in(rows["phase"], pa.array(["initializing", "deleting"])).to_numpy()
    column = pa.array(since, mask=(since == NONE) | ~is_passing)
    return rows.append_column("phase_since", column.cast(pa.timestamp("us", "UTC")))
