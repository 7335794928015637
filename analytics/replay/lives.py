"""Which type a group has and since when: its present life (``GroupMetadataManager``).

A classic value replaces whatever is stored under the id, and a classic tombstone removes it, of any
type. The group tombstone of another type ends a life of that type. Any value of a type makes the
group where there is none. A tombstone that meets no group does nothing; one of a consumer or
streams group that meets a simple group takes it over (`analytics.replay.simple_groups`). Where
records of two types follow each other without the tombstone between them, which no broker writes
and a lost segment can show, the later type is the group's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from analytics.replay.group_records import CLASSIC, FAMILIES, GROUP
from analytics.replay.latest import NEVER, later

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

GROUP_KEY = ("coordinator_partition", "group_id")
RECORD_KEY = (*GROUP_KEY, "family", "role", "creates", "member_id")


def lives(last: DataFrame) -> DataFrame:
    """Return the groups that exist.

    Args:
        last: What `last_of_each` returns.

    Returns:
        `coordinator_partition`, `group_id`, `family`, `since` (bigint): records of the present
        life have greater offsets. Of a classic group the only one is its last value. And
        `made_by`: the first value of all, where it belongs to this life; else null.
    """
    grouped = last.groupBy(*GROUP_KEY).agg(
        *(
            F.min(
                F.when((F.col("family") == family) & F.col("creates"), F.col("first_value"))
            ).alias(_first(family))
            for family in FAMILIES
        ),
        *(
            F.max(
                F.when((F.col("family") == family) & F.col("creates"), F.col("last_value"))
            ).alias(_value(family))
            for family in FAMILIES
        ),
        *(
            F.max(
                F.when(
                    (F.col("family") == family) & (F.col("role") == GROUP), F.col("last_tombstone")
                )
            ).alias(_tombstone(family))
            for family in FAMILIES
        ),
    )
    newest = _greatest([_value(family) for family in FAMILIES])
    family, since = F.lit(None).cast("string"), F.lit(None).cast("bigint")
    first = F.lit(None).cast("bigint")
    for each in FAMILIES:
        is_newest = F.col(_value(each)) == newest
        family = F.when(is_newest, each).otherwise(family)
        since = F.when(is_newest, _end_of_earlier_lives(each)).otherwise(since)
        first = F.when(is_newest, F.col(_first(each))).otherwise(first)
    columns = family.alias("family"), since.alias("since"), first.alias("first")
    return (
        grouped.select(*GROUP_KEY, *columns, newest.alias("newest"))
        .where(later(F.col("newest"), F.col("since")))
        .withColumn("made_by", F.when(later(F.col("first"), F.col("since")), F.col("first")))
        .drop("newest", "first")
    )


def in_force(last: DataFrame, alive: DataFrame) -> DataFrame:
    """Keep what the present lives of groups are made of.

    Args:
        last: As for `lives`.
        alive: What `lives` returns; tombstones before `made_by` met no group.

    Returns:
        `last` with `since`; offsets of records before the present life are null.
    """
    kept = last.join(alive, [*GROUP_KEY, "family"], "inner")
    here = [
        F.when(later(F.col(name), since), F.col(name)).alias(name)
        for name, since in (
            ("last_value", F.col("since")),
            ("last_tombstone", F.greatest("since", "made_by")),
        )
    ]
    others = [
        name
        for name in kept.columns
        if name not in {"first_value", "last_value", "last_tombstone", "made_by"}
    ]
    return kept.select(*others, *here).where("last_value is not null or last_tombstone is not null")


def last_of_each(records: DataFrame) -> DataFrame:
    """Return the offsets that decide about everything that `group_records` tell about.

    Returns:
        `RECORD_KEY`, and `first_value`, `last_value`, `last_tombstone` (bigint, null where there is
        none).
    """
    offset, is_tombstone = F.col("offset"), F.col("is_tombstone")
    return records.groupBy(*RECORD_KEY).agg(
        F.min(F.when(~is_tombstone, offset)).alias("first_value"),
        F.max(F.when(~is_tombstone, offset)).alias("last_value"),
        F.max(F.when(is_tombstone, offset)).alias("last_tombstone"),
    )


def _end_of_earlier_lives(family: str) -> Column:
    if family == CLASSIC:
        # A classic value is a whole life: it begins right there, if nothing ended it since.
        ended = F.coalesce(F.col(_tombstone(CLASSIC)), F.lit(NEVER))
        return F.greatest(ended, F.col(_value(CLASSIC)) - 1)
    others = [_value(each) for each in FAMILIES if each != family]
    return _greatest([*others, _tombstone(CLASSIC), _tombstone(family)])


def _greatest(names: list[str]) -> Column:
    return F.greatest(*(F.coalesce(F.col(name), F.lit(NEVER)) for name in names))


def _first(family: str) -> str:
    return f"{family}_first"


def _value(family: str) -> str:
    return f"{family}_value"


def _tombstone(family: str) -> str:
    return f"{family}_tombstone"
