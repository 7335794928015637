"""How files of the package are held against their shapes, and what a refusal says."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from schemas.reading import Explained, Number, SchemaError, Shape, read_as


class Limit(Shape, frozen=True):
    least: int
    most: Number

    def __post_init__(self) -> None:
        if self.least > self.most:
            raise ValueError("ends before it begins")


class Limits(Explained, frozen=True):
    limits: Mapping[str, Limit]
    named: tuple[Mapping[str, str], ...] = ()


def limits(**changes: object) -> dict[str, object]:
    """Two sound limits, and one that is said."""
    sound = {"low": {"least": 1, "most": 2}, "high": {"least": 5, "most": 5.0}}
    return {"about": "Limits.", "limits": {**sound, **changes}}


def test_numbers_stay_what_they_are_in_the_file() -> None:
    read = read_as(Limits, limits())
    assert [repr(each.most) for each in read.limits.values()] == ["2", "5.0"]


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        ({"least": 1}, "limits.odd: Object missing required field `most`"),
        ({"least": 1, "most": 2, "lest": 3}, "limits.odd: Object contains unknown field `lest`"),
        ({"least": True, "most": 2}, "limits.odd.least: Expected `int`, got `bool`"),
        ({"least": 1.5, "most": 2}, "limits.odd.least: Expected `int`, got `float`"),
        ({"least": 3, "most": 2}, "limits.odd: ends before it begins"),
        ("none", "limits.odd: Expected `object`, got `str`"),
    ],
)
def test_a_refusal_is_one_line_that_names_file_and_field(limit: object, said: str) -> None:
    content = limits(odd=limit, last={"least": 0, "most": 0})
    with pytest.raises(SchemaError) as refused:
        read_as(Limits, content, "limits.json")
    assert str(refused.value) == f"limits.json: {said}"
    assert content == limits(odd=limit, last={"least": 0, "most": 0})


def test_what_has_a_name_is_called_by_it() -> None:
    content = {**limits(), "named": [{"name": "one"}, {"name": "two", "size": 3}, {"size": 4}]}
    with pytest.raises(SchemaError, match=r"^named\.two\.size: Expected `str`, got `int`$"):
        read_as(Limits, content)
    with pytest.raises(SchemaError, match=r"^named\[0\]\.size: Expected `str`, got `int`$"):
        read_as(Limits, {**limits(), "named": [{"size": 4}]})
