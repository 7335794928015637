"""Loops compiled to machine code: for what numpy has no step for.

Where each place depends on the one before (the chain of batches in a file, the fields of a record)
a loop is what the format says, and Python's own is a hundred times too slow. Everything else stays
numpy and Arrow: reading a column from known places costs what memory costs, in any language.

What is compiled is kept in numba's cache, beside the module or, where that is not writable, in the
user's cache folder (`NUMBA_CACHE_DIR` names another); with none, each process compiles again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import numba

if TYPE_CHECKING:
    from collections.abc import Callable

    Loop = TypeVar("Loop", bound=Callable[..., object])

BYTES = "Array(uint8, 1, 'C', readonly=True)"
"""How a signature calls bytes that are only read."""

Int = Any
"""A whole number in a compiled loop, where Python's and numpy's are one type."""

# Arrays come and go with the caller: counting references to them in every turn of a loop, which is
# what this option is for, takes five times as long as the loop.
_OPTIONS: Final[dict[str, Any]] = {"_nrt": False}


def compiled(signature: str) -> Callable[[Loop], Loop]:
    """Compile a function of numbers and arrays, once and for these types only.

    Indices are not checked: the function itself keeps every one inside its array. It makes no
    arrays, its caller does.

    Args:
        signature: In numba's words, as ``"int64(int64[::1])"``.
    """

    def compile_(loop: Loop) -> Loop:
        try:
            return _compile(loop, signature, cache=True)
        except RuntimeError:
            # No folder for a cache can be written.
            return _compile(loop, signature, cache=False)

    return compile_


def inlined(part: Loop) -> Loop:
    """Make a function a part of the compiled ones that call it, in the same module."""
    return cast("Loop", numba.njit(inline="always", **_OPTIONS)(part))


def _compile(loop: Loop, signature: str, *, cache: bool) -> Loop:
    return cast("Loop", numba.njit(signature, cache=cache, **_OPTIONS)(loop))
