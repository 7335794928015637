"""The release that a dump shows is a lower bound, and names its evidence."""

from __future__ import annotations

import pytest

from schemas import all_record_types
from schemas.releases import FieldEvidence, RecordFormat, field_evidence, infer_kafka_version


def offset_commit(version: int) -> RecordFormat:
    return RecordFormat("__consumer_offsets", "offset_commit", version, None)


def test_the_newest_release_that_something_shows_counts() -> None:
    version = infer_kafka_version([offset_commit(1), offset_commit(3), offset_commit(4)], [])
    assert version.at_least == "4.1"
    assert version.evidence == ["offset_commit in version 4"]


def test_a_metadata_version_shows_the_release_before_the_one_that_introduced_it() -> None:
    version = infer_kafka_version([offset_commit(4)], [7, 30])
    assert version.at_least == "4.2"  # which knows level 30 as unstable
    assert version.evidence == ["metadata.version 30, of 4.3"]


def test_a_level_newer_than_any_known_is_taken_for_the_newest_known() -> None:
    assert infer_kafka_version([], [999]).at_least == "4.3"


def test_layouts_tell_releases_apart_that_share_a_version() -> None:
    early = RecordFormat("__share_group_state", "share_snapshot", 0, "4.0")
    later = RecordFormat("__share_group_state", "share_snapshot", 0, "4.1+")
    assert infer_kafka_version([early], []).at_least == "4.0"
    assert infer_kafka_version([early, later], []).at_least == "4.1"


def test_a_tombstone_shows_nothing() -> None:
    assert infer_kafka_version([offset_commit(-1)], []).at_least is None


def test_a_two_digit_minor_release_is_newer_than_a_one_digit_one() -> None:
    metadata = RecordFormat("__consumer_offsets", "group_metadata", 1, None)
    assert infer_kafka_version([offset_commit(1), metadata], []).at_least == "0.10.1"


def test_a_field_that_only_newer_releases_set_is_evidence() -> None:
    (field,) = [each for each in field_evidence() if each.table == "streams_group_metadata"]
    version = infer_kafka_version([], [29], [field])
    assert version.at_least == "4.2"  # level 29 alone is known to 4.1 as unstable
    assert version.evidence == ["validated_topology_epoch set in streams_group_metadata"]


@pytest.mark.parametrize("field", field_evidence(), ids=lambda field: field.column)
def test_fields_of_the_evidence_are_tagged_and_unset_by_default(field: FieldEvidence) -> None:
    fields = next(
        kind for kind in all_record_types().values() if kind.table == field.table
    ).value.fields
    (stored,) = [each for each in fields if each.column == field.column]
    assert stored.tag is not None
    assert stored.default == field.unset
