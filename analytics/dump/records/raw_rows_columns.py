"""What the columns of an archived row say: how it is written, and where it was."""

from __future__ import annotations

import base64
import binascii
import re
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F
from pyspark.sql import types as T

from analytics.dump.records.raw_rows_files import BASE64, BINARY, ENCODINGS, FLAW, HEX
from analytics.errors import InputNotRecognizedError
from schemas import INTERNAL_TOPICS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from pyspark.sql import Column, DataFrame

# How keys and values of archived rows are written: as they are, or as hex or base64 text.
#
# Spark's Kafka source gives bytes. Exports through SQL, JSON or a terminal often make text of
# them, with the habits of that tool: upper-case hex, ``0x`` or ``\x`` in front, white space,
# base64 without its padding or in the alphabet for URLs. All these are read. What does not parse
# is kept as it is and is not decoded.

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


# Where an archived row says that it was: its topic, partition, offset and time, or what is wrong.
#
# A row that does not say where it was may be any row of its partition, or of any. It is kept and
# counted, and nothing else fails because of it.

NOT_JSON: Final = "the line is no JSON object"
_TOPIC: Final = r"^[a-zA-Z0-9._-]{1,249}$"
_NUMBER: Final = r"^\s*-?[0-9]{1,19}\s*$"
_MOST_PARTITION: Final = 2**31 - 1
_MOST_OFFSET: Final = 2**63 - 2
_NO_TIME: Final = -1


def with_numeric_places(frame: DataFrame) -> DataFrame:
    """Return rows with `topic, partition, offset, timestamp` as numbers, and what is wrong.

    Args:
        frame: Those columns as they were found, `timestamp` only where any row has it; and `flaw`,
            what is wrong with a row that could not be read at all.

    Returns:
        All columns; `timestamp` in milliseconds, -1 where there is none. `flaw` is null of sound
        rows. What is no number is null, and so is the topic that is none.
    """
    topic = F.col("topic").cast("string")
    # Most rows are of these, which takes less to see.
    is_topic = topic.isin(*INTERNAL_TOPICS) | topic.rlike(_TOPIC)
    partition, offset = _number(frame, "partition"), _number(frame, "offset")
    time, is_time = _milliseconds(frame)
    flaws = [
        F.col(FLAW),
        _flaw("topic", is_topic, topic, "the name of a topic"),
        _flaw(
            "partition",
            partition.between(0, _MOST_PARTITION),
            F.col("partition"),
            "the number of a partition",
        ),
        _flaw("offset", offset.between(0, _MOST_OFFSET), F.col("offset"), "an offset"),
        F.when(~is_time, "its timestamp is no time"),
    ]
    found = frame.withColumns(
        {
            FLAW: F.coalesce(*flaws),
            "timestamp": F.coalesce(time, F.lit(_NO_TIME)),
            "topic": F.when(is_topic, topic),
        }
    )
    return found.withColumns(
        {
            "partition": F.when(partition.between(0, _MOST_PARTITION), partition).cast("int"),
            "offset": F.when(offset.between(0, _MOST_OFFSET), offset),
        }
    )


def with_places_of_folders(frame: DataFrame) -> DataFrame:
    """Return rows with the topic and the partition that their folders name, as Hive's do.

    Args:
        frame: `file`, `flaw` and columns as they were found. A row that names another topic or
            partition than its folder is flawed: one of the two is wrong.
    """
    for name in PLACE:
        # What a folder has for null is no name: nothing is named then.
        named = F.regexp_extract("file", rf"/{name}=([^/]+)/", 1)
        of_folder = F.when(~named.isin("", "__HIVE_DEFAULT_PARTITION__"), named)
        if name not in frame.columns:
            frame = frame.withColumn(name, of_folder)
            continue
        own = F.trim(F.col(name).cast("string"))
        other = F.concat(F.lit(f"its folder says {name}="), of_folder, F.lit(", it says "), own)
        frame = frame.withColumns(
            {
                FLAW: F.coalesce(F.col(FLAW), F.when(own != of_folder, other)),
                name: F.coalesce(own, of_folder),
            }
        )
    return frame


def _flaw(name: str, is_sound: Column, value: Column, what: str) -> Column:
    shown = F.substring(value.cast("string"), 1, 40)
    return F.when(value.isNull(), f"it has no {name}").when(
        ~F.coalesce(is_sound, F.lit(False)),  # noqa: FBT003 - a literal of Spark's
        F.concat(F.lit(f"its {name} is not {what}: "), shown),
    )


def _number(frame: DataFrame, name: str) -> Column:
    """Return a column as whole numbers: text of one counts, a fraction does not."""
    if isinstance(frame.schema[name].dataType, T.IntegralType):
        return F.col(name).cast("long")
    text = F.col(name).cast("string")
    return F.when(text.rlike(_NUMBER), F.trim(text).try_cast("long"))


