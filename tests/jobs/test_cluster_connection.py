"""Questions to a cluster of which a broker is gone, and those that nobody waits for any more."""

from __future__ import annotations

import copy
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from analytics.errors import ClusterUnreachableError
from analytics.snapshot.cluster_connection import (
    ClientSettings,
    ClusterConnection,
    NotAnsweredError,
)
from tests.support.recorded_cluster import (
    METADATA,
    RECORDING,
    Request,
    connected_to_recording,
    recorded_cluster,
)

_SECONDS = 30


def all_topics() -> Any:
    from kafka.protocol.metadata import MetadataRequest  # noqa: PLC0415

    return MetadataRequest(topics=None, allow_auto_topic_creation=False)


@pytest.fixture
def cluster() -> Iterator[ClusterConnection]:
    with connected_to_recording() as connection:
        yield connection


def test_what_any_broker_answers_is_asked_of_another_where_one_is_gone(
    cluster: ClusterConnection,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        closed = server.getsockname()[1]
    described = cluster.ask(all_topics())
    gone = copy.copy(described.brokers[0])
    gone.node_id, gone.port = 2, closed
    described.brokers.append(gone)
    for _ in range(6):
        # An answer has the recorded brokers only.
        cluster.note_brokers(described)
        assert cluster.nodes == [1, 2]
        assert cluster.ask(all_topics()).topics
    with pytest.raises(NotAnsweredError):
        cluster.ask(all_topics(), 2)


def test_whoever_waits_hears_that_nothing_is_asked_any_more() -> None:
    asked, ended = threading.Event(), threading.Event()

    def silent(request: Request, response: bytes) -> bytes:
        if request.api == METADATA and asked.is_set():
            ended.wait(_SECONDS)
        return response

    heard = []

    def wait_for_an_answer(cluster: ClusterConnection) -> None:
        try:
            cluster.ask(all_topics(), 1)
        except NotAnsweredError as error:
            heard.append(error)

    with (
        recorded_cluster(RECORDING, silent) as address,
        ClusterConnection(address, ClientSettings(), _SECONDS) as cluster,
    ):
        asked.set()
        waiting = threading.Thread(target=wait_for_an_answer, args=(cluster,))
        waiting.start()
        cluster.abandon()
        waiting.join(_SECONDS)
        assert len(heard) == 1
        with pytest.raises(NotAnsweredError, match="no longer asked"):
            cluster.ask(all_topics(), 1)
        ended.set()


def test_whoever_was_about_to_ask_hears_it_too(
    cluster: ClusterConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = cluster._net
    begins = loop.call_soon_threadsafe

    def begins_late(asked: Any) -> Any:
        cluster.abandon()
        return begins(asked)

    monkeypatch.setattr(loop, "call_soon_threadsafe", begins_late)
    with pytest.raises(NotAnsweredError, match="no longer asked"):
        cluster.ask(all_topics())


def test_a_loop_that_never_begins_is_waited_for_no_longer_than_an_answer(
    cluster: ClusterConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster._net, "call_soon_threadsafe", lambda _: None)
    monkeypatch.setattr("analytics.snapshot.cluster_connection._CONNECTS_WITHIN", 0.0)
    cluster.seconds = 0.5
    with pytest.raises(NotAnsweredError, match="no answer"):
        cluster.ask(all_topics())


def test_a_broker_that_hangs_up_in_a_login_may_have_refused_it() -> None:
    """Kafka-python drops the reason where the broker hangs up at once."""
    login = ClientSettings("SASL_PLAINTEXT", "PLAIN", "auditor", "hunter2")
    with recorded_cluster(RECORDING) as address, pytest.raises(ClusterUnreachableError) as refused:
        # The recording has no login: this broker hangs up.
        ClusterConnection(address, login, 2).__enter__()
    assert str(refused.value) == (
        f"{address}: no broker answered within 2 seconds (it hung up while the client "
        "logged in with PLAIN, as brokers do that refuse a user or a password)"
    )
