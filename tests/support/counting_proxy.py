"""A proxy before a store: counts requests, and answers some as stores at their limit do.

It speaks HTTP/1.1 on loopback and keeps connections, as clients of stores do.
"""

from __future__ import annotations

import http.client
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar, Final
from urllib.parse import parse_qs, urlsplit

PASSES: Final = "passes"
SLOW_DOWN: Final = "slow down"
"""503, as a store answers that is asked more often than it likes."""
CUT: Final = "cut"
"""The connection ends before an answer, as if a middlebox had enough of it."""
CUT_WITHIN: Final = "cut within"
"""It ends in the middle of the answer."""

Fault = Callable[[int], str]
"""What becomes of a request, by its number from 0."""

_SLOW_DOWN_BODY: Final = (
    b'<?xml version="1.0" encoding="UTF-8"?><Error><Code>SlowDown</Code>'
    b"<Message>Please reduce your request rate.</Message></Error>"
)
_OF_A_HOP: Final = frozenset(("connection", "keep-alive", "transfer-encoding", "content-length"))


class CountingProxy:
    """What goes to a store, request by request.

    Attributes:
        address: Host and port of the proxy.
        requests: Each that came in: what it does, and the path in the bucket.
        faults: How many got which answer.
    """

    def __init__(self, store: str, fault: Fault) -> None:
        self.store = store
        self.fault = fault
        self.address = ""
        self.requests: list[tuple[str, str]] = []
        self.faults: Counter[str] = Counter()
        self._lock = threading.Lock()

    def taken(self, method: str, target: str) -> str:
        """Count a request; return what becomes of it."""
        parts = urlsplit(target)
        query = parse_qs(parts.query, keep_blank_values=True)
        listed = method == "GET" and "list-type" in query
        path = query.get("prefix", [""])[0] if listed else parts.path.partition("/box")[2]
        with self._lock:
            becomes = self.fault(len(self.requests))
            self.requests.append(("LIST" if listed else method, path.strip("/")))
            self.faults[becomes] += 1
        return becomes

    def kinds(self) -> Counter[str]:
        """Return how many requests of each kind came in."""
        return Counter(kind for kind, _ in self.requests)


@contextmanager
def proxy_before(store: str, fault: Fault = lambda _: PASSES) -> Iterator[CountingProxy]:
    """Start a proxy before a store.

    Args:
        store: Its host and port.
        fault: What becomes of which request.
    """
    proxy = CountingProxy(store, fault)

    class Handler(_Handler):
        before = proxy

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    proxy.address = f"127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield proxy
    finally:
        server.shutdown()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    """Hands a request on, or does to it what its number is to suffer."""

    before: ClassVar[CountingProxy]
    protocol_version = "HTTP/1.1"

    def handle_one_request(self) -> None:
        """Do so; that a client goes away is nothing to tell of."""
        try:
            super().handle_one_request()
        except (ConnectionError, TimeoutError):
            self.close_connection = True

    def _hand_on(self) -> None:
        becomes = self.before.taken(self.command, self.path)
        if becomes == CUT:
            self._cut()
            return
        body = self._body()
        if becomes == SLOW_DOWN:
            self._answer(503, [("Content-Type", "application/xml")], _SLOW_DOWN_BODY)
            return
        there = http.client.HTTPConnection(self.before.store, timeout=60)
        try:
            there.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() not in ("connection", "expect", "content-length"):
                    there.putheader(name, value)
            if body or self.command in ("PUT", "POST"):
                there.putheader("Content-Length", str(len(body)))
            there.endheaders(body or None)
            response = there.getresponse()
            content = response.read()
            headers = [(n, v) for n, v in response.getheaders() if n.lower() not in _OF_A_HOP]
            if self.command == "HEAD":
                headers += [("Content-Length", response.getheader("Content-Length") or "0")]
            self._answer(response.status, headers, content, is_cut=becomes == CUT_WITHIN)
        finally:
            there.close()

    # The names are the base class's.
    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _hand_on  # noqa: N815

    def _body(self) -> bytes:
        """Return what came with the request.

        A body in chunks goes on in one piece; Amazon's own encoding is the store's matter.
        """
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        del self.headers["Transfer-Encoding"]
        content = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            content += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return content

    def _answer(
        self, status: int, headers: list[tuple[str, str]], content: bytes, *, is_cut: bool = False
    ) -> None:
        self.send_response_only(status)
        for name, value in headers:
            self.send_header(name, value)
        if self.command != "HEAD":
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command == "HEAD" or is_cut:
            content = content[: len(content) // 2] if self.command != "HEAD" else b""
        self.wfile.write(content)
        if is_cut:
            self._cut()

    def _cut(self) -> None:
        self.close_connection = True
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the protocol's
        """Say nothing."""
