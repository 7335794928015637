"""Stores that speak S3's protocol on this machine: moto's server, and SeaweedFS.

Moto answers as Amazon does and keeps nothing. SeaweedFS keeps files, in a way of its own: it is
built by ``go install github.com/seaweedfs/seaweedfs/weed@VERSION``, and looked for in `PATH`.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from unittest import mock

from moto.server import ThreadedMotoServer
from pyarrow import fs

from analytics.locations import join, open_location

_BUCKET = "box"
_KEYS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}
"""A Spark that runs already does not have them: dumps in this store are small."""


@dataclass(frozen=True)
class Store:
    """A bucket of a store.

    Attributes:
        address: Host and port.
    """

    address: str

    def location(self, name: str = "", scheme: str = "s3") -> str:
        """Return the location of something in it."""
        query = f"?endpoint_override={self.address}&scheme=http"
        return join(f"{scheme}://{_BUCKET}{query}", name).replace("/?", "?")

    def put(self, folder: Path, name: str) -> str:
        """Put a folder there; return its location."""
        there = self.location(name)
        filesystem, path = open_location(there)
        fs.copy_files(str(folder), path, fs.LocalFileSystem(), filesystem)
        return there

    def remove(self, name: str) -> None:
        """Delete a file."""
        filesystem, path = open_location(self.location(name))
        filesystem.delete_file(path)

    def files(self, name: str) -> dict[str, bytes]:
        """Return what is in a folder, by the path in it."""
        filesystem, path = open_location(self.location(name))
        found = filesystem.get_file_info(fs.FileSelector(path, recursive=True))
        return {
            each.path.removeprefix(f"{path}/"): filesystem.open_input_file(each.path).read()
            for each in found
            if each.is_file
        }


@contextmanager
def store_here() -> Iterator[Store]:
    """Start moto's server with an empty bucket; nothing of it is left at the end."""
    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        with _bucket_at(f"{host}:{port}") as store:
            yield store
    finally:
        server.stop()


SEAWEED: Final = shutil.which("weed")
_SERVICES: Final = ("master", "volume", "filer", "s3")
_UNWANTED: Final = ("-s3.port.iceberg=0", "-s3.port.lance=0")


@contextmanager
def seaweed_here(folder: Path) -> Iterator[Store]:
    """Start SeaweedFS with an empty bucket.

    Args:
        folder: An empty folder for its files, its settings and what it logs.
    """
    assert SEAWEED is not None
    ports = dict(zip(_SERVICES, _free_ports(len(_SERVICES)), strict=True))
    calls = dict(zip(_SERVICES, _free_ports(len(_SERVICES)), strict=True))
    user = {"accessKey": _KEYS["AWS_ACCESS_KEY_ID"], "secretKey": _KEYS["AWS_SECRET_ACCESS_KEY"]}
    users = {"identities": [{"name": "all", "credentials": [user], "actions": ["Admin"]}]}
    (folder / "users.json").write_text(json.dumps(users), "utf-8")
    (folder / "files").mkdir()
    command = [
        *(SEAWEED, "server", f"-dir={folder / 'files'}", "-ip=127.0.0.1", "-s3"),
        *(f"-s3.config={folder / 'users.json'}", *_UNWANTED),
        *(f"-{name}.port={port}" for name, port in ports.items()),
        *(f"-{name}.port.grpc={port}" for name, port in calls.items()),
    ]
    with (folder / "weed.log").open("wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            address = f"127.0.0.1:{ports['s3']}"
            _wait_for(f"http://{address}", server)
            with _bucket_at(address) as store:
                yield store
        finally:
            server.terminate()
            server.wait()


@contextmanager
def _bucket_at(address: str) -> Iterator[Store]:
    with mock.patch.dict(os.environ, _KEYS):
        store = Store(address)
        filesystem, bucket = open_location(f"{store.location()}&allow_bucket_creation=true")
        filesystem.create_dir(bucket)
        yield store


def _free_ports(count: int) -> list[int]:
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def _wait_for(address: str, server: subprocess.Popen[bytes], seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while True:
        try:
            urllib.request.urlopen(address, timeout=5).close()
        except urllib.error.HTTPError:
            return
        except OSError:
            assert server.poll() is None, "SeaweedFS has ended"
            assert time.monotonic() < until, "SeaweedFS does not answer"
            time.sleep(0.2)
        else:
            return
