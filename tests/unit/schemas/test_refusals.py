"""What a schema file may not say, and that the refusal tells where it said it."""

from __future__ import annotations

from typing import Any

import pytest

from schemas import SchemaError
from schemas.catalog import parse_embedded, parse_record_type, parse_table

Document = dict[str, Any]


def record(**changes: object) -> Document:
    """A sound record type of one field each, with changes; None takes a key out."""
    sound: Document = {
        "name": "GroupThing",
        "ids": [7],
        "about": "A thing about a group.",
        "versions": "0-1",
        "flexible": "1+",
        "key": [{"name": "groupId", "type": "string", "about": "The group."}],
        "value": [{"name": "epoch", "type": "int32", "about": "Its epoch."}],
    }
    return {name: each for name, each in {**sound, **changes}.items() if each is not None}


def field(**changes: object) -> Document:
    """A sound field, with changes."""
    return {"name": "size", "type": "int32", "about": "A size.", **changes}


def with_field(**changes: object) -> Document:
    """A record type whose value is that field."""
    return record(value=[field(**changes)])


def parse(document: object) -> None:
    parse_record_type(document, topic="__topic", table="group_thing", file="group_thing.json")


def test_the_sound_ones_are_taken() -> None:
    parse(record())
    parse(with_field(nullable="0+", type="string", default=None))
    parse(with_field(versions="1", tag=0, default=-1))


@pytest.mark.parametrize(
    ("document", "field_named", "reason"),
    [
        # The document as a whole.
        ([], "", "Expected `object`, got `array`"),
        (record(name=None), "", "missing required field `name`"),
        (record(surprise=1), "", "unknown field `surprise`"),
        (record(ids="7"), "ids", "Expected `array`, got `str`"),
        (record(ids=[]), "", "no numbers"),
        (record(ids=[-1]), "", "no numbers"),
        (record(ids=[40000]), "", "no numbers"),
        (record(ids=[True]), "ids[0]", "Expected `int`, got `bool`"),
        (record(ids=[7, 7]), "", "id twice: 7"),
        (record(name="OtherThing"), "", "use other_thing"),
        (record(about=" "), "", "says nothing"),
        (record(versions="none"), "", "no version"),
        (record(versions="x"), "", "versions"),
        (record(framing="smoke signals"), "", "unknown framing"),
        (record(read="maybe"), "", "decode, count or secret"),
        (record(read="secret"), "", "not decoded"),
        (record(key=None), "key", "has no fields"),
        (record(framing="metadata", flexible="0+"), "key", "has no key"),
        (record(framing="metadata", key=None), "", "every version is flexible"),
        (record(layouts=["new"]), "", "do not differ"),
        (record(layouts=["new", "old"]), "", "do not differ"),
        (record(layouts=["new", "new"]), "", "layout twice"),
        # A field's own shape.
        (with_field(kind="int32"), "value.size", "unknown field `kind`"),
        (
            record(value=[{"name": "size", "type": "int32"}]),
            "value.size",
            "required field `about`",
        ),
        (record(value=["size"]), "value[0]", "Expected `object`, got `str`"),
        (with_field(name="Size"), "value.Size", "lowerCamelCase"),
        (with_field(name="its_size"), "value.its_size", "lowerCamelCase"),
        (with_field(about=""), "value.size", "says nothing"),
        (with_field(type="int24"), "value.size", "unknown type"),
        (with_field(type="[][]int8"), "value.size", "unknown type"),
        (with_field(type="struct"), "value.size", "has fields"),
        (with_field(fields=[field()]), "value.size", "has fields"),
        (with_field(versions="none"), "value.size", "in no version"),
        (with_field(versions="2+"), "value.size", "none of which is read"),
        (with_field(nullable="0+"), "value.size", "int32 has no null"),
        (with_field(type="uuid", nullable="0+"), "value.size", "uuid has no null"),
        (with_field(type="string", versions="1", nullable="0+"), "value.size", "present in 1"),
        (with_field(type="string", embedded={"as": "x"}), "value.size", "only bytes"),
        # Names that collide, at any depth.
        (record(value=[field(), field()]), "value", "field twice: size"),
        (
            record(value=[field(name="fooBar"), field(name="fooBAR")]),
            "value",
            "column twice: foo_bar",
        ),
        (
            with_field(type="[]struct", fields=[field(name="a"), field(name="a")]),
            "value.size",
            "field twice: a",
        ),
        (
            record(
                value=[
                    field(type="bytes", embedded={"as": "x"}),
                    field(name="sizeDecoded"),
                ]
            ),
            "value",
            "column twice: size_decoded",
        ),
        # Tags.
        (with_field(tag=0), "value.size", "only 1+ are flexible"),
        (with_field(tag=-1, versions="1"), "value.size", "negative"),
        (with_field(tag=True, versions="1"), "value.size.tag", "got `bool`"),
        (
            record(
                value=[
                    field(name="a", tag=0, versions="1"),
                    field(name="b", tag=0, versions="1"),
                ]
            ),
            "value",
            "tag twice: 0",
        ),
        (record(key=[field(tag=0)]), "key.size", "only none are flexible"),
        (
            with_field(tag=0, versions="1", type="[]int32", nullable="1"),
            "value.size",
            "says what its default is",
        ),
        # Defaults.
        (with_field(default=None), "value.size", "never null"),
        (with_field(default="3"), "value.size", "no int32"),
        (with_field(default=True), "value.size", "no int32"),
        (with_field(default=2**31), "value.size", "does not fit"),
        (with_field(type="bool", default=0), "value.size", "no bool"),
        (with_field(type="[]int32", default=0), "value.size", "null or empty"),
        # Layouts and wire types of their own.
        (with_field(layouts=["old"]), "value.size", '"old" is not declared'),
        (with_field(typeIn={"old": "int16"}), "value.size", '"old" is not declared'),
        (with_field(typeIn={"old": 3}), "value.size.typeIn.old", "Expected `str`, got `int`"),
        (with_field(type="string", typeIn={"old": "int16"}), "value.size", "single integer"),
        (with_field(typeIn={"old": "int64"}), "value.size", "no narrower"),
        (with_field(type="int16", typeIn={"old": "uint16"}), "value.size", "does not fit"),
        (
            record(layouts=["new", "old"], value=[field(layouts=["new", "old"])]),
            "value.size",
            "names every layout",
        ),
        (
            record(layouts=["new", "old"], key=[field(layouts=["new"])]),
            "key.size",
            "a key has one layout",
        ),
        # Embedded messages.
        (
            with_field(type="bytes", embedded={}),
            "value.size.embedded",
            "required field `as`",
        ),
        (
            with_field(type="bytes", embedded={"as": "x", "when": {"a": "1", "b": "2"}}),
            "value.size.embedded",
            "one field",
        ),
        (
            with_field(type="bytes", embedded={"as": "x", "when": {"kind": "consumer"}}),
            "value.size",
            'no string "kind"',
        ),
    ],
)
def test_a_record_type_that_makes_no_sense_is_refused(
    document: object, field_named: str, reason: str
) -> None:
    with pytest.raises(SchemaError) as caught:
        parse(document)
    assert caught.value.file == "group_thing.json"
    assert caught.value.field == field_named
    assert reason in caught.value.reason


