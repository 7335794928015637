r"""How keys and values of archived rows are written: as they are, or as hex or base64 text.

Spark's Kafka source gives bytes. Exports through SQL, JSON or a terminal often make text of them,
with the habits of that tool: upper-case hex, ``0x`` or ``\x`` in front, white space, base64 without
its padding or in the alphabet for URLs. All these are read. What does not parse is kept as it is
and is not decoded.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql import types as T

from analytics.dump.records.raw_rows_files import BASE64, BINARY, ENCODINGS, HEX

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import Column, DataFrame

_HEX = "^([0-9a-fA-F]{2})*$"
_HEX_PREFIX = r"^(0[xX]|\\+[xX])"
_BASE64 = "^[A-Za-z0-9+/]*$"
_BASE64_GROUP = 4
_GREATEST_TYPE = 0x3F
_MOST_OF_A_SAMPLE = 0.9


def column_encoding(frame: DataFrame, name: str, encoding: str | None) -> str:
    """Return how a column is written: as asked; else text is base64, and bytes are bytes."""
    is_text = isinstance(frame.schema[name].dataType, T.StringType)
    return encoding or (BASE64 if is_text else BINARY)


def parsed(column: Column, encoding: str) -> Column:
    """Return the bytes that a column stands for; null where it is null or does not parse.

    Args:
        column: Strings or binary.
        encoding: One of `ENCODINGS`.
    """
    if encoding == BINARY:
        return column.cast("binary")
    text = F.regexp_replace(column.cast("string"), r"\s", "")
    if encoding == HEX:
        digits = F.regexp_replace(text, _HEX_PREFIX, "")
        return F.when(digits.rlike(_HEX), F.unhex(digits))
    text = F.regexp_replace(F.translate(text, "-_", "+/"), "={1,2}$", "")
    over = F.length(text) % _BASE64_GROUP
    padding = F.when(over == 2, "==").when(over == 3, "=").otherwise("")
    return F.when(text.rlike(_BASE64) & (over != 1), F.unbase64(F.concat(text, padding)))


def encoding_that_fits(keys: Iterable[bytes]) -> str | None:
    """Return the encoding by which nearly all keys are keys of internal topics; None if none is.

    Args:
        keys: As they are stored, of any records.
    """
    sample = list(keys)
    for encoding in ENCODINGS:
        fitting = sum(_is_key(_bytes(key, encoding)) for key in sample)
        if sample and fitting >= _MOST_OF_A_SAMPLE * len(sample):
            return encoding
    return None


def _is_key(key: bytes | None) -> bool:
    """Return whether bytes begin as a key does: with a small number of two bytes, and a length."""
    return key is not None and len(key) > 4 and key[0] == 0 and key[1] <= _GREATEST_TYPE


def _bytes(key: bytes, encoding: str) -> bytes | None:
    if encoding == BINARY:
        return key
    text = re.sub(rb"\s", b"", key)
    try:
        if encoding == HEX:
            return binascii.unhexlify(re.sub(_HEX_PREFIX.encode(), b"", text))
        text = text.translate(bytes.maketrans(b"-_", b"+/")).rstrip(b"=")
        return base64.b64decode(text + b"=" * (-len(text) % _BASE64_GROUP), validate=True)
    except binascii.Error:
        return None
