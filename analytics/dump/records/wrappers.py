"""What compressed messages of magic 0 and 1 hold, as far as their offsets go.

Their headers give the last offset only, and in magic 0 none that counts. Whether a log's offsets
make sense cannot be judged without the others, so these few are decompressed to look.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from analytics.dump.batches.damage import DamageReason
from analytics.dump.records.message_sets import Wrapper, open_wrapper, value_of_wrapper
from analytics.dump.records.regions import Arena, Expansion

if TYPE_CHECKING:
    from analytics.dump.batches.limits import Limits
    from analytics.dump.files.byte_source import ByteSource
    from analytics.dump.records.raw_records import Batches

_ARENA: Final = 1 << 20


def complete_wrappers(source: ByteSource, batches: Batches, limits: Limits) -> None:
    """Write first offset, last offset and count of compressed messages into their rows.

    Rows of what cannot be opened stay as they are.
    """
    expansion = Expansion(limits)
    packed = (batches.magic < 2) & (batches.codec != 0) & (batches.size <= limits.max_batch_bytes)
    for row in np.flatnonzero(packed).tolist():
        size, magic = int(batches.size[row]), int(batches.magic[row])
        data = source.array(int(batches.position[row]), size)
        value = value_of_wrapper(data.data[:size], magic)
        if value is None:
            continue
        expansion.earn(size)
        arena = Arena(_ARENA, limits, expansion)
        laid = arena.add(int(batches.codec[row]), data.data[slice(*value)])
        if laid is None or isinstance(laid, DamageReason):
            continue
        wrapper = Wrapper(row, magic, int(batches.last_offset[row]))
        messages = open_wrapper(arena.data, *laid, wrapper, limits.max_batch_records)
        if not isinstance(messages, DamageReason):
            batches.base_offset[row] = messages.offset[0]
            batches.last_offset[row] = messages.offset[-1]
            batches.count[row] = messages.offset.size
