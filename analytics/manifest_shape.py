"""What a manifest has to look like: one of another shape is damaged, and nothing is made of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import NoneType
from typing import Any, Final

Shape = Any
"""Types that a value may have; a list of one shape is any number of it, a mapping the fields of an
object. A field whose name begins with a star must be there."""

_TEXT, _NUMBER = (str,), (int,)
_NO_TEXT, _NO_NUMBER = (str, NoneType), (int, NoneType)
_ANY_LIST, _ANY_OBJECT = (list,), (dict,)

_DIALECT: Final = "dialect"
"""A workspace of a dialect has nothing of what is made of a dump."""

_PARTITION: Final = {
    "*topic": _TEXT,
    "*partition": _NUMBER,
    "copy": _NO_TEXT,
    "is_leading": (bool, NoneType),
    "files": [_ANY_OBJECT],
    "log_start_offset": _NO_NUMBER,
    "log_end_offset": _NO_NUMBER,
    "complete_from": _NO_NUMBER,
    "leader_epochs": (list, NoneType),
}
_SHAPE: Final[Mapping[str, Shape]] = {
    "*created_from": [_TEXT],
    "*options": _ANY_OBJECT,
    "*copies": [{"*name": _TEXT, "node_id": _NO_NUMBER, "cluster_id": _NO_TEXT}],
    "*partitions": [_PARTITION],
    "data_partitions": [_PARTITION],
    "*record_types": [{"*topic": _TEXT, "*table": _NO_TEXT, "*records": _NUMBER}],
    "divergences": [
        {"copy": _NO_TEXT, "*topic": _TEXT, "*partition": _NUMBER, "diverges_at": _NO_NUMBER}
    ],
    "absent_partitions": _ANY_OBJECT,
    "*kafka_version": {"at_least": _NO_TEXT, "evidence": _ANY_LIST},
    "unreadable": [_ANY_OBJECT],
    "unanswerable": _ANY_LIST,
    "notes": [_ANY_OBJECT],
    "leader_clocks": [{"*what": _TEXT}],
    "reconciliation": [_ANY_OBJECT],
    "records_lost": _NUMBER,
    "before_swaps": (dict, NoneType),
    "evaluations": _ANY_OBJECT,
    "files": _ANY_OBJECT,
    "replay": {
        "*as_of": {"*time": _NO_TEXT, "*offsets": _ANY_OBJECT},
        "*kafka_version": _TEXT,
        "lines": [_ANY_OBJECT],
        "assumed": _ANY_LIST,
        "topic_ids": _ANY_LIST,
        "filters": _ANY_OBJECT,
        "rows": _ANY_OBJECT,
        "decoded_in": _TEXT,
    },
}
_SHAPE_OF_DIALECT: Final[Mapping[str, Shape]] = {
    "*created_from": [_TEXT],
    "*dialect": {"*name": _TEXT, "*unseen": _ANY_LIST, "*rows": _ANY_OBJECT},
}


def misshapen(manifest: Mapping[str, Any]) -> str | None:
    """Return what of a manifest is not as it has to be; None where all is."""
    shape = _SHAPE_OF_DIALECT if _DIALECT in manifest else _SHAPE
    return next(_faults(manifest, shape, ""), None)


def _faults(value: object, shape: Shape, place: str) -> Iterator[str]:
    if isinstance(shape, tuple):
        # True is no number.
        is_flag = isinstance(value, bool) and bool not in shape
        if is_flag or not isinstance(value, shape):
            yield f"{place} is not what it has to be"
    elif isinstance(shape, list):
        if not isinstance(value, list):
            yield f"{place} is no list"
            return
        for each in value:
            yield from _faults(each, shape[0], place)
    elif not isinstance(value, dict):
        yield f"{place} is no object"
    else:
        for starred, inner in shape.items():
            name = starred.removeprefix("*")
            within = f"{place}.{name}".removeprefix(".")
            if name in value:
                yield from _faults(value[name], inner, within)
            elif name != starred:
                yield f"it lacks {within}"
