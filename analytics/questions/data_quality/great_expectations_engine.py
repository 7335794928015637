"""great-expectations, made to judge one table: no context on disk, no network, no word on stderr.

Columns come as pandas columns that are Arrow's own: a 64-bit number stays what it is. What checks
of our own count, in all tables, comes as one column, expected to be 0. It takes seconds to load and
is loaded when there is something that it may judge otherwise than passed, or when it is asked for.
"""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cached_property
from io import StringIO
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from analytics.libraries_later import release_libraries
from schemas.expectation_suites import IN_SET

if TYPE_CHECKING:
    from schemas.expectation_suites import Expectation

_CONNECT: Final = "pyspark.sql.connect"
_RAISED: Final = "raised_exception"
_UNEXPECTED: Final = "unexpected"
_EXACT: Final = 1 << 53
"""Up to it floats tell integers apart."""
NO_RESULT: Final = "great-expectations knows no such check"
INEXACT: Final = "its bounds are beyond 2^53, where great-expectations compares floats"


@dataclass(frozen=True)
class Judged:
    """What came of one expectation.

    Attributes:
        is_met: Whether it was met; None where the check itself broke.
        unexpected: How many rows, or values, were not as expected; None where that is not counted.
        example: One of them; None where there is none.
        reason: Why the check broke.
    """

    is_met: bool | None
    unexpected: int | None = None
    example: Any = None
    reason: str | None = None


@dataclass(frozen=True)
class Engine:
    """One data source, used for every table.

    Attributes:
        of_zeros: Let the library judge counts also where all of them are 0, as somebody asks for
            it; else it is not loaded for them.
    """

    of_zeros: bool = False

    def judge(self, rows: pa.Table, expected: Sequence[Expectation]) -> list[Judged]:
        """Judge types of great-expectations."""
        told = [
            {"type": each.type, "kwargs": dict(each.kwargs), "meta": {"place": place}}
            for place, each in enumerate(expected)
        ]
        return self._judge(rows, told)

    def judge_counts(self, counts: Sequence[int]) -> list[bool]:
        """Judge what checks of our own counted: none may have found a row that is not as expected.

        One validation for all of them: the library takes milliseconds for each expectation.

        Args:
            counts: Of each check, how many rows are not as expected.
        """
        if not any(counts) and not self.of_zeros:
            # What `told` below says of 0; a test holds this against the library (decision 0011).
            return [True] * len(counts)
        if not counts:
            return []
        told = {"type": IN_SET, "kwargs": {"column": _UNEXPECTED, "value_set": [0]}, "meta": {}}
        release_libraries()
        with quiet_library():
            rows = pa.table({_UNEXPECTED: pa.array(counts, pa.int64())})
            (document,) = self._validated(rows, [told], "COMPLETE")
        failed = set(document["result"]["unexpected_index_list"])
        return [place not in failed for place in range(len(counts))]

    def _judge(self, rows: pa.Table, expectations: Sequence[Mapping[str, Any]]) -> list[Judged]:
        if not expectations:
            return []
        # No Spark may have been started before: what is withheld until then is needed here.
        release_libraries()
        with quiet_library():
            suite, found = self._suite, [Judged(None, reason=NO_RESULT)] * len(expectations)
            sound = []
            for place, each in enumerate(expectations):
                reason = _inexact(each)
                try:
                    if reason is None:
                        suite([each])
                        sound.append(each)
                except Exception as error:  # noqa: BLE001 - whatever a team's suite says
                    reason = _line(error)
                if reason is not None:
                    found[place] = Judged(None, reason=reason)
            try:
                results = self._validated(rows, sound, "SUMMARY") if sound else []
            except Exception as error:  # noqa: BLE001 - one check must not take the others along
                results = []
                for each in sound:
                    found[each["meta"]["place"]] = Judged(None, reason=_line(error))
            for document in results:
                place = document["expectation_config"]["meta"]["place"]
                found[place] = _judged(document)
        return found

    def _validated(
        self, rows: pa.Table, expectations: Sequence[Mapping[str, Any]], result_format: str
    ) -> list[dict[str, Any]]:
        import pandas as pd  # noqa: PLC0415 - heavy, as what follows

        frame = rows.to_pandas(types_mapper=pd.ArrowDtype)
        batch = self._batches.get_batch(batch_parameters={"dataframe": frame})
        validated = batch.validate(self._suite(expectations), result_format=result_format)
        return [each.to_json_dict() for each in validated.results]

    @staticmethod
    def _suite(expectations: Sequence[Mapping[str, Any]]) -> Any:  # noqa: ANN401
        from great_expectations import ExpectationSuite  # noqa: PLC0415

        return ExpectationSuite(name="suite", expectations=[dict(each) for each in expectations])

    @cached_property
    def _batches(self) -> Any:  # noqa: ANN401
        import great_expectations as gx  # noqa: PLC0415
        from great_expectations.data_context.types.base import ProgressBarsConfig  # noqa: PLC0415

        context = gx.get_context(mode="ephemeral")
        context.variables.progress_bars = ProgressBarsConfig(globally=False)
        source = context.data_sources.add_pandas("tables")
        return source.add_dataframe_asset("table").add_batch_definition_whole_dataframe("whole")


@contextmanager
def quiet_library() -> Iterator[None]:
    """Let great-expectations work without a word, and without asking anybody."""
    # Read when it is imported; nothing is sent, and no identity is kept in the home directory.
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    withheld = _CONNECT not in sys.modules
    if withheld:
        # Imported only to name its types. Where it lacks grpc and the main module has no file, its
        # import ends the process.
        sys.modules[_CONNECT] = None  # type: ignore[assignment]
    logger = logging.getLogger("great_expectations")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        # What it imports has something to say, too.
        with warnings.catch_warnings(), redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(before)
        if withheld:
            del sys.modules[_CONNECT]


def _inexact(expectations: Mapping[str, Any]) -> str | None:
    bounds = [expectations["kwargs"].get(name) for name in ("min_value", "max_value")]
    is_far = any(isinstance(each, int | float) and abs(each) > _EXACT for each in bounds)
    return INEXACT if is_far else None


def _judged(document: Mapping[str, Any]) -> Judged:
    raised = document["exception_info"]
    # By metric where a metric failed.
    each = raised if _RAISED in raised else next(iter(raised.values()), {})
    if each.get(_RAISED):
        return Judged(None, reason=_line(each.get("exception_message") or "the check failed"))
    result = document["result"]
    examples = result.get("partial_unexpected_list") or []
    example = examples[0] if examples else result.get("observed_value")
    holds = bool(document["success"])
    return Judged(holds, result.get("unexpected_count"), None if holds else example)


def _line(error: object) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
