"""What a filter leaves out shows the release that wrote it as what is left does."""

from __future__ import annotations

from pathlib import Path

import pyarrow.compute as pc
import pytest

from analytics.decode.chunks import Decoded, RecordKind, decode_chunk
from analytics.decode.selection import Selection
from analytics.decode.tables import Origin
from analytics.dump.records.segment_reader import read_segment
from schemas import record_types
from schemas.releases import (
    FieldEvidence,
    KafkaVersion,
    RecordFormat,
    field_evidence,
    infer_kafka_version,
)

DUMPS = Path(__file__).parents[2] / "data" / "dumps"
TOPICS = ("__consumer_offsets", "__share_group_state", "__transaction_state")
NOBODY = Selection(groups=("nobody",))
NO_TOPIC = Selection(topics=("nothing",))


def decoded_of(dump: str, topic: str, selection: Selection) -> list[Decoded]:
    return [
        decode_chunk(
            chunk.records, chunk.damages, Origin(topic, 0, "broker-1", segment.name), selection
        )
        for segment in sorted((DUMPS / dump / "broker-1").glob(f"{topic}-*/*.log"))
        if segment.stat().st_size
        for chunk in read_segment(segment).chunks()
    ]


def fields_set(decoded: list[Decoded]) -> set[FieldEvidence]:
    return {
        each
        for each in field_evidence()
        for one in decoded
        if each.table in one.batches
        and pc.any(
            pc.not_equal(pc.struct_field(one.batches[each.table]["value"], each.column), each.unset)
        ).as_py()
    }


def release(topic: str, kinds: set[RecordKind], fields: set[FieldEvidence]) -> KafkaVersion:
    types = record_types(topic)
    seen = [
        RecordFormat(topic, types[one.record_type].table, one.version, one.layout) for one in kinds
    ]
    return infer_kafka_version(seen, [], fields)


@pytest.mark.parametrize(
    ("dump", "of_groups"),
    [
        ("kafka-2.0.1-v1", "0.10.1"),
        ("kafka-4.0.2-share", "4.0"),
        ("kafka-4.4.0-random", "4.1"),
        ("kafka-4.2.1-share", "4.1"),
    ],
)
def test_no_filter_changes_the_release_that_records_show(dump: str, of_groups: str) -> None:
    for topic in TOPICS:
        whole = decoded_of(dump, topic, Selection())
        kinds = {kind for each in whole for kind in each.kinds}
        shown = release(topic, kinds, fields_set(whole))
        if topic == "__consumer_offsets":
            assert shown.at_least == of_groups
        for selection in (NOBODY, NO_TOPIC):
            part = decoded_of(dump, topic, selection)
            left = {kind for each in part for kind in each.kinds}
            out = {kind for each in part for kind in each.kinds_left_out}
            fields = fields_set(part) | {one for each in part for one in each.fields_left_out}
            assert release(topic, left | out, fields) == shown


def test_nothing_is_left_out_where_all_is_wanted() -> None:
    for each in decoded_of("kafka-4.0.2-share", "__consumer_offsets", Selection()):
        assert not each.kinds_left_out
        assert not each.fields_left_out
