"""Loops compiled to machine code, where there is enough for them to do.

Where each place depends on the one before (the chain of batches in a file, the fields of a record)
a loop is what the format says, and Python's own is a hundred times too slow for gigabytes. All else
stays numpy and Arrow: reading a column from known places costs what memory costs, in any language.

Loading a compiler takes longer than reading a small dump. So a loop begins interpreted, and is
compiled once it has been called for many fields, or the compiler is there for another one. What is
compiled is kept in numba's cache: beside the module, or where that cannot be written in the user's
cache folder (or in `NUMBA_CACHE_DIR`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, ParamSpec, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Concatenate

    import numpy as np
    from numpy.typing import NDArray

    Bytes = NDArray[np.uint8] | memoryview
    """What a loop reads: an array where it is compiled."""
    Numbers = NDArray[np.int64] | memoryview
    """The same, where it reads numbers of 64 bits."""

Params = ParamSpec("Params")
Result = TypeVar("Result")

BYTES: Final = "Array(uint8, 1, 'C', readonly=True)"
"""How a signature calls bytes that are only read."""
WORTH_COMPILING: Final = 300_000
"""Fields; a few times as many take as long interpreted as loading the compiler does."""

# Arrays come and go with the caller: counting references to them in every turn of a loop, which is
# what this option is for, takes five times as long as the loop.
_OPTIONS: Final[dict[str, Any]] = {"_nrt": False}


class Loop(Generic[Params, Result]):
    """A function over bytes, of numbers and arrays, that is compiled when it is worth it.

    Its first argument is the bytes. It makes no arrays, and keeps every index inside its array
    itself: nothing checks them. Numbers are 64 bits wide; they must never need more.
    """

    compiler_is_loaded: ClassVar[bool] = False

    def __init__(
        self,
        body: Callable[Concatenate[Any, Params], Result],
        signature: str,
        parts: tuple[Callable[..., object], ...],
    ) -> None:
        self.interpreted = body
        self._signature, self._parts = signature, parts
        self._compiled: Callable[Concatenate[Any, Params], Result] | None = None
        self._fields = 0

    def __call__(
        self,
        fields: int,
        data: NDArray[np.uint8 | np.int64],
        *args: Params.args,
        **kwargs: Params.kwargs,
    ) -> Result:
        """Run the loop, which will read about so many fields."""
        if self.pays(fields):
            return self.compiled(data, *args, **kwargs)
        # Of a view Python takes its own numbers, which do not wrap.
        return self.interpreted(data.data, *args, **kwargs)

    def pays(self, fields: int) -> bool:
        """Whether to compile the loop, or it is, now that it could read so many more fields."""
        self._fields += fields
        return Loop.compiler_is_loaded or self._fields >= WORTH_COMPILING

    @property
    def compiled(self) -> Callable[Concatenate[Any, Params], Result]:
        """The machine code, for these types only."""
        if self._compiled is None:
            try:
                self._compiled = self._compile(cache=True)
            except (RuntimeError, OSError):
                # There is no folder for a cache, or no room in it.
                self._compiled = self._compile(cache=False)
        return self._compiled

    def _compile(self, *, cache: bool) -> Callable[Concatenate[Any, Params], Result]:
        import numba  # noqa: PLC0415 - it takes its time
        from numba.extending import register_jitable  # noqa: PLC0415

        Loop.compiler_is_loaded = True
        for part in self._parts:
            register_jitable(**_OPTIONS)(part)
        compiler: Any = numba.njit(self._signature, cache=cache, **_OPTIONS)
        return cast("Callable[Concatenate[Any, Params], Result]", compiler(self.interpreted))


def compiled(
    signature: str, *parts: Callable[..., object]
) -> Callable[[Callable[Concatenate[Any, Params], Result]], Loop[Params, Result]]:
    """Make a function a `Loop`.

    Args:
        signature: In numba's words, as ``"int64(int64[::1])"``.
        parts: Functions of the same module that it calls.
    """

    def loop_of(body: Callable[Concatenate[Any, Params], Result]) -> Loop[Params, Result]:
        return Loop(body, signature, parts)

    return loop_of
