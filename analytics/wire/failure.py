"""Why a record could not be decoded, in enumerated words."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """The ``reason`` column of the ``undecoded`` table, for records.

    Damage to whole batches has its own words in ``analytics.dump.batches.damage``.
    """

    NULL_KEY = "null_key"
    NULL_VALUE = "null_value"
    TRUNCATED = "truncated"
    UNKNOWN_RECORD_TYPE = "unknown_record_type"
    UNSUPPORTED_VERSION = "unsupported_version"
    UNKNOWN_FRAME_VERSION = "unknown_frame_version"
    UNEXPECTED_NULL = "unexpected_null"
    NEGATIVE_LENGTH = "negative_length"
    LENGTH_BEYOND_END = "length_beyond_end"
    VARINT_TOO_LONG = "varint_too_long"
    INVALID_TAG = "invalid_tag"
    INVALID_UTF8 = "invalid_utf8"
    CONFLICTING_ROW = "conflicting_row"
    INVALID_ENCODING = "invalid_encoding"
    UNPLACED_ROW = "unplaced_row"
    TRAILING_BYTES = "trailing_bytes"
    REDPANDA_MEMBERS = "redpanda_members"
    REDPANDA_KEY = "redpanda_key"
