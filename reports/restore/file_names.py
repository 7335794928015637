"""Names of files for groups, whose own names may hold anything."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from urllib.parse import quote

ENDING = ".csv"
TAKEN = frozenset({"refused"})
"""What the folder holds besides, without the ending."""

_MOST = 200
_PLAIN = "-_.~"


def file_names(groups: Iterable[str]) -> dict[str, str]:
    """Return a file name for each group, the group's own where that is harmless.

    What is not a letter, a digit or one of `-_.~` is percent-encoded as in a URL, as is the first
    character of a name that begins with a dot or hyphen or is taken. Names that are too long, or
    that differ only in case, are told apart by a digest.
    """
    names: dict[str, str] = {}
    taken = set(TAKEN)
    for group in sorted(groups):
        name = _encoded(group)
        if len(name) > _MOST or name.casefold() in taken:
            digest = hashlib.sha256(group.encode("utf-8", "surrogatepass")).hexdigest()[:16]
            name = f"{name[:_MOST]}%{digest}"
        taken.add(name.casefold())
        names[group] = name + ENDING
    return names


def _encoded(group: str) -> str:
    if not group:
        return "%"
    name = quote(group, safe=_PLAIN, errors="surrogatepass")
    if group[0] in ".-" or name.casefold() in TAKEN:
        name = f"%{ord(group[0]):02X}{quote(group[1:], safe=_PLAIN, errors='surrogatepass')}"
    return name
