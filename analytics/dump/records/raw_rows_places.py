"""Where an archived row says that it was: its topic, partition, offset and time, or what is wrong.

A row that does not say where it was may be any row of its partition, or of any. It is kept and
counted, and nothing else fails because of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F
from pyspark.sql import types as T

from analytics.dump.records.raw_rows_files import FLAW

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

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
    partition, offset = _number(frame, "partition"), _number(frame, "offset")
    time, is_time = _milliseconds(frame)
    flaws = [
        F.col(FLAW),
        _flaw("topic", topic.rlike(_TOPIC), topic, "the name of a topic"),
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
            "topic": F.when(topic.rlike(_TOPIC), topic),
        }
    )
    return found.withColumns(
        {
            "partition": F.when(partition.between(0, _MOST_PARTITION), partition).cast("int"),
            "offset": F.when(offset.between(0, _MOST_OFFSET), offset),
        }
    )


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
