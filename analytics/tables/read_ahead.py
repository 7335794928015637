"""Pieces of tables, of which the next is made while one is looked at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

Piece = TypeVar("Piece")

_NO_MORE: Final = object()


def one_ahead(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Yield pieces in their order; one more than is taken is made meanwhile, in a thread.

    What making them raises is raised where that piece would come. Who takes no more of them, and
    closes the iterator, waits for the one that is being made.
    """
    rest = iter(pieces)
    with ThreadPoolExecutor(1) as maker:
        coming = maker.submit(next, rest, _NO_MORE)
        while (piece := coming.result()) is not _NO_MORE:
            coming = maker.submit(next, rest, _NO_MORE)
            yield piece  # type: ignore[misc]
