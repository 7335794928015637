"""Where the records are that show a finding, and how Kafka's own tool prints them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Final

from reports.page.model import Record
from reports.page.texts import harmless
from schemas import CLUSTER_METADATA, CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE

_DECODERS: Final = {
    CONSUMER_OFFSETS: "--offsets-decoder",
    TRANSACTION_STATE: "--transaction-log-decoder",
    SHARE_GROUP_STATE: "--share-group-state-decoder",
    CLUSTER_METADATA: "--cluster-metadata-decoder",
}

Row = Mapping[str, Any]


class Segments:
    """The files of a dump by what they hold, as the manifest has them."""

    def __init__(self, manifest: Row) -> None:
        self._manifest = manifest

    def records_of(self, evidence: Row) -> Iterator[Record]:
        """Yield where a record is; one that may be on either of two lines is yielded twice.

        Args:
            evidence: Of a finding: `topic`, `partition`, `offset`, and as far as they are known
                `copy`, `segment`, `batch_position`.
        """
        topic, partition, offset = (evidence[name] for name in ("topic", "partition", "offset"))
        if topic is None or partition is None or offset is None:
            return
        place = f"{topic}-{partition}@{offset}"
        if evidence["segment"] is not None and evidence["copy"] is not None:
            position = evidence["batch_position"]
            at = f"{evidence['copy']}: {evidence['segment']}"
            where = at if position is None else f"{at}, batch at byte {position}"
            command = self._command(evidence["copy"], evidence["segment"], topic, offset)
            yield Record(harmless(place), harmless(where), command)
            return
        copies = self._copies_of(topic, partition, offset)
        for copy, segment in copies:
            both = "; the lines of both copies part before it" if len(copies) > 1 else ""
            where = f"{copy}: {segment}{both}"
            yield Record(
                harmless(place), harmless(where), self._command(copy, segment, topic, offset)
            )
        if not copies:
            yield Record(harmless(place), "", "")

    def _copies_of(self, topic: str, partition: int, offset: int) -> list[tuple[str, str]]:
        """Return the segment with a record on the line in force, and on one that parted before."""
        found = []
        for each in self._partitions.get((topic, partition), ()):
            parted = self._parted.get((topic, partition, each["copy"]))
            if each.get("is_leading", True) or (parted is not None and parted <= offset):
                segment = _segment_with(each, offset)
                if segment is not None:
                    found.append((each["copy"], segment))
        return found

    def _command(self, copy: str, segment: str, topic: str, offset: int) -> str:
        folder = self._folders.get(copy, copy)
        path = shlex.quote(f"{folder}/{segment}")
        decoder = _DECODERS.get(topic, "--print-data-log")
        return harmless(
            f"kafka-dump-log --files {path} --deep-iteration {decoder} | grep -w 'offset: {offset}'"
        )

    @cached_property
    def _partitions(self) -> dict[tuple[str, int], list[Row]]:
        found: dict[tuple[str, int], list[Row]] = {}
        for each in self._manifest["partitions"]:
            found.setdefault((each["topic"], each["partition"]), []).append(each)
        return found

    @cached_property
    def _parted(self) -> dict[tuple[str, int, str], int]:
        return {
            (each["topic"], each["partition"], each["copy"]): each["diverges_at"]
            for each in self._manifest.get("divergences", ())
        }

    @cached_property
    def _folders(self) -> dict[str, str]:
        return {
            each["name"]: each["log_dirs"][0]
            for each in self._manifest.get("copies", ())
            if len(each.get("log_dirs", ())) == 1
        }


def _segment_with(partition: Row, offset: int) -> str | None:
    """Return the name of the segment in which an offset is."""
    if not partition.get("end_offset") or offset >= partition["end_offset"]:
        return None
    begins = {
        int(stem): each["name"]
        for each in partition.get("files", ())
        if (stem := each["name"].rpartition("/")[2].removesuffix(".log")).isdecimal()
    }
    before = [each for each in begins if each <= offset]
    return begins[max(before)] if before else None
