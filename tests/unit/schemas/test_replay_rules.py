"""Where releases replay differently: the rules of each, by name."""

from __future__ import annotations

import re

import pytest

from schemas import SchemaError
from schemas.names import harmless_settings
from schemas.releases import replay_rule_values


@pytest.mark.parametrize(
    ("release", "pending_by", "tombstone_removes"),
    [
        ("2.0.1", "transactional_bit", "own_kind"),
        ("3.9.2", "transactional_bit", "own_kind"),
        ("4.0", "producer_id", "everything"),
        ("4.3.1", "producer_id", "everything"),
    ],
)
def test_the_coordinator_of_4_0_reads_transactions_its_own_way(
    release: str, pending_by: str, tombstone_removes: str
) -> None:
    values = replay_rule_values(release)
    assert values["pending_by"] == pending_by
    assert values["tombstone_removes"] == tombstone_removes


@pytest.mark.parametrize(("release", "epoch"), [("4.0.2", 0), ("4.2.1", 0), ("4.3", 1), ("4.4", 1)])
def test_a_group_whose_epochs_no_record_tells_is_at_epoch_one_since_4_3(
    release: str, epoch: int
) -> None:
    assert replay_rule_values(release)["initial_epoch"] == epoch


@pytest.mark.parametrize(
    ("release", "ready_by"), [("4.1.2", "configuration"), ("4.2.0", "validated_epoch")]
)
def test_a_streams_group_can_be_seen_to_be_ready_since_4_2(release: str, ready_by: str) -> None:
    assert replay_rule_values(release)["streams_ready_by"] == ready_by


@pytest.mark.parametrize(("release", "epoch"), [("4.0.2", -1), ("4.1.0", 0), ("4.4", 0)])
def test_a_share_partition_without_a_snapshot_has_a_state_epoch_of_its_release(
    release: str, epoch: int
) -> None:
    assert replay_rule_values(release)["share_epoch_without_snapshot"] == epoch


def test_a_release_older_than_the_offsets_topic_has_no_rules() -> None:
    with pytest.raises(SchemaError, match=r"no value for release 0\.8"):
        replay_rule_values("0.8")


@pytest.mark.parametrize(
    ("resource", "name", "is_kept"),
    [
        ("topic", "retention.ms", True),
        ("topic", "retentionXms", False),
        ("broker", "offsets.retention.minutes", True),
        ("broker", "ssl.keystore.password", False),
        ("broker", "listener.name.external.sasl.jaas.config", False),
        ("group", "consumer.session.timeout.ms", True),
        ("group", "password", False),
    ],
)
def test_values_are_kept_of_settings_that_hold_no_secret(
    resource: str, name: str, is_kept: bool
) -> None:
    assert (re.search(harmless_settings(resource), name) is not None) == is_kept
