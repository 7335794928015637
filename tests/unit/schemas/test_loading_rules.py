"""Rules of loading are kept by patch release where a patch changed them."""

from __future__ import annotations

import pytest

from schemas.releases import is_line, line_of, loading_rule_values, patch_before, replay_rule_values


@pytest.mark.parametrize(
    ("release", "owned", "streams"),
    [
        ("3.9.2", "none", "skipped"),
        ("4.0.1", "any", "skipped"),
        ("4.0.2", "not_newer", "skipped"),
        ("4.1.1", "any", "refused"),
        ("4.1.2", "not_newer", "refused"),
        ("4.2.0", "not_newer", "refused"),
        ("4.2.1", "not_newer", "replaced"),
        ("4.4.0", "not_newer", "replaced"),
    ],
)
def test_a_patch_release_has_its_own_rules(release: str, owned: str, streams: str) -> None:
    (only,) = loading_rule_values(release)
    assert only.since is None
    assert (only.values["owned_partitions"], only.values["streams_over_simple"]) == (owned, streams)


def test_a_release_without_its_patch_has_the_rules_of_each_of_its_patches() -> None:
    before, after = loading_rule_values("4.1")
    assert (before.since, before.values["owned_partitions"]) == ("4.1.0", "any")
    assert (after.since, after.values["owned_partitions"]) == ("4.1.2", "not_newer")
    assert [each.since for each in loading_rule_values("4.3")] == [None]


@pytest.mark.parametrize(
    ("release", "offset", "group", "types"),
    [
        ("0.10.0", 1, 0, "refused"),
        ("2.0.1", 1, 1, "refused"),
        ("2.1.0", 3, 2, "refused"),
        ("3.2.3", 3, 3, "refused"),
        ("3.4.0", 3, 3, "refused"),
        ("3.4.1", 4, 4, "skipped"),
        ("3.5", 4, 4, "skipped"),
    ],
)
def test_old_releases_read_old_versions(release: str, offset: int, group: int, types: str) -> None:
    (only,) = loading_rule_values(release)
    assert only.values["newest_offset_version"] == offset
    assert only.values["newest_group_version"] == group
    assert only.values["unknown_record_types"] == types


def test_lines_of_releases_before_1_0_have_three_numbers() -> None:
    assert is_line("0.10.2")
    assert not is_line("0.10.2.1")
    assert line_of("0.10.2.1") == (0, 10, 2)
    assert (is_line("4.1"), is_line("4.1.0"), line_of("4.1.2")) == (True, False, (4, 1))
    assert patch_before("4.1.2") == "4.1.1"


def test_what_is_replayed_has_one_answer_for_a_release_without_its_patch() -> None:
    assert replay_rule_values("4.1") == replay_rule_values("4.1.2")
