"""How much memory and time one batch may cost, whatever it claims."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Bounds on what is believed.

    Attributes:
        max_batch_bytes: Of a batch in the file.
        max_decompressed_bytes: Of one batch's records once decompressed.
        max_batch_records: Of one batch; a record costs memory beyond its bytes.
        free_expansion_bytes: Decompressed bytes of one read that are always allowed.
        max_expansion: Decompressed bytes allowed beyond those, per byte of the batches read.
    """

    max_batch_bytes: int = 128 << 20
    max_decompressed_bytes: int = 128 << 20
    max_batch_records: int = 1 << 20
    free_expansion_bytes: int = 256 << 20
    max_expansion: int = 500


DEFAULT_LIMITS = Limits()
