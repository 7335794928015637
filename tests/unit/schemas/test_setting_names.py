"""Which settings are Kafka's own, by their whole names."""

from __future__ import annotations

import pytest

from schemas.names import public_settings


@pytest.mark.parametrize(
    "name",
    [
        *(
            "retention.ms",
            "share.auto.offset.reset",
            "ssl.keystore.password",
            "log.cleaner.threads",
        ),
        # Only in 3.x; of 3.7 to 3.9; from 4.4 on.
        *("zookeeper.connect", "eligible.leader.replicas.enable", "streams.assignor.name"),
    ],
)
def test_a_setting_of_kafka_is_public(name: str) -> None:
    assert name in public_settings()


@pytest.mark.parametrize(
    "name",
    [
        "my.company.plugin.secretname",
        "ssl.acme.vault",
        # No release has it: that is remote.log.copy.disable.
        "remote.copy.disable",
        "max.acme",
        "listener.name.acme-internal.ssl.key.password",
        "ssl.*",
        "",
    ],
)
def test_what_a_pattern_alone_knows_is_not(name: str) -> None:
    assert name not in public_settings()
