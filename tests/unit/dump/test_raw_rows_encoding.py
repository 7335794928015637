"""How keys of archived rows are written shows in the keys."""

from __future__ import annotations

import base64

import pytest

from analytics.dump.records.raw_rows_columns import encoding_that_fits

KEYS = [b"\x00\x01\x00\x07billing\x00\x06orders\x00\x00\x00\x02", b"\x00\x02\x00\x01g"]


@pytest.mark.parametrize(
    ("keys", "encoding"),
    [
        (KEYS, "binary"),
        ([key.hex().encode() for key in KEYS], "hex"),
        ([b"0x" + key.hex().upper().encode() for key in KEYS], "hex"),
        ([b"\\x" + key.hex().encode() for key in KEYS], "hex"),
        ([base64.b64encode(key) for key in KEYS], "base64"),
        ([base64.urlsafe_b64encode(key).rstrip(b"=") for key in KEYS], "base64"),
        ([base64.encodebytes(key) for key in KEYS], "base64"),
        ([b"billing", b"ledger"], None),
        ([base64.b64encode(b"billing")], None),
        ([], None),
    ],
)
def test_keys_are_told_by_what_they_begin_with(keys: list[bytes], encoding: str | None) -> None:
    assert encoding_that_fits(keys) == encoding


def test_a_few_broken_keys_do_not_hide_what_all_others_are() -> None:
    hex_keys = [key.hex().encode() for key in KEYS * 10]
    assert encoding_that_fits([*hex_keys, b"broken"]) == "hex"
    assert encoding_that_fits([*hex_keys[:2], b"broken"]) is None
