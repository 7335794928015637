"""A store that speaks S3's protocol on this machine: moto's server."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
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
    """Start a store with an empty bucket; nothing of it is left at the end."""
    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        with mock.patch.dict(os.environ, _KEYS):
            host, port = server.get_host_and_port()
            store = Store(f"{host}:{port}")
            filesystem, bucket = open_location(f"{store.location()}&allow_bucket_creation=true")
            filesystem.create_dir(bucket)
            yield store
    finally:
        server.stop()
