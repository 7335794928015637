"""Kafka releases: what shows that one wrote a dump, and how they replay and load it differently.

Rules of replaying are in `rules/replay_rules.json`, in which lines of releases differ; those of
loading in `rules/loading_rules.json`, in which patch releases do as well.

The release that wrote a dump, as far as records show it: a lower bound, with its evidence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from msgspec import field

from schemas.reading import Explained, SchemaError, Shape, load

if TYPE_CHECKING:
    from collections.abc import Iterable


OLDEST = "0.9"
"""The oldest release whose rules are known."""


def release_key(release: str) -> tuple[int, ...]:
    """Return what orders releases: "3.9" before "4.0", "0.10.1" after "0.9"."""
    return tuple(int(part) for part in release.split("."))


def is_line(release: str) -> bool:
    """Whether a release is named without its patch ("4.1", "0.10.2"): it may be any of its line."""
    parts = release_key(release)
    return len(parts) <= _parts_of_a_line(parts)


def line_of(release: str) -> tuple[int, ...]:
    """Return the line of a release: (4, 1) of "4.1.2", (0, 10, 2) of "0.10.2.1"."""
    parts = release_key(release)
    return parts[: _parts_of_a_line(parts)]


def patch_before(release: str) -> str:
    """Return the patch release before one that is not the first of its line: 4.1.1 of "4.1.2"."""
    *line, patch = release_key(release)
    return ".".join(str(part) for part in (*line, patch - 1))


def _parts_of_a_line(parts: tuple[int, ...]) -> int:
    return 3 if parts[:1] == (0,) else 2


class RecordEvidence(Shape, frozen=True):
    """Records of a table, in a version or layout where given, which no older release writes."""

    topic: str
    table: str
    at_least: str
    version: int | None = None
    layout: str | None = None

    def fits(self, topic: str, table: str, version: int, layout: str | None) -> bool:
        """Whether such records are this evidence; a tombstone (version -1) never is."""
        return (
            version >= 0
            and (topic, table) == (self.topic, self.table)
            and self.version in (None, version)
            and self.layout in (None, layout)
        )


class FieldEvidence(Shape, frozen=True):
    """A tagged field of a value that no older release sets; one that is not set is not stored."""

    topic: str
    table: str
    column: str
    unset: int
    at_least: str


class MetadataVersion(Shape, frozen=True):
    """The first level of the feature metadata.version that a release introduced.

    The release before it knows the level already, and writes it where unstable feature versions
    are enabled: a level shows that older release only.
    """

    first_level: int
    of: str
    at_least: str


class _Evidence(Explained, frozen=True):
    records: tuple[RecordEvidence, ...]
    fields: tuple[FieldEvidence, ...]
    metadata_versions: tuple[MetadataVersion, ...]


@cache
def _evidence() -> _Evidence:
    return load(_Evidence, "rules/kafka_versions.json")


def record_evidence() -> tuple[RecordEvidence, ...]:
    """Return what records tell."""
    return _evidence().records


def field_evidence() -> tuple[FieldEvidence, ...]:
    """Return what fields of values tell, where they are set."""
    return _evidence().fields


def metadata_versions() -> tuple[MetadataVersion, ...]:
    """Return what the feature metadata.version tells, lowest level first."""
    return _evidence().metadata_versions


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


class _Fault(Explained, frozen=True):
    stops_loading: bool
    of_itself: bool = False


class _Undecoded(Explained, frozen=True):
    stops_loading: frozenset[str]


class _Faults(Explained, frozen=True):
    faults: Mapping[str, _Fault]
    undecoded: _Undecoded


@cache
def load_faults() -> LoadFaults:
    """Return the faults as they are shipped, of `rules/load_faults.json`."""
    shipped = load(_Faults, "rules/load_faults.json")
    stopping = frozenset(name for name, each in shipped.faults.items() if each.stops_loading)
    return LoadFaults(
        stopping=stopping,
        tolerated=frozenset(shipped.faults) - stopping,
        undecoded=shipped.undecoded.stops_loading,
        of_earlier=frozenset(name for name, each in shipped.faults.items() if not each.of_itself),
    )


_REPLAY = "rules/replay_rules.json"
_LOADING = "rules/loading_rules.json"
RuleValue = str | int


@dataclass(frozen=True)
class RuleDifference:
    """A rule in which releases differ.

    Attributes:
        about: What its values mean.
        values: From which release on it has which, oldest first.
    """

    about: str
    values: tuple[tuple[str, RuleValue], ...]


@dataclass(frozen=True)
class PatchReleases:
    """Releases of a line between which no loading rule changes.

    Attributes:
        since: The first of them; None where the release is known with its patch, or where rules do
            not tell the patches of its line apart.
        values: The value of every loading rule.
    """

    since: str | None
    values: Mapping[str, RuleValue]


def replay_rule_values(release: str) -> dict[str, RuleValue]:
    """Return the value of every replay rule in a release ("3.9", "4.3.1").

    Raises:
        SchemaError: The release is older than any that a rule knows.
    """
    return _values(_REPLAY, release)


def loading_rule_values(release: str) -> tuple[PatchReleases, ...]:
    """Return the loading rules of a release; of each patch, where it is named without one.

    Raises:
        SchemaError: The release is older than any that a rule knows.
    """
    if not is_line(release):
        return (PatchReleases(None, _values(_LOADING, release)),)
    line = line_of(release)
    first = ".".join(str(part) for part in (*line, 0))
    patches = {
        since: release_key(since)
        for rule in _differences(_LOADING).values()
        for since, _ in rule.values
        if line_of(since) == line and not is_line(since)
    }
    starts = sorted({first: release_key(first), **patches}.items(), key=lambda each: each[1])
    found: list[PatchReleases] = []
    for since, _ in starts:
        values = _values(_LOADING, since)
        if not found or found[-1].values != values:
            found.append(PatchReleases(since, values))
    return tuple(found) if len(found) > 1 else (PatchReleases(None, found[0].values),)


def replay_rule_differences() -> Mapping[str, RuleDifference]:
    """Return every replay rule by name, as they are shipped."""
    return _differences(_REPLAY)


def loading_rule_differences() -> Mapping[str, RuleDifference]:
    """Return every loading rule by name, as they are shipped."""
    return _differences(_LOADING)


def _values(file: str, release: str) -> dict[str, RuleValue]:
    return {
        name: _value(file, name, rule.values, release) for name, rule in _differences(file).items()
    }


def _value(
    file: str, name: str, values: tuple[tuple[str, RuleValue], ...], release: str
) -> RuleValue:
    known = [value for since, value in values if release_key(since) <= release_key(release)]
    if not known:
        raise SchemaError(f"has no value for release {release}", file=file, field=name)
    return known[-1]


class _From(Shape, frozen=True):
    since: str = field(name="from")
    value: RuleValue


class _Difference(Explained, frozen=True):
    values: tuple[_From, ...]

    def __post_init__(self) -> None:
        since = [release_key(each.since) for each in self.values]
        if not since or since != sorted(set(since)):
            raise ValueError("names its releases in ascending order")


class _Differences(Explained, frozen=True):
    rules: Mapping[str, _Difference]


@cache
def _differences(file: str) -> Mapping[str, RuleDifference]:
    rules = {
        name: RuleDifference(rule.about, tuple((each.since, each.value) for each in rule.values))
        for name, rule in load(_Differences, file).rules.items()
    }
    if file == _REPLAY:
        for name, rule in rules.items():
            if not all(is_line(since) for since, _ in rule.values):
                # What is replayed has one answer for a release that is named without its patch.
                raise SchemaError("changes with a patch release", file=file, field=name)
    return rules


class RecordFormat(NamedTuple):
    """Records of one table, version and layout; version -1 is a tombstone."""

    topic: str
    table: str
    version: int
    layout: str | None


class KafkaVersion(NamedTuple):
    """``at_least`` is the newest release that something shows, None when nothing shows any."""

    at_least: str | None
    evidence: list[str]


NOTHING_SHOWN = KafkaVersion(None, [])


def infer_kafka_version(
    formats: Iterable[RecordFormat],
    metadata_levels: Iterable[int],
    fields_set: Iterable[FieldEvidence] = (),
) -> KafkaVersion:
    """Infer the release from decoded records, levels of metadata.version and fields that are set.

    Releases are newer than or equal to what they write: a level says what the cluster was allowed
    to write, and an upgraded broker keeps old records (``MetadataVersion``, ``GroupVersion``).
    """
    found: dict[str, str] = {}
    for each in formats:
        for evidence in record_evidence():
            if evidence.fits(*each):
                found[_words(each)] = evidence.at_least
    for level in metadata_levels:
        known = [each for each in metadata_versions() if each.first_level <= level]
        if known:
            found[f"metadata.version {level}, of {known[-1].of}"] = known[-1].at_least
    for one in fields_set:
        found[f"{one.column} set in {one.table}"] = one.at_least
    if not found:
        return NOTHING_SHOWN
    newest = max(found.values(), key=release_key)
    return KafkaVersion(newest, sorted(what for what, at in found.items() if at == newest))


def _words(record_format: RecordFormat) -> str:
    layout = f", layout {record_format.layout}" if record_format.layout else ""
    return f"{record_format.table} in version {record_format.version}{layout}"
