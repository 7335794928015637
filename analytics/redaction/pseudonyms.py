"""Pseudonyms: the same key and name give the same one, and nobody without the key tells whose."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Mapping
from typing import Final

from schemas.identities import is_public, kinds

LEAST_KEY_BYTES: Final = 16
_DIGITS: Final = 12


class Pseudonyms:
    """Pseudonyms under one key, by kind of name.

    Args:
        key: At least `LEAST_KEY_BYTES` bytes that only the owner of the names has.

    Raises:
        ValueError: The key is shorter.
    """

    def __init__(self, key: bytes) -> None:
        if len(key) < LEAST_KEY_BYTES:
            raise ValueError(f"a key has at least {LEAST_KEY_BYTES} bytes, and this has {len(key)}")
        self._key = key
        self._known: dict[tuple[str, str], str] = {}

    def of(self, kind: str, name: str) -> str:
        """Return the pseudonym of a name; Kafka's own names and "" stay as they are."""
        if is_public(name):
            return name
        known = self._known.get((kind, name))
        if known is None:
            text = f"{kind}\0{name}".encode("utf-8", "surrogatepass")
            digest = hmac.new(self._key, text, hashlib.sha256).hexdigest()
            known = self._known[kind, name] = f"{kind}-{digest[:_DIGITS]}"
        return known

    def of_text(self, names: Mapping[str, Iterable[str]]) -> dict[str, str]:
        """Return what stands for each name in text.

        Args:
            names: By kind; of a name of several kinds the first kind counts.
        """
        found: dict[str, str] = {}
        for kind in kinds():
            for name in names.get(kind, ()):
                if not is_public(name):
                    found.setdefault(name, self.of(kind, name))
        return found
