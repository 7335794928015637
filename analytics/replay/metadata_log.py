"""The metadata log: its records in force, dynamic settings, and who leads every partition."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.contracts import POSITION, TIME, contract_frame, present, word
from schemas import CLUSTER_METADATA
from schemas.names import RESOURCE_TYPES, harmless_settings, sensitive_settings

if TYPE_CHECKING:
    from analytics.replay.log.log_times import Decoded


# The metadata log: which of its records are in force, and from which snapshot on (KIP-630, 868).
#
# Records of a metadata transaction become visible together at its end; those of one that was
# aborted or is open are never seen. Where the log does not begin at its start, the oldest whole
# snapshot is what it is applied to.

# From where on the metadata log at hand tells: from its start, or from a snapshot (KIP-630).

FIRST_TABLES: Final = (
    "control_markers",
    "begin_transaction_record",
    "feature_level_record",
    "register_broker_record",
)
"""Of what is found at the very start of any log: leader change, bootstrap, features, brokers."""

_SNAPSHOT: Final = r"(\d{20})-\d{10}\.checkpoint$"


@dataclass(frozen=True)
class Beginning:
    """From where on the metadata log at hand tells what happened.

    Attributes:
        has_log: There is a log.
        is_cut: It does not begin at its start.
        oldest: The end offset of the oldest snapshot; None where there is none.
        first_at: The time of the first record.
    """

    has_log: bool
    is_cut: bool
    oldest: int | None
    first_at: datetime | None

    @property
    def tells_from(self) -> datetime | None:
        """From when on it tells; None where the log is there from its start."""
        return self.first_at if self.is_cut else None

    @property
    def base_end(self) -> int | None:
        """The end offset of the snapshot to begin with, if the log has to."""
        return self.oldest if self.is_cut else None


def snapshot_end() -> pl.Expr:
    """Return the end offset of the snapshot a record of the metadata log lies in, else null."""
    return pl.col("segment").str.extract(_SNAPSHOT).cast(pl.Int64)


def beginning(decoded: Decoded) -> Beginning:
    """Return how the log at hand begins; `decoded` has `FIRST_TABLES`."""
    first = pl.concat(
        decoded[name]
        .filter(pl.col("topic") == CLUSTER_METADATA)
        .select("offset", "segment", pl.col("timestamp").cast(TIME))
        for name in FIRST_TABLES
    ).with_columns(snapshot_end().alias("end"))
    of_log = first.filter(pl.col("end").is_null())
    # An end offset of zero is that of a bootstrap file, which is no state of the log.
    snapshots = first.filter(pl.col("end") > 0)
    starts_at, oldest = of_log["offset"].min(), snapshots["end"].min()
    return Beginning(
        has_log=first.height > 0,
        is_cut=starts_at != 0,
        oldest=oldest if isinstance(oldest, int) else None,
        first_at=pl.concat([of_log, snapshots])["timestamp"].min(),  # type: ignore[arg-type]
    )


TRANSACTIONS: Final = {
    "begin_transaction_record": None,
    "end_transaction_record": True,
    "abort_transaction_record": False,
}
AROUND: Final = tuple(dict.fromkeys((*FIRST_TABLES, *TRANSACTIONS)))
"""Tables that tell which records are in force, by `topic`, `offset`, `timestamp` and `segment`."""


CERTAIN: Final = (
    pl.lit(value=True).alias("complete"),
    pl.lit(None, pl.String).alias("missing"),
)
"""The marks of rows of a log whose two cuts are one."""


@dataclass(frozen=True)
class MetadataLog:
    """Decoded tables cut at an instant, and what decides which metadata records are in force.

    Attributes:
        decoded: The tables.
        begins: From where on the log tells.
        hidden: Transactions that are not visible: where each begins, and where it is over (None
            while open).
    """

    decoded: Decoded
    begins: Beginning
    hidden: tuple[tuple[int, int | None], ...]

    def visible(self, name: str) -> pl.DataFrame:
        """Return the records of a metadata table ("topic_record") that are in force.

        Returns:
            `at` (bigint: the record's place in the order of events), `since` (timestamp),
            `metadata_offset` and `position` (struct of `POSITION`, where the table has these; all
            three null for what a snapshot holds), `value`.
        """
        end, base_end = snapshot_end(), self.begins.base_end
        tail = end.is_null() & (pl.col("offset") >= (base_end or 0))
        return self._chosen(name, tail if base_end is None else tail | (end == base_end))

    def logged(self, name: str) -> pl.DataFrame:
        """Return what the log itself tells, also before the snapshot to begin with.

        Returns:
            The columns of `visible`. Snapshots say what there is, only the log when it came to be;
            files of it are kept until all of their records lie before the oldest snapshot.
        """
        return self._chosen(name, snapshot_end().is_null())

    def _chosen(self, name: str, chosen: pl.Expr) -> pl.DataFrame:
        records, is_log = self.decoded[name].filter(chosen), snapshot_end().is_null()
        for begun_at, over_at in self.hidden:
            inside = pl.col("offset") > begun_at
            if over_at is not None:
                inside &= pl.col("offset") < over_at
            records = records.filter(~(is_log & inside))
        base_end = self.begins.base_end
        of_snapshot = pl.lit(None if base_end is None else base_end - 1, pl.Int64)
        columns = {
            "at": pl.when(is_log).then("offset").otherwise(of_snapshot),
            "since": pl.when(is_log).then(pl.col("timestamp").cast(TIME)),
            "metadata_offset": pl.when(is_log).then("offset"),
        }
        if set(POSITION) <= set(records.columns):
            columns["position"] = pl.when(is_log).then(pl.struct(POSITION))
        return records.select(**columns, value="value")


def metadata_log(decoded: Decoded) -> MetadataLog:
    """Decide which records of the metadata log are in force.

    Args:
        decoded: Cut at an instant, of the whole log: `AROUND`, and what is asked for later.
    """
    steps = pl.concat(
        decoded[name]
        .filter(snapshot_end().is_null())
        .select("offset", pl.lit(is_ended, pl.Boolean).alias("is_ended"))
        for name, is_ended in TRANSACTIONS.items()
    ).sort("offset")
    # One transaction at a time: the step after a beginning is its end. They are few.
    hidden = steps.select(
        pl.col("offset"),
        pl.col("offset").shift(-1).alias("over_at"),
        pl.col("is_ended").is_null().alias("begins"),
        pl.col("is_ended").shift(-1).fill_null(value=False).alias("takes_effect"),
    ).filter(pl.col("begins") & ~pl.col("takes_effect"))
    return MetadataLog(
        decoded, beginning(decoded), tuple(hidden.select("offset", "over_at").iter_rows())
    )


# Dynamic settings of topics, brokers and groups, from the metadata log.

RESOURCES: Final = {2: "topic", 4: "broker", 32: "group"}
OTHER: Final = "other"
SETTING_KEY: Final = ("resource_type", "resource", "name")


def configs(log: MetadataLog) -> pl.DataFrame:
    """Return the table `configs` as of the instant of a metadata log.

    Values that may be secrets are withheld.
    """
    # A null value unsets the key.
    latest = (
        settings_said(log)
        .sort("at")
        .group_by(SETTING_KEY, maintain_order=True)
        .last()
        .drop_nulls("value")
    )
    living = latest.join(_removed_topics(log), on=("resource_type", "resource"), how="left").filter(
        pl.col("removed_at").is_null() | (pl.col("removed_at") < pl.col("at"))
    )
    kept = pl.when(harmless_name()).then("value").alias("value")
    return contract_frame(
        living.with_columns(kept, *CERTAIN, pl.lit("metadata_log").alias("source")), "configs"
    )


def settings_said(log: MetadataLog) -> pl.DataFrame:
    """Return each record of a setting: `SETTING_KEY`, `value` (null: unset), `since` and `at`."""
    value = pl.col("value").struct
    return (
        log.visible("config_record")
        .select(
            word(value.field("resource_type"), RESOURCES, OTHER).alias("resource_type"),
            value.field("resource_name").alias("resource"),
            value.field("name").alias("name"),
            value.field("value").alias("value"),
            "since",
            "at",
        )
        .filter(pl.col("resource_type") != OTHER)
    )


def _removed_topics(log: MetadataLog) -> pl.DataFrame:
    """Return when each name last lost its topic, and with it all of its settings."""
    value = pl.col("value").struct
    named = log.visible("topic_record").select(
        value.field("topic_id"), value.field("name").alias("resource")
    )
    removed = log.visible("remove_topic_record").select(value.field("topic_id"), "at")
    return (
        named.join(removed, on="topic_id")
        .group_by("resource")
        .agg(pl.col("at").max().alias("removed_at"))
        .with_columns(pl.lit("topic").alias("resource_type"))
    )


def harmless_name() -> pl.Expr:
    """Return whether the setting that `resource_type` and `name` tell may be shown."""
    is_kept = pl.any_horizontal(
        (pl.col("resource_type") == each) & pl.col("name").str.contains(harmless_settings(each))
        for each in RESOURCE_TYPES
    )
    return is_kept & ~pl.col("name").str.contains(sensitive_settings())


# Who leads every partition, from the metadata log (``PartitionRegistration.merge``).
#
# A partition record is the whole registration; changes are merged into it. A leader epoch grows
# with every change that names a leader, even the same one.

UNCHANGED_LEADER: Final = -2
UNCHANGED_RECOVERY: Final = -1
RECOVERING: Final = 1
"""LeaderRecoveryState: the leader was elected from outside the ISR."""

PARTITION_KEY: Final = ("topic_id", "partition")
STEP_TABLES: Final = (
    "topic_record",
    "remove_topic_record",
    "partition_record",
    "partition_change_record",
    "clear_elr_record",
)
"""What `partition_steps` reads."""
_NONE: Final = pl.lit([], pl.List(pl.Int32))


def partition_leaders(log: MetadataLog) -> pl.DataFrame:
    """Return the table `partition_leaders` as of the instant of a metadata log."""
    steps, is_named = partition_steps(log), pl.col("leader").is_not_null()
    base = steps.filter("is_base").group_by(PARTITION_KEY).agg(pl.col("at").max().alias("base_at"))
    merged = (
        steps.join(base, on=PARTITION_KEY)
        .filter(pl.col("at") >= pl.col("base_at"))
        .sort("at")
        .group_by(PARTITION_KEY)
        .agg(
            pl.col("leader", "recovery", "isr", "elr").drop_nulls().last(),
            pl.col("base_epoch").max(),
            (is_named & ~pl.col("is_base")).sum().alias("elections"),
            pl.col("since", "metadata_offset").filter(is_named).last(),
        )
    )
    rows = merged.join(_living_topics(log), on="topic_id").with_columns(
        present(pl.col("leader")).alias("leader"),
        (pl.col("base_epoch") + pl.col("elections")).alias("leader_epoch"),
        (pl.col("recovery") == RECOVERING).alias("unclean"),
    )
    return contract_frame(rows.with_columns(CERTAIN), "partition_leaders")


def partition_steps(log: MetadataLog) -> pl.DataFrame:
    """Return registrations, changes and clearings of partitions (``PartitionRegistration.merge``).

    Args:
        log: The metadata log at an instant.

    Returns:
        `topic_id`, `partition`; `at`, `since`, `metadata_offset` as of `MetadataLog.visible`;
        `is_base` (boolean: a whole registration) and its `base_epoch`; `leader` (-1: nobody),
        `recovery`, `isr`, `elr`, `replicas`: null where unchanged, and the last one in
        registrations.
    """
    value = pl.col("value").struct
    what = (
        value.field("topic_id"),
        value.field("partition_id").alias("partition"),
        *("at", "since", "metadata_offset"),
    )
    leader, recovery = value.field("leader"), value.field("leader_recovery_state")
    isr, elr = value.field("isr"), value.field("eligible_leader_replicas").alias("elr")
    whole = log.visible("partition_record").select(
        *what,
        pl.lit(value=True).alias("is_base"),
        leader,
        value.field("leader_epoch").alias("base_epoch"),
        recovery.alias("recovery"),
        isr,
        elr.fill_null(_NONE),
    )
    changes = log.visible("partition_change_record").select(
        *what,
        pl.lit(value=False).alias("is_base"),
        present(leader, UNCHANGED_LEADER).alias("leader"),
        present(recovery, UNCHANGED_RECOVERY).alias("recovery"),
        isr,
        elr,
        value.field("replicas"),
    )
    return pl.concat([changes, whole, _clearings(log, whole)], how="diagonal")


def _clearings(log: MetadataLog, registered: pl.DataFrame) -> pl.DataFrame:
    """Return ClearElr records for each partition they empty the list of; no name means all."""
    cleared = log.visible("clear_elr_record").select(
        pl.col("value").struct.field("topic_name").alias("topic"), "at"
    )
    named = registered.select(PARTITION_KEY).unique().join(_living_topics(log), on="topic_id")
    of_all = cleared.filter(pl.col("topic") == "").select("at")
    met = [named.join(cleared, on="topic"), named.join(of_all, how="cross")]
    return pl.concat(met).select(
        *PARTITION_KEY, "at", pl.lit(value=False).alias("is_base"), _NONE.alias("elr")
    )


def _living_topics(log: MetadataLog) -> pl.DataFrame:
    value = pl.col("value").struct
    named = log.visible("topic_record").select(
        value.field("topic_id"), value.field("name").alias("topic")
    )
    removed = log.visible("remove_topic_record").select(value.field("topic_id"))
    return named.join(removed, on="topic_id", how="anti")
