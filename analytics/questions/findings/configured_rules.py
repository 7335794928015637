"""What `--config` says of an audit: rules of a team's own, and findings that it accepts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from analytics.errors import InputNotRecognizedError
from schemas.finding_rules import FindingRule, finding_rules
from schemas.model import SchemaError
from schemas.names import nearest_name

# Findings that a team has accepted for a while: by whom, why, and until when.

SUPPRESSIONS = pa.schema(
    [
        *((name, pa.string()) for name in ("rule", "group_id", "topic", "reason", "owner")),
        ("until", pa.timestamp("us", "UTC")),
        ("suppressed", pa.int64()),
    ]
)
"""The table `suppressions`, which rules can read, too."""

EVERY: Final = "*"
"""The pattern that fits any name."""


@dataclass(frozen=True)
class Suppression:
    """One entry.

    Attributes:
        rule: Name of the rule, or a pattern.
        reason: Why it is accepted.
        owner: Who said so.
        until: When that ends.
        group_id: Of which groups, as a pattern; `*` for all.
        topic: Of which topics, as a pattern.
    """

    rule: str
    reason: str
    owner: str
    until: datetime
    group_id: str = EVERY
    topic: str = EVERY

    def patterns(self) -> dict[str, str]:
        """Return the pattern of each column of `findings` that it goes by."""
        return {"rule": self.rule, "group_id": self.group_id, "topic": self.topic}


def suppressed(
    findings: pa.Table,
    entries: Iterable[Suppression],
    as_of: datetime,
    originals: Mapping[str, str] = MappingProxyType({}),
) -> tuple[pa.Table, pa.Table]:
    """Return the findings that are left, and what was suppressed by which entry.

    Args:
        findings: Rows of `findings`.
        entries: What is accepted; one that has ended suppresses nothing.
        as_of: The instant asked about.
        originals: Names that entries go by, where the findings have others.

    Returns:
        The findings that no entry covers, and a row of `SUPPRESSIONS` an entry.
    """
    known = list(entries)
    names = {each: _Names(findings[each], originals) for each in ("rule", "group_id", "topic")}
    left = np.ones(findings.num_rows, np.bool_)
    counts = []
    for entry in known:
        covered = left.copy() if as_of < entry.until else np.zeros_like(left)
        for name, pattern in entry.patterns().items():
            covered &= names[name].like(pattern)
        # What two entries cover counts for the first one.
        left &= ~covered
        counts.append(int(covered.sum()))
    rows = [
        {
            "rule": each.rule,
            "group_id": each.group_id,
            "topic": each.topic,
            "reason": each.reason,
            "owner": each.owner,
            "until": each.until,
            "suppressed": count,
        }
        for each, count in zip(known, counts, strict=True)
    ]
    return findings.filter(pa.array(left)), pa.Table.from_pylist(rows, SUPPRESSIONS)


def accepted_together(parts: Sequence[pa.Table]) -> pa.Table:
    """Return what was suppressed by which entry in all parts of the findings, at least one."""
    place = SUPPRESSIONS.get_field_index("suppressed")
    total = np.sum([each["suppressed"].to_numpy() for each in parts], axis=0, dtype=np.int64)
    return parts[0].set_column(place, SUPPRESSIONS.field(place), pa.array(total, pa.int64()))


class _Names:
    """The names of a column, each compared with a pattern once."""

    def __init__(self, column: pa.ChunkedArray, originals: Mapping[str, str]) -> None:
        """Take the names.

        Args:
            column: Null is compared as an empty name.
            originals: Names to compare in place of those of the column.
        """
        codes = pc.fill_null(column, "").combine_chunks().dictionary_encode()
        self._places = codes.indices.to_numpy()
        self._distinct = codes.dictionary
        self._originals = originals

    def like(self, pattern: str) -> npt.NDArray[np.bool_]:
        """Return which rows have a name that a pattern fits."""
        if pattern == EVERY:
            return np.ones(len(self._places), np.bool_)
        names = (each.as_py() for each in self._distinct)
        fits = [fnmatchcase(self._originals.get(each, each), pattern) for each in names]
        fitting: npt.NDArray[np.bool_] = np.array(fits, np.bool_)[self._places]
        return fitting


_NEEDED = ("rule", "reason", "owner", "until")
_ALLOWED = (*_NEEDED, "group_id", "topic")


def configured_rules(severities: Mapping[str, Any]) -> tuple[FindingRule, ...]:
    """Return all rules, with a team's own severities and thresholds.

    Args:
        severities: By rule: `severity`, `enabled`, and thresholds.

    Raises:
        InputNotRecognizedError: It names a rule or a threshold that is none.
    """
    known = {each.name: each for each in finding_rules()}
    for name, of_rule in severities.items():
        if name not in known:
            near = nearest_name(name, known)
            hint = f"; did you mean {near!r}?" if near else ""
            raise InputNotRecognizedError(f"--config: findings: unknown rule {name!r}{hint}")
        if not isinstance(of_rule, Mapping):
            raise InputNotRecognizedError(f"--config: findings: {name}: must be a mapping")
        try:
            known[name] = known[name].configured(of_rule)
        except SchemaError as error:
            raise InputNotRecognizedError(f"--config: findings: {error}") from error
    return tuple(known.values())


def suppressions_of(entries: Any) -> list[Suppression]:  # noqa: ANN401 - as YAML has it
    """Return the entries of `suppressions:`.

    Raises:
        InputNotRecognizedError: One lacks something, or says something unknown.
    """
    if not isinstance(entries, list | tuple):
        raise InputNotRecognizedError("--config: suppressions: must be a list")
    return [_entry(place, each) for place, each in enumerate(entries, 1)]


def _entry(place: int, entry: Any) -> Suppression:  # noqa: ANN401
    where = f"--config: suppressions: entry {place}"
    if not isinstance(entry, Mapping):
        raise InputNotRecognizedError(f"{where}: must be a mapping")
    missing = [name for name in _NEEDED if not entry.get(name)]
    if missing:
        raise InputNotRecognizedError(f"{where}: {', '.join(missing)} is missing")
    unknown = [str(name) for name in entry if name not in _ALLOWED]
    if unknown:
        raise InputNotRecognizedError(
            f"{where}: unknown: {', '.join(unknown)}; known are {', '.join(_ALLOWED)}"
        )
    rest = {name: str(entry[name]) for name in _ALLOWED if name in entry and name != "until"}
    return Suppression(until=_instant(where, entry["until"]), **rest)


def _instant(where: str, value: Any) -> datetime:  # noqa: ANN401
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=UTC)
    if isinstance(value, date):
        return datetime.combine(value, time(), UTC)
    try:
        found = datetime.fromisoformat(str(value))
    except ValueError as error:
        raise InputNotRecognizedError(f"{where}: until is {value!r}, which is no date") from error
    return found if found.tzinfo else found.replace(tzinfo=UTC)
