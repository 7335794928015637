"""A cluster's answers, recorded once from a real one and given again over a socket.

The recorder stands between a client and a broker; the recorded cluster answers a request by what
was answered to the same bytes. Both give their own address where brokers' addresses stand.
"""

from __future__ import annotations

import base64
import contextlib
import gzip
import json
import socket
import struct
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analytics.snapshot.cluster_connection import ClientSettings, ClusterConnection
from schemas.snapshot import Snapshot, read_snapshot

if TYPE_CHECKING:
    from tests.conftest import Groupscope

API_VERSIONS, METADATA, LIST_OFFSETS, FETCH, LIST_GROUPS = 18, 3, 2, 1, 16
DESCRIBE_CONFIGS = 32
OFFSET_FETCH, DESCRIBE_GROUPS = 9, 15
CONSUMER_GROUP_DESCRIBE, SHARE_GROUP_DESCRIBE, STREAMS_GROUP_DESCRIBE = 69, 77, 89
SHARE_GROUP_OFFSETS = 90
RECORDING = Path(__file__).parents[1] / "data/snapshots/kafka-4.3.1.json.gz"
"""What a broker of 4.3.1 answered after random acts, when its cleaner had passed.

Another one of that release, in which the same groups had the same settings of their own, answered
which have such (ListConfigResources), and what they are.
"""
_HEADER = struct.Struct(">hhi")
_SIZE = struct.Struct(">i")


@dataclass(frozen=True)
class Request:
    """One request: its header's numbers, and what follows the client's id."""

    api: int
    version: int
    correlation: int
    body: bytes

    @classmethod
    def of(cls, frame: bytes) -> Request:
        api, version, correlation = _HEADER.unpack_from(frame)
        (length,) = struct.unpack_from(">h", frame, _HEADER.size)
        return cls(api, version, correlation, frame[_HEADER.size + 2 + max(length, 0) :])

    @property
    def key(self) -> tuple[int, int, bytes]:
        """What the same question has in common; the client's release stands in ApiVersions."""
        return self.api, self.version, b"" if self.api == API_VERSIONS else self.body


Answer = Callable[[Request], bytes | None]
"""A response behind its correlation id; None cuts the connection."""
Change = Callable[[Request, bytes], bytes | None]


def unchanged(_request: Request, response: bytes) -> bytes:
    return response


@contextlib.contextmanager
def recorded_cluster(recording: Path, change: Change = unchanged) -> Iterator[str]:
    """Answer as a recording has it, but for what `change` makes of each response."""
    answers: dict[Any, deque[bytes]] = defaultdict(deque)
    for each in json.loads(gzip.decompress(recording.read_bytes())):
        key = each["api"], each["version"], base64.b64decode(each["request"])
        answers[key].append(base64.b64decode(each["response"]))
    lock = threading.Lock()

    def answer(request: Request) -> bytes | None:
        with lock:
            left = answers.get(request.key)
            if left is None:
                return None
            # The last answer to a question is given for good.
            response = left.popleft() if len(left) > 1 else left[0]
        return change(request, response)

    with _listening(answer) as address:
        yield address


@contextlib.contextmanager
def recorder(broker: str, recording: Path) -> Iterator[str]:
    """Pass questions on to a broker, and write down what it answers."""
    host, _, port = broker.rpartition(":")
    exchanges: list[dict[str, Any]] = []

    def answer(request: Request) -> bytes:
        api, version, body = request.key
        head = _HEADER.pack(request.api, request.version, request.correlation)
        frame = head + struct.pack(">h", -1) + request.body
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(_SIZE.pack(len(frame)) + frame)
            response = _frame(connection)
        assert response is not None
        exchanges.append(
            {
                "api": api,
                "version": version,
                "request": base64.b64encode(body).decode(),
                "response": base64.b64encode(response[4:]).decode(),
            }
        )
        return response[4:]

    with _listening(answer) as address:
        yield address
    recording.write_bytes(gzip.compress(json.dumps(exchanges).encode(), mtime=0))


@contextlib.contextmanager
def _listening(answer: Answer) -> Iterator[str]:
    server = socket.create_server(("127.0.0.1", 0))
    port = server.getsockname()[1]
    connections: list[socket.socket] = []

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = server.accept()
                connections.append(connection)
                threading.Thread(
                    target=_serve, args=(connection, answer, port), daemon=True
                ).start()

    accepting = threading.Thread(target=accept, daemon=True)
    accepting.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        accepting.join()
        for each in connections:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


def _serve(connection: socket.socket, answer: Answer, port: int) -> None:
    with contextlib.suppress(OSError), connection:
        while (frame := _frame(connection)) is not None:
            request = Request.of(frame)
            response = answer(request)
            if response is None:
                return
            body = _at_port(request, response, port) if request.api == METADATA else response
            framed = struct.pack(">i", request.correlation) + body
            connection.sendall(_SIZE.pack(len(framed)) + framed)


def _frame(connection: socket.socket) -> bytes | None:
    head = _exactly(connection, _SIZE.size)
    return None if head is None else _exactly(connection, *_SIZE.unpack(head))


def _exactly(connection: socket.socket, size: int) -> bytes | None:
    pieces = []
    while size:
        piece = connection.recv(min(size, 1 << 16))
        if not piece:
            return None
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def _at_port(request: Request, response: bytes, port: int) -> bytes:
    """Return a MetadataResponse in which every broker listens here."""
    try:
        decoded = decoded_metadata(request, response)
    except Exception:  # noqa: BLE001 - what a test has spoilt stays as it is
        return response
    for each in decoded.brokers:
        each.host, each.port = "127.0.0.1", port
    return encoded_metadata(request, decoded)


def decoded_metadata(request: Request, response: bytes) -> Any:
    from kafka.protocol.metadata import MetadataResponse  # noqa: PLC0415

    # A header of tagged fields stands before what is flexible.
    return MetadataResponse.decode(response[_tags(request) :], version=request.version)


def encoded_metadata(request: Request, metadata: Any) -> bytes:
    metadata._header = None
    encoded: bytes = metadata.encode(version=request.version)
    return bytes(_tags(request)) + encoded


def _tags(request: Request) -> int:
    return 1 if request.api == METADATA and request.version >= 9 else 0


@contextlib.contextmanager
def connected_to_recording() -> Iterator[ClusterConnection]:
    """Connect to the recorded cluster."""
    with (
        recorded_cluster(RECORDING) as address,
        ClusterConnection(address, ClientSettings(), 10) as connection,
    ):
        yield connection


def snapshot_of_recording(groupscope: Groupscope, out: Path) -> Path:
    """Take a snapshot of the recorded cluster; return where it is."""
    with recorded_cluster(RECORDING) as address:
        ran = groupscope("snapshot", "--bootstrap-server", address, "--out", out)
    assert ran.returncode == 0, ran.stderr
    return out


def files_of(folder: Path) -> dict[str, bytes]:
    """Return what each file below a folder has, by its path there."""
    return {
        str(each.relative_to(folder)): each.read_bytes()
        for each in sorted(folder.rglob("*"))
        if each.is_file()
    }


def document(out: Path) -> Snapshot:
    """Return what a snapshot's `snapshot.json` says."""
    return read_snapshot((out / "snapshot.json").read_bytes(), str(out))
