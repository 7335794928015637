"""What all fuzz targets share: a corpus to begin from, and code that tells the fuzzer where it ran.

Only our own functions are instrumented. A compiled loop is compiled before that: the compiler
cannot read an instrumented function. Its interpreted form is instrumented like any other function,
so a target that runs both forms guides the fuzzer into the loops as well.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FunctionType

from analytics.wire.compiled import Loop

OURS = ("analytics.", "schemas.")

LookAt = Callable[[bytes], None]
WriteCorpus = Callable[[Path], None]


@contextmanager
def loops_run(*, compiled: bool) -> Iterator[None]:
    """Run every loop in one of its two forms, whatever there is for it to do."""
    before = Loop.pays
    Loop.pays = lambda *_: compiled  # type: ignore[method-assign]
    try:
        yield
    finally:
        Loop.pays = before  # type: ignore[method-assign]


def fuzz(look_at: LookAt, write_corpus: WriteCorpus) -> None:
    """Fuzz until stopped, or as libFuzzer's arguments say; the first folder is the corpus."""
    import atheris  # noqa: PLC0415 - only `make fuzz` installs it

    folders = [argument for argument in sys.argv[1:] if not argument.startswith("-")]
    if folders:
        Path(folders[0]).mkdir(parents=True, exist_ok=True)
        write_corpus(Path(folders[0]))
    for loop in [each for each in gc.get_objects() if isinstance(each, Loop)]:
        _ = loop.compiled
    for function in [each for each in gc.get_objects() if isinstance(each, FunctionType)]:
        if (function.__module__ or "").startswith(OURS):
            atheris.instrument_func(function)
    atheris.Setup(sys.argv, look_at)
    atheris.Fuzz()
