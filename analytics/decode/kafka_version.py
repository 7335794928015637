"""The release that wrote a dump, as far as records show it: a lower bound, with its evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from schemas.releases import FieldEvidence, metadata_versions, record_evidence, release_key

if TYPE_CHECKING:
    from collections.abc import Iterable


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
    for field in fields_set:
        found[f"{field.column} set in {field.table}"] = field.at_least
    if not found:
        return NOTHING_SHOWN
    newest = max(found.values(), key=release_key)
    return KafkaVersion(newest, sorted(what for what, at in found.items() if at == newest))


def _words(record_format: RecordFormat) -> str:
    layout = f", layout {record_format.layout}" if record_format.layout else ""
    return f"{record_format.table} in version {record_format.version}{layout}"
