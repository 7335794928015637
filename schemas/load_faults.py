"""What keeps a coordinator from loading a partition, read from `rules/load_faults.json`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

_FILE = "rules/load_faults.json"


@dataclass(frozen=True)
class LoadFaults:
    """Faults by what brokers do about them.

    Attributes:
        stopping: Faults of records that decode, for which a broker refuses the whole partition.
        tolerated: Those that it passes over.
        undecoded: Reasons why a record does not decode for which it refuses the partition.
        of_earlier: Faults of records that do not fit those before them; others are of the record
            alone, whatever came before it.
    """

    stopping: frozenset[str]
    tolerated: frozenset[str]
    undecoded: frozenset[str]
    of_earlier: frozenset[str]


@cache
def load_faults() -> LoadFaults:
    """Return the faults as they are shipped."""
    document: dict[str, Any] = json.loads(
        files(__package__).joinpath(_FILE).read_text(encoding="utf-8")
    )
    stops = {name: each["stops_loading"] for name, each in document["faults"].items()}
    stopping = frozenset(name for name, each in stops.items() if each)
    return LoadFaults(
        stopping=stopping,
        tolerated=frozenset(stops) - stopping,
        undecoded=frozenset(document["undecoded"]["stops_loading"]),
        of_earlier=frozenset(
            name for name, each in document["faults"].items() if not each.get("of_itself", False)
        ),
    )