def _milliseconds(frame: DataFrame) -> tuple[Column, Column]:
    """Return times in milliseconds (null is none), and whether what stands there is a time."""
    if "timestamp" not in frame.columns:
        return F.lit(None).cast("long"), F.lit(True)  # noqa: FBT003 - a literal of Spark's
    column, kind = F.col("timestamp"), frame.schema["timestamp"].dataType
    if isinstance(kind, T.TimestampType | T.TimestampNTZType):
        known = F.unix_millis(column.cast("timestamp"))
    elif isinstance(kind, T.IntegralType):
        known = column.cast("long")
    else:
        text = column.cast("string")
        number = F.when(text.rlike(_NUMBER), F.trim(text).try_cast("long"))
        known = F.coalesce(number, F.unix_millis(F.try_to_timestamp(text)))
    return known, column.isNull() | known.isNotNull()


# What columns of a DataFrame, or of a table, must be. In files people write text for numbers, and
# what is no number is a flaw of a row. Who hands over a DataFrame names its types, so that another
# type is a slip: text where bytes belong has lost what was no text.

_BYTES: Final = (T.BinaryType,)
_WHOLE: Final = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
_TEXT: Final = (T.StringType, T.CharType, T.VarcharType)
_TYPES: Final[Mapping[str, tuple[tuple[type[T.DataType], ...], str]]] = {
    "key": (_BYTES, "binary"),
    "value": (_BYTES, "binary"),
    "topic": (_TEXT, "string"),
    "partition": (_WHOLE, "int"),
    "offset": (_WHOLE, "bigint"),
    "timestamp": (
        (T.TimestampType, T.TimestampNTZType, T.LongType),
        "timestamp, or bigint (milliseconds)",
    ),
}
"""The columns of Spark's Kafka source that are read, and what each may be.

The source's own are those named, see "Structured Streaming + Kafka Integration Guide"; Iceberg and
Delta have times without a zone too, which are taken for UTC.
"""
_ENCODED: Final = frozenset({"key", "value"})
_EPOCH: Final = "timestamp_ntz'1970-01-01 00:00:00'"


def check_types(frame: DataFrame, where: str, encoding: str | None) -> None:
    """Refuse a DataFrame of which a column has another type than archived rows have.

    Args:
        frame: The rows.
        where: How it was given.
        encoding: How keys and values are written, where that was said: then they may be text.

    Raises:
        InputNotRecognizedError: One has; or two have one name; or the rows never end.
    """
    if frame.isStreaming:
        raise InputNotRecognizedError(
            f"{where}: a stream has no end; read what it wrote, or the topic with spark.read"
        )
    names = [field.name for field in frame.schema]
    for name, (kinds, expected) in _TYPES.items():
        if names.count(name) > 1:
            raise InputNotRecognizedError(f"{where}: two columns are named {name}; rename one")
        if name not in names:
            continue
        found = frame.schema[name].dataType
        is_text = isinstance(found, _TEXT) and name in _ENCODED
        if isinstance(found, kinds) or (is_text and encoding is not None):
            continue
        hint = " (text of hex or base64: unhex() or unbase64() it)" if is_text else ""
        raise InputNotRecognizedError(
            f"{where}: column {name} is {found.simpleString()}, and must be {expected}{hint}"
        )


def with_times_in_utc(frame: DataFrame) -> DataFrame:
    """Return a DataFrame whose `timestamp` is milliseconds, whatever zone its session is in."""
    if "timestamp" not in frame.columns:
        return frame
    column, kind = F.col("timestamp"), frame.schema["timestamp"].dataType
    if isinstance(kind, T.TimestampNTZType):
        since = (column - F.expr(_EPOCH)).cast("interval second")
        return frame.withColumn(
            "timestamp", F.floor(since.cast("decimal(24,6)") * 1000).cast("long")
        )
    if isinstance(kind, T.TimestampType):
        return frame.withColumn("timestamp", F.unix_millis(column))
    return frame


# Which columns archived rows must have.

PLACE: Final = ("topic", "partition")
"""What `--topic-partition` says where rows do not."""
REQUIRED: Final = ("key", "value", *PLACE, "offset")
_TIME: Final = "timestamp"
"""A row may lack its time: then no instant can be asked about."""
_MOST_NAMED: Final = 20


def check_columns(where: str, columns: Collection[str], *, has_place: bool = False) -> None:
    """Refuse rows that lack a column.

    Args:
        where: The file, or files.
        columns: The columns that there are.
        has_place: The topic and the partition are known otherwise.

    Raises:
        InputNotRecognizedError: One is not there.
    """
    needed = [each for each in REQUIRED if not (has_place and each in PLACE)]
    missing = [each for each in needed if each not in columns]
    if not missing:
        return
    if _TIME not in columns:
        missing.append(f"{_TIME} (which may be missing)")
    if missing[:2] == list(PLACE) and len(missing) == 2 + (_TIME not in columns):
        missing[1] += " (say whose rows they are with --topic-partition)"
    named = ", ".join(sorted(map(str, columns))[:_MOST_NAMED]) or "none"
    raise InputNotRecognizedError(
        f"{where}: archived rows need the columns of Spark's Kafka source (key, value, topic, "
        f"partition, offset, timestamp); missing: {', '.join(missing)}; found: {named}. Rename "
        "the columns, as kcat's payload and ts into value and timestamp."
    )