def test_a_field_deep_inside_is_named_by_its_path() -> None:
    inner = field(name="inner", type="[]struct", fields=[field(name="broken", type="int24")])
    with pytest.raises(SchemaError, match=r"^group_thing\.json: value\.outer\.inner\.broken: unk"):
        parse(with_field(name="outer", type="struct", fields=[inner]))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"framing": "coordinator"}, "unknown framing"),
        ({"versions": "0+"}, "first and last"),
        ({"versions": "none"}, "first and last"),
        ({"fields": []}, "has no fields"),
        ({"fields": [field(tag=0)]}, "only none are flexible"),
        ({"fields": [field(type="bytes", embedded={"as": "x"})]}, "embeds nothing"),
        ({"fields": [field(layouts=["old"])]}, "one layout"),
        ({"lenientTail": 1}, "lenientTail: Expected `bool`, got `int`"),
        ({"name": "x"}, "unknown field `name`"),
    ],
)
def test_an_embedded_message_that_makes_no_sense_is_refused(changes: Document, reason: str) -> None:
    sound = {"about": "A.", "versions": "0-1", "framing": "none", "fields": [field()]}
    parse_embedded(sound, name="thing", file="thing.json")
    with pytest.raises(SchemaError, match=r"^thing\.json: ") as caught:
        parse_embedded({**sound, **changes}, name="thing", file="thing.json")
    assert reason in str(caught.value)


COLUMN = {"name": "size", "type": "int", "about": "A size."}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"kind": "furniture"}, "unknown kind"),
        ({"columns": []}, "has no columns"),
        ({"columns": [COLUMN, COLUMN]}, "column twice: size"),
        ({"columns": [{**COLUMN, "name": "Size"}]}, "snake_case"),
        ({"columns": [{**COLUMN, "type": " "}]}, "has no type"),
        ({"columns": [{**COLUMN, "nullable": "no"}]}, "columns.size.nullable: Expected `bool`"),
        ({"key": ["weight"]}, 'names "weight"'),
        ({"key": ["size", "size"]}, "key column twice"),
        ({"about": ""}, "says nothing"),
    ],
)
def test_a_table_that_makes_no_sense_is_refused(changes: Document, reason: str) -> None:
    sound = {"kind": "state", "about": "Sizes.", "key": ["size"], "columns": [COLUMN]}
    parse_table(sound, name="sizes", file="sizes.json")
    with pytest.raises(SchemaError, match=r"^sizes\.json: ") as caught:
        parse_table({**sound, **changes}, name="sizes", file="sizes.json")
    assert reason in str(caught.value)
