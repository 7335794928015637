"""KIP-932, "In-flight records": which delivery states follow which, against a plain dictionary."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pyarrow.dataset as ds
import pytest
from hypothesis import strategies as st

from analytics.contracts import polars_rows
from analytics.questions.share.backlog import evaluate_share
from analytics.questions.share.faults import forbidden_transitions
from analytics.questions.share.share_log import COLUMNS, share_log
from schemas.share_rules import share_rules
from tests.support.broker_state import CutBatch
from tests.support.decoded_here import decoded_here
from tests.support.examples import examples
from tests.support.reference_share_coordinator import ShareRecord, Snapshot, Update
from tests.support.share_leader import random_leader
from tests.unit.questions.share.backlog import question

AVAILABLE, ACKNOWLEDGED, ARCHIVING, ARCHIVED = 0, 2, 3, 4
MAY_FOLLOW = {
    AVAILABLE: {AVAILABLE, ACKNOWLEDGED, ARCHIVING, ARCHIVED},
    ACKNOWLEDGED: {ACKNOWLEDGED},
    ARCHIVING: {ARCHIVING, ARCHIVED},
    ARCHIVED: {ARCHIVED},
}
KEYS = (("g", "topic", 0), ("g", "topic", 1), ("h", "topic", 0))
SPAN = 12
DUMPS = (
    *("kafka-4.0.2-share", "kafka-4.1.2-share-streams", "kafka-4.2.1-share"),
    *("kafka-4.3.1-story", "kafka-4.3.1-failover", "kafka-4.4.0-random"),
)

batches = st.lists(
    st.tuples(
        st.integers(0, SPAN),
        st.integers(0, 4),
        st.sampled_from(list(MAY_FOLLOW)),
        st.integers(1, 5),
    ),
    max_size=3,
)
histories = st.lists(st.tuples(st.sampled_from(KEYS), st.integers(0, 2), batches), max_size=25)


def test_the_rules_have_the_texts_table() -> None:
    names = {0: "AVAILABLE", 2: "ACKNOWLEDGED", 3: "ARCHIVING", 4: "ARCHIVED"}
    stored = {
        state: {state, *(each for each, name in names.items() if name in told)}
        for state, told in ((n, share_rules().followers()[name]) for n, name in names.items())
    }
    assert stored == MAY_FOLLOW


@examples(30, 150, history=histories)
def test_what_is_stored_after_what_is_as_a_dictionary_has_it(
    history: list[tuple[tuple[str, str, int], int, list[tuple[int, int, int, int]]]],
) -> None:
    records, starts = [], dict.fromkeys(KEYS, 0)
    for place, key in enumerate(KEYS):
        records.append(ShareRecord(0, place, key, Snapshot(0, 0, 1, 0, 0, 1, 1, ())))
    for key, advance, found in history:
        starts[key] += advance
        disjoint, end = [], -1
        for first, length, state, count in sorted(found):
            if first > end:
                end = first + length
                disjoint.append(CutBatch(first, end, state, count))
        value = Update(0, 1, starts[key], 0, tuple(disjoint))
        records.append(ShareRecord(0, len(records), key, value))
    told = evaluate_share(question(records, groups=("g", "h"))).faults.to_dicts()
    ours = {each["record_offset"] for each in told if each["fault"] == "forbidden_transition"}
    assert ours == _plain(records)


def _plain(records: list[ShareRecord]) -> set[int]:
    """Return the offsets of records that store of an offset what cannot follow what was stored."""
    seen: dict[tuple[tuple[str, str, int], int], set[int]] = {}
    wrong = set()
    for record in records:
        if not isinstance(record.value, Update):
            continue
        for batch in record.value.batches:
            for offset in range(batch.first_offset, batch.last_offset + 1):
                if offset < record.value.start_offset:
                    continue
                before = seen.setdefault((record.key, offset), set())
                if any(batch.delivery_state not in MAY_FOLLOW[each] for each in before):
                    wrong.add(record.offset)
                before.add(batch.delivery_state)
    return wrong


@pytest.mark.parametrize("dump", DUMPS)
def test_real_leaders_left_no_final_state(dump: str, repository: Path, tmp_path: Path) -> None:
    space = decoded_here([str(repository / "tests/data/dumps" / dump)], tmp_path / "workspace")
    log = share_log(
        *(
            polars_rows(ds.dataset(space.table(f"decoded/{name}")).to_table(columns=list(COLUMNS)))
            for name in ("share_snapshot", "share_update")
        )
    )
    assert log.ranges.height
    found = forbidden_transitions(log, share_rules().followers())
    assert found.is_empty()


@examples(8, 40, seed=st.integers(0, 2**32))
def test_a_sound_leader_leaves_no_final_state(seed: int) -> None:
    records = random_leader(Random(seed), 150).records
    told = evaluate_share(question(records)).faults["fault"].to_list()
    assert "forbidden_transition" not in told
