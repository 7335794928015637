"""Secrets in the metadata log never reach a table: neither decoded, nor among what is not."""

from __future__ import annotations

import re
from io import BytesIO

import pyarrow as pa
import pytest

from analytics.decode.chunks import Decoded, decode_chunk
from analytics.decode.tables import Origin, without_bytes
from analytics.dump.records.segment_reader import read_segment
from schemas import record_type
from schemas.names import RESOURCE_TYPES, harmless_settings, sensitive_settings
from tests.support.encoder import encode_value
from tests.support.segments import NOW, Record, batch

SECRET = "hunter2-is-my-secret"


def decoded(*values: bytes, damage: int | None = None) -> Decoded:
    data = bytearray(batch([Record(0, NOW, None, each) for each in values]).data)
    if damage is not None:
        data[damage] ^= 0xFF
    (chunk,) = read_segment(BytesIO(bytes(data)))
    origin = Origin("__cluster_metadata", 0, "controller-1", "0.log")
    return decode_chunk(chunk.records, chunk.damages, origin)


def config(name: str, value: str | None = SECRET, resource_type: int = 4) -> bytes:
    said = {"resource_type": resource_type, "resource_name": "", "name": name, "value": value}
    return encode_value(record_type("ConfigRecord"), 0, said)


def value_of(name: str, value: str | None = SECRET) -> str | None:
    (row,) = decoded(config(name, value)).batches["config_record"].to_pylist()
    found: str | None = row["value"]["value"]
    return found


@pytest.mark.parametrize(
    "name",
    [
        "ssl.keystore.password",
        "ssl.keystore.key",
        "ssl.keystore.certificate.chain",
        "sasl.jaas.config",
        "listener.name.external.scram-sha-512.sasl.jaas.config",
        "listener.name.internal.ssl.key.password",
        "delegation.token.secret.key",
        "password.encoder.secret",
        "rsm.config.s3.aws_secret_access_key".replace("_", "."),
        "metrics.reporter.api_key",
        "my.PASSWORD",
        "offsets.reporter.auth-token",
    ],
)
def test_the_value_of_a_sensitive_setting_is_withheld(name: str) -> None:
    assert value_of(name) == "(withheld)"
    # That it was removed is no secret.
    assert value_of(name, None) is None
    for resource_type in RESOURCE_TYPES:
        is_shown = re.search(harmless_settings(resource_type), name)
        assert not is_shown or re.search(sensitive_settings(), name)


@pytest.mark.parametrize(
    "name", ["retention.ms", "cleanup.policy", "ssl.protocol", "key.converter", "tokens.per.second"]
)
def test_any_other_value_is_kept(name: str) -> None:
    assert value_of(name, "value") == "value"


def test_bytes_that_may_hold_a_secret_are_not_kept_where_a_record_cannot_be_decoded() -> None:
    whole = config("sasl.jaas.config")
    unknown_version = whole[:2] + bytes([99]) + whole[3:]
    for each in (whole + b"\0\0", whole[:-3], unknown_version):
        (row,) = decoded(each).batches["undecoded"].to_pylist()
        assert row["value"] is None
        assert f"{len(each)} bytes withheld" in row["detail"]
        assert SECRET not in str(row)


def test_neither_are_those_of_a_damaged_batch() -> None:
    rows = decoded(config("sasl.jaas.config"), damage=20).batches["undecoded"].to_pylist()
    assert rows
    assert all(row["value"] is None and "bytes withheld" in row["detail"] for row in rows)


def test_rows_without_a_detail_and_without_a_value_stay_in_their_places() -> None:
    said = without_bytes(
        pa.array([None, "cut off", None, "cut off"], pa.string()), pa.array([None, None, 3, 4])
    )
    assert said.to_pylist() == [
        None,
        "cut off",
        "3 bytes withheld: they may hold secrets",
        "cut off; 4 bytes withheld: they may hold secrets",
    ]
