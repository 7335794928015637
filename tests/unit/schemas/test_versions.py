from __future__ import annotations

import pytest

from schemas import SchemaError, VersionRange


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("0+", [0, 1, 32767], [-1]),
        ("3+", [3, 32767], [2]),
        ("1", [1], [0, 2]),
        ("0-4", [0, 4], [5]),
        ("none", [], [0, -1, 1]),
    ],
)
def test_a_range_holds_the_versions_its_notation_says(
    text: str, inside: list[int], outside: list[int]
) -> None:
    versions = VersionRange.parse(text)
    assert all(version in versions for version in inside)
    assert not any(version in versions for version in outside)
    assert str(versions) == text
    assert bool(versions) == bool(inside)


@pytest.mark.parametrize("text", ["", "+", "1-", "-1", "a", "3-1", "0+1", "1.5", "0-40000", " 1"])
def test_anything_else_is_no_range(text: str) -> None:
    with pytest.raises(SchemaError):
        VersionRange.parse(text)


def test_ranges_know_what_they_share() -> None:
    low, high = VersionRange.parse("0-2"), VersionRange.parse("2+")
    assert str(low.overlap(high)) == "2"
    assert not low.overlap(VersionRange.parse("3+"))
    assert VersionRange.parse("1").within(low)
    assert not high.within(low)
    assert VersionRange.parse("none").within(low)
