"""Whether a dump stood still while it was read: brokers roll, clean and delete as they run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.dump.files.storage import storage_of

if TYPE_CHECKING:
    from analytics.dump.files.model import PartitionCopy


def has_changed(partition: PartitionCopy) -> bool:
    """Whether files of a partition came, went or changed since it was listed."""
    entries = storage_of(partition.directory).list(partition.directory)
    now = {entry.name: (entry.size, entry.modified) for entry in entries if not entry.is_folder}
    for segment in partition.segments:
        name = segment.name.rpartition("/")[2]
        if now.pop(name, None) != (segment.size, segment.modified):
            return True
    known = {item.name for item in partition.ignored}
    return partition.whole and any(
        name.endswith((".log", ".swap", ".checkpoint")) and name not in known for name in now
    )
