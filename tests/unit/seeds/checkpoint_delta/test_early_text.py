"""The early text of KIP-932, section by section: its worked example, its rules of recovery."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from analytics.seeds.checkpoint_delta.chain_fold import fold_chains
from analytics.seeds.checkpoint_delta.chain_tables import chain_tables
from analytics.seeds.checkpoint_delta.control_segments import ChainLog, Lost
from analytics.seeds.checkpoint_delta.inputs import chain_inputs
from tests.support.chain_histories import as_rows
from tests.support.reference_chains import ChainRecord, Range

EXAMPLE = "examples/share-chains/orders-0/kip-932-example.jsonl"


def checkpoint(
    offset: int, epoch: int, start: int, end: int, *ranges: Range, group: str = "G1"
) -> ChainRecord:
    return ChainRecord(offset, group, "checkpoint", epoch, None, start, end, ranges)


def delta(offset: int, epoch: int, back: int, *ranges: Range, group: str = "G1") -> ChainRecord:
    return ChainRecord(offset, group, "delta", epoch, back, ranges=ranges)


def tables_of(*records: ChainRecord, lost: tuple[Lost, ...] = ()) -> dict[str, pa.Table]:
    return chain_tables(fold_chains([ChainLog("orders", 0, as_rows(list(records)), lost=lost)]))


def only_row(tables: dict[str, pa.Table], name: str, group: str = "G1") -> dict[str, Any]:
    (row,) = [row for row in tables[name].to_pylist() if row["group_id"] == group]
    return row


def reasons(tables: dict[str, pa.Table]) -> list[tuple[int, bool, str | None]]:
    rows = sorted(tables["chain"].to_pylist(), key=lambda row: row["offset"])
    return [(row["offset"], row["ok"], row["reason"]) for row in rows]


ACKED, AVAILABLE = 2, 0
BASE = checkpoint(10, 1, 100, 100)


@pytest.fixture
def logs() -> list[ChainLog]:
    return [each.read() for each in chain_inputs([EXAMPLE])]


@pytest.fixture
def tables(logs: list[ChainLog]) -> dict[str, pa.Table]:
    return chain_tables(fold_chains(logs))


class TestExampleOfOperations:
    """The table "Operation, State changes, Cumulative state, Control records"."""

    @pytest.mark.parametrize(
        ("offset", "start", "end"),
        [
            (130, 110, 110),
            (131, 110, 110),
            (132, 110, 111),  # "the SPEO in the control records is 111 at this point"
            (133, 110, 120),
            (134, 110, 120),
            (135, 110, 120),
            (136, 111, 120),
            (137, 120, 120),  # "it is safe to recover the SPEO back to offset 120"
        ],
    )
    def test_offsets_after_each_record(
        self, tables: dict[str, pa.Table], offset: int, start: int, end: int
    ) -> None:
        (row,) = [row for row in tables["chain"].to_pylist() if row["offset"] == offset]
        assert (row["ok"], row["start_offset"], row["end_offset"]) == (True, start, end)

    def test_it_ends_at_120_with_nothing_in_flight(self, tables: dict[str, pa.Table]) -> None:
        row = only_row(tables, "share_partitions")
        assert (row["start_offset"], row["complete"], row["fault"]) == (120, True, None)
        assert tables["share_batches"].num_rows == 0

    def test_after_135_the_released_records_are_in_flight_with_their_counts(
        self, logs: list[ChainLog]
    ) -> None:
        (log,) = logs
        before = ChainLog("orders", 0, log.records.slice(0, 6))
        found = chain_tables(fold_chains([before]))["share_batches"].to_pylist()
        names = ("first_offset", "last_offset", "delivery_state_name", "delivery_count")
        assert [tuple(row[name] for name in names) for row in found] == [
            (110, 112, "AVAILABLE", 1),
            (113, 119, "ACKNOWLEDGED", 1),
        ]

    def test_the_alternative_checkpoint_is_the_fold_of_130_to_137(
        self, logs: list[ChainLog], tables: dict[str, pa.Table]
    ) -> None:
        """Or alternatively, taking a new checkpoint: of epoch 2, from 120 to 120."""
        (log,) = logs
        instead = as_rows([checkpoint(137, 2, 120, 120)])
        other = chain_tables(
            fold_chains(
                [ChainLog("orders", 0, pa.concat_tables([log.records.slice(0, 7), instead]))]
            )
        )
        same = ("start_offset", "available_count", "acknowledged_count", "complete")
        one, two = (only_row(each, "share_partitions") for each in (tables, other))
        assert {name: one[name] for name in same} == {name: two[name] for name in same}
        one, two = (only_row(each, "share_checkpoints") for each in (tables, other))
        assert one["end_offset"] == two["end_offset"] == 120
        assert (two["share_checkpoint_offset"], two["checkpoint_epoch"]) == (137, 2)
        assert (one["removable_records"], two["removable_records"]) == (0, 7)

    def test_its_contradiction_is_told(self, tables: dict[str, pa.Table]) -> None:
        """The text starts at 100, the checkpoint says 110; a delta acknowledges what is below."""
        assert reasons(tables)[:3] == [
            (130, True, None),
            (131, True, "range_below_start"),
            (132, True, None),
        ]


class TestRecovery:
    """Recovering share-partition state and interactions with log cleaning."""

    def test_a_delta_before_any_checkpoint_cannot_be_recovered(self) -> None:
        tables = tables_of(delta(10, 1, 9, Range(5, 5, ACKED, 1)))
        assert reasons(tables) == [(10, False, "no_checkpoint")]
        row = only_row(tables, "share_partitions")
        assert (row["start_offset"], row["phase"], row["complete"]) == (None, "unknown", False)
        assert "no checkpoint" in row["missing"]

    def test_the_latest_checkpoint_counts_and_what_was_broken_before_it_does_not(self) -> None:
        tables = tables_of(
            BASE, delta(12, 1, 11, Range(100, 100, ACKED, 1)), checkpoint(13, 2, 150, 160)
        )
        assert [each[2] for each in reasons(tables)] == [None, "record_missing", None]
        row = only_row(tables, "share_partitions")
        assert (row["start_offset"], row["complete"]) == (150, True)

    @pytest.mark.parametrize(
        ("back", "reason"),
        [(11, "record_missing"), (9, "not_chained"), (12, "not_chained"), (20, "not_chained")],
    )
    def test_a_delta_that_does_not_chain_back_ends_the_chain(self, back: int, reason: str) -> None:
        tables = tables_of(
            BASE,
            delta(12, 1, back, Range(100, 100, ACKED, 1)),
            delta(14, 1, 12, Range(101, 101, ACKED, 1)),
        )
        assert reasons(tables)[1:] == [(12, False, reason), (14, False, "behind_a_break")]
        row = only_row(tables, "share_partitions")
        assert (row["start_offset"], row["complete"]) == (100, False)
        assert "chain ends at offset 12" in row["missing"]
        assert "state after offset 10" in row["missing"]

    @pytest.mark.parametrize(
        ("of", "epoch", "reason", "complete"),
        [
            (1, 2, "checkpoint_missing", False),
            (65535, 0, "checkpoint_missing", False),
            (2, 1, "superseded_epoch", True),
            (0, 65535, "superseded_epoch", True),
        ],
    )
    def test_deltas_of_other_epochs_are_not_applied(
        self, of: int, epoch: int, reason: str, complete: bool
    ) -> None:
        tables = tables_of(
            checkpoint(10, of, 100, 100), delta(12, epoch, 10, Range(100, 100, ACKED, 1))
        )
        assert reasons(tables)[1:] == [(12, False, reason)]
        row = only_row(tables, "share_partitions")
        assert (row["start_offset"], row["complete"]) == (100, complete)
        assert row["epoch_mismatches"] == 1

    def test_the_epoch_wraps_after_16_bits(self) -> None:
        tables = tables_of(
            checkpoint(10, 65535, 0, 0),
            checkpoint(11, 0, 5, 5),
            delta(12, 0, 11, Range(5, 6, ACKED, 1)),
        )
        assert [each[2] for each in reasons(tables)] == [None, None, None]
        assert only_row(tables, "share_partitions")["start_offset"] == 7

    def test_a_number_that_is_skipped_is_told(self) -> None:
        tables = tables_of(BASE, checkpoint(11, 3, 100, 100))
        assert reasons(tables)[1] == (11, True, "epoch_not_next")

    def test_groups_that_take_turns_have_chains_of_their_own(self) -> None:
        tables = tables_of(
            checkpoint(10, 1, 0, 0, group="A"),
            checkpoint(11, 1, 50, 50, group="B"),
            delta(12, 1, 10, Range(0, 0, ACKED, 1), group="A"),
            delta(13, 1, 11, Range(50, 51, ACKED, 1), group="B"),
            delta(14, 1, 12, Range(1, 1, ACKED, 1), group="A"),
        )
        starts = {
            row["group_id"]: row["start_offset"] for row in tables["share_partitions"].to_pylist()
        }
        assert starts == {"A": 2, "B": 52}
        assert all(each[1] for each in reasons(tables))


class TestStates:
    """ShareDeltaValue: states 0 available, 2 acknowledged, 4 archived."""

    @pytest.mark.parametrize(
        ("state", "reason"),
        [(1, "acquired_stored"), (3, "unknown_delivery_state"), (5, "unknown_delivery_state")],
    )
    def test_others_are_never_stored(self, state: int, reason: str) -> None:
        tables = tables_of(BASE, delta(12, 1, 10, Range(100, 100, state, 1)))
        assert reasons(tables)[1:] == [(12, False, reason)]
        assert not only_row(tables, "share_partitions")["complete"]

    def test_archived_records_are_done_with(self) -> None:
        tables = tables_of(BASE, delta(12, 1, 10, Range(100, 104, 4, 5)))
        assert only_row(tables, "share_partitions")["start_offset"] == 105

    def test_final_states_that_are_left_are_told(self) -> None:
        tables = tables_of(
            BASE,
            delta(12, 1, 10, Range(101, 103, ACKED, 1)),
            delta(13, 1, 12, Range(102, 102, AVAILABLE, 2)),
        )
        assert reasons(tables)[2] == (13, True, "final_state_left")

    @pytest.mark.parametrize(
        ("wrong", "reason"),
        [
            (checkpoint(12, 2, 100, 99), "bad_offsets"),
            (checkpoint(12, 2, 100, 101, Range(100, 101, AVAILABLE, 1)), "range_beyond_end"),
            (checkpoint(12, 2, 100, 110, Range(105, 104, AVAILABLE, 1)), "inverted_range"),
        ],
    )
    def test_a_latest_checkpoint_that_cannot_be_used_leaves_nothing_to_tell(
        self, wrong: ChainRecord, reason: str
    ) -> None:
        tables = tables_of(BASE, wrong, delta(13, 2, 12, Range(100, 100, ACKED, 1)))
        assert reasons(tables)[1:] == [(12, False, reason), (13, False, "behind_a_break")]
        row = only_row(tables, "share_partitions")
        assert (row["start_offset"], row["record_offset"], row["complete"]) == (None, None, False)


class TestShareCheckpointOffset:
    """SCO and ESO: what the log cleaner can and must not clean."""

    RECORDS = (
        checkpoint(10, 1, 0, 0, group="A"),
        delta(12, 1, 10, group="A"),
        checkpoint(14, 1, 0, 0, group="B"),
        checkpoint(20, 2, 0, 0, group="A"),
        delta(22, 1, 14, group="B"),
    )

    def test_it_is_that_of_the_latest_checkpoint_and_the_earliest_is_the_least_of_all_groups(
        self,
    ) -> None:
        tables = tables_of(*self.RECORDS)
        names = (
            *("share_checkpoint_offset", "records", "records_before", "earliest_share_offset"),
            *("removable_records", "complete"),
        )
        found = {group: only_row(tables, "share_checkpoints", group) for group in "AB"}
        assert [found["A"][name] for name in names] == [20, 3, 2, 14, 2, True]
        assert [found["B"][name] for name in names] == [14, 2, 0, 14, 0, True]

    def test_a_group_without_a_checkpoint_leaves_the_earliest_unknown(self) -> None:
        tables = tables_of(*self.RECORDS, delta(23, 1, 9, group="C"))
        row = only_row(tables, "share_checkpoints", "A")
        assert (row["share_checkpoint_offset"], row["earliest_share_offset"]) == (20, None)
        assert (row["removable_records"], row["complete"]) == (None, False)
        assert "of C" in row["missing"]


class TestLostRecords:
    """Nothing is told with confidence of what a lost record could change."""

    CHAIN = (BASE, delta(12, 1, 10, Range(100, 100, ACKED, 1)))

    @pytest.mark.parametrize(
        ("lost", "complete"),
        [
            (Lost(11, 12, "gone"), True),  # the chain goes past it
            (Lost(0, 5, "gone"), True),
            (Lost(13, 14, "gone"), False),
            (Lost(11, why="gone"), False),
        ],
    )
    def test_only_behind_the_newest_record_of_a_chain(self, lost: Lost, complete: bool) -> None:
        tables = tables_of(*self.CHAIN, lost=(lost,))
        row = only_row(tables, "share_partitions")
        assert (row["start_offset"], row["complete"]) == (101, complete)
        assert (row["missing"] is None) == complete

    def test_a_group_may_be_hidden_in_what_is_lost(self) -> None:
        row = only_row(tables_of(*self.CHAIN, lost=(Lost(3, 4, "gone"),)), "share_checkpoints")
        assert (row["earliest_share_offset"], row["complete"]) == (None, False)
