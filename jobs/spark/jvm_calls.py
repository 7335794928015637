"""What PySpark asks the JVM for with every column is asked for once, and lists go there whole.

PySpark makes a query out of small messages to the JVM. For every column it has the JVM look up a
function by its name, then make the column; every list travels element by element. Of the tens of
thousands of messages that a replay takes most were sent before (`benchmarks/small_replay.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import SparkSession

FUNCTIONS = ("org.apache.spark.sql.functions", "functions")
"""Under both names PySpark looks for the functions that make columns."""
HELPERS = ("PythonUtils", "PythonSQLUtils")
"""PySpark's own classes on the side of the JVM."""

_AT_ONCE = 10
"""As many elements as Java's `List.of` takes by themselves."""
_SAME_WHEN_EQUAL = (str, int, bool, type(None))
"""Types whose equal values, of one type, are the same literal."""


class _Remembered:
    """A class of the JVM whose members are looked up once."""

    def __init__(self, java_class: Any) -> None:  # noqa: ANN401 - py4j has no types
        self._java_class = java_class

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        member = getattr(self._java_class, name)
        setattr(self, name, member)
        return member


class _Functions(_Remembered):
    """Makes columns: one by its name, or a plain literal, is a value and serves everywhere."""

    def __init__(self, java_class: Any) -> None:  # noqa: ANN401
        super().__init__(java_class)
        self._col, self._lit = java_class.col, java_class.lit
        self._named: dict[str, Any] = {}
        # By type too: True equals 1, and is another literal.
        self._literals: dict[tuple[type, Any], Any] = {}

    def col(self, name: str) -> Any:  # noqa: ANN401
        if name not in self._named:
            self._named[name] = self._col(name)
        return self._named[name]

    def lit(self, value: Any) -> Any:  # noqa: ANN401
        key = (type(value), value)
        if key[0] not in _SAME_WHEN_EQUAL:
            return self._lit(value)
        if key not in self._literals:
            self._literals[key] = self._lit(value)
        return self._literals[key]


class _Lists(_Remembered):
    """Turns lists into those of Scala, ten elements a message."""

    def __init__(self, java_class: Any, jvm: Any) -> None:  # noqa: ANN401
        super().__init__(java_class)
        self._to_seq, self._list_of = java_class.toSeq, jvm.java.util.List.of
        self._array_list = jvm.java.util.ArrayList

    def toSeq(self, elements: Iterable[Any]) -> Any:  # noqa: ANN401, N802 - its name there
        values = list(elements)
        if not values or any(value is None for value in values):
            return self._to_seq(values)
        first, *others = (
            self._list_of(*values[start : start + _AT_ONCE])
            for start in range(0, len(values), _AT_ONCE)
        )
        if not others:
            return self._to_seq(first)
        whole = self._array_list(first)
        for part in others:
            whole.addAll(part)
        return self._to_seq(whole)


def send_less(session: SparkSession) -> None:
    """Let PySpark send the JVM of this session fewer messages; what they make is the same.

    Nothing public leads to these classes: where another PySpark keeps them elsewhere, or has no
    JVM beside it (Spark Connect), everything is sent as ever.
    """
    from py4j.java_gateway import JavaClass  # noqa: PLC0415 - heavy: only where Spark runs

    jvm: Any = getattr(session, "_jvm", None)
    found = getattr(jvm, FUNCTIONS[0], None)
    if isinstance(found, _Remembered):
        # A JVM outlives its session, and the next one finds what the first one made.
        return
    classes = [getattr(jvm, name, None) for name in (*FUNCTIONS, *HELPERS)]
    if not all(isinstance(each, JavaClass) for each in classes):
        return
    functions = _Functions(found)
    for name in FUNCTIONS:
        setattr(jvm, name, functions)
    lists, others = HELPERS
    setattr(jvm, lists, _Lists(getattr(jvm, lists), jvm))
    setattr(jvm, others, _Remembered(getattr(jvm, others)))
