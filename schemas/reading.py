"""The reader of this package's files: JSON, held against the shape that files of its kind have.

A shape is a class that says which keys an object has and what each holds. What it does not say is
refused, not skipped: a misspelt "nullabel" would otherwise change what is decoded without a word.

Files are read through importlib.resources, so that the package works from inside a zip.

What goes wrong with a schema file: one error that says where.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, Final, TypeVar

import msgspec


class SchemaError(Exception):
    """A schema file, or a model built by hand, that makes no sense.

    Attributes:
        reason: What is wrong, in words.
        field: Path of the field it is wrong with, outermost first ("value.members.clientId"); may
            be empty when the whole file is meant.
        file: Name of the file within `schemas/`; empty for a model that came from no file.
    """

    def __init__(self, reason: str, *, field: str = "", file: str = "") -> None:
        super().__init__(": ".join(part for part in (file, field, reason) if part))
        self.reason = reason
        self.field = field
        self.file = file

    def inside(self, parent: str) -> SchemaError:
        """Return the same error as seen from the structure that holds the field."""
        path = ".".join(part for part in (parent, self.field) if part)
        return SchemaError(self.reason, field=path, file=self.file)

    def in_file(self, file: str) -> SchemaError:
        """Return the same error, naming the file it was found in."""
        return SchemaError(self.reason, field=self.field, file=file)


_T = TypeVar("_T")
Number = int | float
"""A number that stays what it is in the file: 5 is not written as 5.0."""

_PLACE: Final = re.compile(r"^(?P<reason>.*) - at `\$.*`$", re.DOTALL)
_STEP: Final = re.compile(r"\.(?P<key>[^.\[\]]+)|\[(?P<index>\d+|\.\.\.)\]")
_ANY_KEY: Final = "..."
"""What stands in a path for a key of an object whose keys are names."""


class Shape(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An object in a file.

    A check that its types cannot express is made in `__post_init__` and raises ValueError; the
    reader adds where.
    """


class Explained(Shape, frozen=True):
    """An object that says what it is for."""

    about: str


class Minutes(Explained, frozen=True):
    """So many minutes, and what is said of what takes longer."""

    minutes: Number


def load(kind: type[_T], path: str) -> _T:
    """Return what a file of this package says.

    Args:
        kind: Its shape, or a type of plain values.
        path: Within the package ("rules/lag.json").

    Raises:
        SchemaError: It is not JSON, or not of that shape; it names the file and the field.
    """
    return read_as(kind, document(path), path)


def read_as(kind: type[_T], content: object, file: str = "") -> _T:
    """Return parsed JSON as a shape; arguments and errors as in `load`.

    Args:
        kind: The shape.
        content: The parsed JSON.
        file: The file's name, for errors.
    """
    try:
        return msgspec.convert(content, kind)
    except msgspec.ValidationError as error:
        match = _PLACE.match(str(error))
        if match is None:
            raise SchemaError(str(error), file=file) from None
        field = _named(kind, deepcopy(content), str(error))
        raise SchemaError(match["reason"], field=field, file=file) from None


def document(path: str) -> Any:  # noqa: ANN401
    """Return the content of a JSON file of this package.

    Raises:
        SchemaError: There is none, it is not JSON, or an object in it has a key twice.
    """
    return _parsed(files(__package__) / path, path)


def is_there(path: str) -> bool:
    """Return whether this package has a file."""
    return (files(__package__) / path).is_file()


def documents(folder: str) -> Iterator[tuple[str, str, Any]]:
    """Yield name without suffix, file name for errors and content of a folder's JSON files.

    Raises:
        SchemaError: As for `document`.
    """
    for resource in sorted((files(__package__) / folder).iterdir(), key=lambda each: each.name):
        if resource.name.endswith(".json"):
            file = f"{folder}/{resource.name}"
            yield resource.name.removesuffix(".json"), file, _parsed(resource, file)


def words_of(explained: Mapping[str, _T]) -> dict[str, _T]:
    """Return the entries of an object whose `about` says what they are."""
    return {word: each for word, each in explained.items() if word != "about"}


def _parsed(resource: Traversable, file: str) -> Any:  # noqa: ANN401
    try:
        text = resource.read_text("utf-8")
    except FileNotFoundError:
        raise SchemaError("is not there", file=file) from None
    try:
        return json.loads(text, object_pairs_hook=_without_repeats)
    except ValueError as error:
        raise SchemaError(f"is not JSON: {error}", file=file) from error
    except SchemaError as error:
        raise error.in_file(file) from None


def _without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Refuse an object that has a key twice, of which JSON readers silently keep the last."""
    result = dict(pairs)
    if len(result) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = sorted({name for name in names if names.count(name) > 1})
        raise SchemaError(f"twice in one object: {', '.join(repeated)}")
    return result


def _named(kind: type[object], content: Any, refusal: str) -> str:  # noqa: ANN401
    """Return where a refusal is, by names: `value.size` for `$.value[0]`, whose `name` is size."""
    path = refusal.rpartition("`$")[2].removesuffix("`")
    names: list[str] = []
    here = content
    for step in _STEP.finditer(path):
        key = step["key"] or step["index"]
        if key == _ANY_KEY and isinstance(here, dict):
            key = _refused_key(kind, content, here, refusal)
        if step["key"] is None and isinstance(here, list):
            here = here[int(key)]
            name = here.get("name") if isinstance(here, dict) else None
            names.append(name if isinstance(name, str) else f"[{key}]")
            continue
        names.append(key)
        here = here.get(key) if isinstance(here, dict) else None
    return ".".join(names).replace(".[", "[")


def _refused_key(kind: type[object], content: object, here: dict[str, object], refusal: str) -> str:
    """Return the key of an object, somewhere in the content, by which all of it is refused.

    The object keeps that key only, so that what is looked for next is looked for below it.
    """
    everything = dict(here)
    for key, value in everything.items():
        here.clear()
        here[key] = value
        try:
            msgspec.convert(content, kind)
        except msgspec.ValidationError as error:
            if str(error) == refusal:
                return key
    here.update(everything)
    return _ANY_KEY
