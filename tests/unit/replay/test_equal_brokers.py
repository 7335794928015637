"""What we replay is what real brokers answered when they had loaded exactly the same records."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from analytics.replay.groups.group_records import KINDS
from analytics.replay.log.rules import replay_rules
from tests.support.cuts import Cut, cuts_of
from tests.support.decoded_frames import frame_of, frames_of_dump
from tests.support.replayed_cuts import differences, replayed, side_by_side, told_of

ROOT = Path(__file__).parents[3]
DUMPS = ROOT / "tests" / "data" / "dumps"
TABLES = (*KINDS, "offset_commit", "control_markers")
TOPIC_TABLES = ("topic_record", "remove_topic_record")

WRITTEN_BY = {
    "kafka-4.0.2-share": ("4.0.2", 10),
    "kafka-4.2.1-share": ("4.2.1", 12),
    "kafka-4.3.1-failover": ("4.3.1", 10),
    "kafka-4.3.1-story": ("4.3.1", 50),
    "kafka-4.4.0-random": ("4.4.0", 7),
}
"""The release, and how many partitions its offsets topic has: not all of them lie here."""

OF_EVERY_RUN = ("kafka-4.0.2-share", "kafka-4.2.1-share", "kafka-4.4.0-random")
DID_NOT_ASK = {"kafka-4.0.2-share"}
"""Dumps whose brokers were not asked which offsets are pending."""


def copies() -> list[object]:
    """Dump and copy of every group of cuts; three dumps in every run, the others in long ones."""
    found = []
    for name in WRITTEN_BY:
        for copy in dict.fromkeys(cut.copy for cut in cuts_of(DUMPS / name)):
            marks = () if name in OF_EVERY_RUN else pytest.mark.long
            found.append(pytest.param(name, copy, marks=marks, id=f"{name}-{copy}"))
    return found


@pytest.mark.parametrize(("name", "copy"), copies())
def test_every_cut_equals_the_brokers_answer(name: str, copy: str) -> None:
    release, partitions = WRITTEN_BY[name]
    log_dir = DUMPS / name / copy
    here = {int(each.name.rsplit("-", 1)[1]) for each in log_dir.glob("__consumer_offsets-*")}
    cuts = [cut for cut in cuts_of(DUMPS / name) if cut.copy == copy]
    decoded = frames_of_dump(log_dir, "__consumer_offsets", TABLES)
    decoded["transaction_log"] = frame_of("transaction_log", [])
    topics = _named_topics(log_dir, cuts)
    found = replayed(side_by_side(decoded, cuts), topics, replay_rules(release))
    differing = {
        str(cut): rows
        for number, cut in enumerate(cuts)
        if (
            rows := differences(
                found[number],
                told_of(cut.state, here, partitions),
                asked_for_pending=name not in DID_NOT_ASK,
            )
        )
    }
    assert differing == {}


def _named_topics(log_dir: Path, cuts: list[Cut]) -> pl.DataFrame:
    """Return the topics of the end, which the broker knew whatever the cut.

    Where the copy lies here without its metadata log they are those that the broker named.
    """
    if not (log_dir / "__cluster_metadata-0").is_dir():
        told = {
            (each.topic, each.topic_id)
            for cut in cuts
            for each in cut.state.assignments
            if each.topic_id
        }
        schema = {"topic": pl.String, "topic_id": pl.String}
        return pl.DataFrame(sorted(told), schema, orient="row")
    named = frames_of_dump(log_dir, "__cluster_metadata", TOPIC_TABLES)
    value = pl.col("value").struct
    living = named["topic_record"].select(
        topic=value.field("name"), topic_id=value.field("topic_id")
    )
    removed = named["remove_topic_record"].select(topic_id=value.field("topic_id"))
    return living.join(removed, "topic_id", "anti")
