"""Libraries that others would load for nothing, withheld until Spark starts.

PyArrow asks of plain values whether they are pandas', and imports pandas to ask: a second, two
thirds of what a question to finished tables takes. PySpark insists on pandas, and gets it. Numba
looks whether SciPy has linear algebra for it, a third of its loading; our loops have none.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

_LIBRARIES = frozenset({"pandas", "scipy"})


class _Withheld(MetaPathFinder):
    """Says that they are not there, which all who can do without take for an answer."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 - the protocol's
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        if fullname in _LIBRARIES:
            raise ModuleNotFoundError(f"{fullname} is not needed yet", name=fullname)
        return None


_WITHHELD = _Withheld()


def withhold_libraries() -> None:
    """Have imports of pandas and SciPy fail; what is loaded already stays."""
    if _WITHHELD not in sys.meta_path:
        sys.meta_path.insert(0, _WITHHELD)


def release_libraries() -> None:
    """Have their imports succeed again."""
    if _WITHHELD in sys.meta_path:
        sys.meta_path.remove(_WITHHELD)
