"""Where something lies that a person names: inputs, workspaces, texts, pages, metrics, side files.

A location is a path of this machine, or a URI of one of these schemes:

- ``file:`` this machine, too; its path may have escapes (``%20``).
- ``s3:``, ``s3a:``, ``s3n:`` Amazon S3 and stores that speak its protocol: one and the same store.
- ``gs:``, ``gcs:`` Google Cloud Storage.
- ``abfs:``, ``abfss:`` Azure, as ``abfs://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH``.
- ``hdfs:``, ``viewfs:`` Hadoop.

In all but ``file:`` names are taken as they are written, without escapes. A URI may end with what
Arrow's filesystem of its scheme is to know, ``?endpoint_override=HOST:PORT&scheme=http`` for one:
it stays at the end of what lies below. Arrow is imported for the first location only that needs it.

Small files, read whole, wherever they are.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from functools import cache, partial
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias
from urllib.parse import parse_qsl, unquote, urlsplit

from analytics.errors import InputNotRecognizedError, InputUnreadableError, ReadFailedError
from analytics.failed_reads import tried_again

if TYPE_CHECKING:
    from pyarrow import fs
    from pyarrow.fs import FileSystem


Opened: TypeAlias = "tuple[FileSystem, str]"

_URI: Final = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*)://([^/?]*)")
_FILE: Final = re.compile(r"^file:", re.IGNORECASE)
_QUERY: Final = re.compile(r"\?\w+=[^/?&]*(?:&\w+=[^/?&]*)*(?=/|$)")
"""Also within a URI: what is put together from texts may have its names behind it."""

_SCHEMES: Final = {
    **dict.fromkeys(("s3", "s3a", "s3n"), "s3"),
    **dict.fromkeys(("gs", "gcs"), "gs"),
    **{each: each for each in ("abfs", "abfss", "hdfs", "viewfs")},
}
"""What Arrow calls each."""
SCHEMES: Final = ("file", *_SCHEMES)
"""All schemes."""

_GIVES_UP: Final = "retry_limit_seconds"
_SECONDS: Final = 15
"""Google's library tries for a quarter of an hour by default."""

_CONNECTS: Final = 4
"""Seconds for a connection, of which there are three tries."""
_ANSWERS: Final = 12
"""Seconds for any sign of an answer, of which there are three tries."""
_PATIENCE: Final = 40
"""Seconds for a store to open."""


def _flag(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError(f"{text!r} is neither true nor false")
    return text == "true"


_OF_S3: Final[Mapping[str, Callable[[str], object]]] = {
    **dict.fromkeys(("region", "scheme", "endpoint_override", "tls_ca_file_path", "role_arn"), str),
    **dict.fromkeys(("connect_timeout", "request_timeout"), float),
    **dict.fromkeys(("allow_bucket_creation", "allow_bucket_deletion", "anonymous"), _flag),
    **dict.fromkeys(
        ("check_directory_existence_before_creation", "force_virtual_addressing"), _flag
    ),
}
"""What may stand behind the question mark, called as the arguments of Arrow's `S3FileSystem`."""
_ENDPOINTS: Final = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3")

_STORES: Final[set[str]] = set()
_WITHOUT_FOLDERS: Final = ("s3", "gcs")
"""Arrow's names of file systems in which a file needs no folder to lie in."""
MOVES_FOLDERS: Final = ("local", "hdfs", "subtree", "mock")
"""File systems that move a folder in one step."""


class Uri(NamedTuple):
    """A URI of another filesystem than the local one.

    Attributes:
        scheme: As it is written.
        authority: A bucket, a container or a host.
        path: Nothing, or what begins with a slash.
        query: Nothing, or what begins with a question mark.
    """

    scheme: str
    authority: str
    path: str
    query: str

    @property
    def head(self) -> str:
        """What stands before the path."""
        return f"{self.scheme}://{self.authority}"


def is_uri(location: str) -> bool:
    """Whether a location is a URI of another filesystem than the local one."""
    return bool(_URI.match(location)) and not _FILE.match(location)


def check_scheme(location: str) -> None:
    """Check that something opens such locations; nothing is opened.

    Raises:
        InputNotRecognizedError: Nothing does, or there is a key in it: it would be kept in whatever
            names the location, workspaces and pages among them.
    """
    if not is_uri(location):
        return
    uri = uri_of(location)
    scheme = uri.scheme.lower()
    if _SCHEMES.get(scheme) == "s3" and "@" in uri.authority:
        bucket = uri.authority.rpartition("@")[2]
        raise InputNotRecognizedError(
            f"{uri.scheme}://...@{bucket}: there is a key in this URI, which would be written "
            f"wherever it is named: give keys in the environment (AWS_ACCESS_KEY_ID and "
            f"AWS_SECRET_ACCESS_KEY, or AWS_PROFILE)"
        )
    if scheme not in _SCHEMES:
        raise InputNotRecognizedError(
            f"{location}: nothing here opens URIs of {scheme}:; give a local path, or a URI of one "
            f"of {', '.join(f'{each}:' for each in SCHEMES)}"
        )


def local_path(location: str) -> str:
    """Return a ``file:`` URI as a plain path, anything else as it is.

    Raises:
        InputNotRecognizedError: It names another machine.
    """
    if not _FILE.match(location):
        return location
    found = urlsplit(location)
    if found.netloc not in ("", "localhost"):
        raise InputNotRecognizedError(
            f"{location}: {found.netloc} stands where a machine's name does; write "
            f"file:///{found.netloc}{found.path} for a path of this one"
        )
    return unquote(found.path)


def uri_of(location: str) -> Uri:
    """Return the parts of a URI."""
    matched = _URI.match(location)
    assert matched is not None, location
    query = _QUERY.search(location)
    rest = location[matched.end() :]
    scheme, authority = matched.groups()
    return Uri(scheme, authority, _QUERY.sub("", rest), query.group() if query else "")


def join(folder: str, name: str) -> str:
    """Return the location of something in a folder."""
    if not is_uri(folder):
        return f"{folder.rstrip('/')}/{name}" if folder else name
    uri = uri_of(folder)
    return f"{uri.head}{uri.path.rstrip('/')}/{name}{uri.query}"


def parent(location: str) -> str:
    """Return the folder that something lies in."""
    if is_uri(location):
        uri = uri_of(location)
        return f"{uri.head}{uri.path.rstrip('/').rpartition('/')[0]}{uri.query}"
    return os.path.dirname(os.path.abspath(location))  # noqa: PTH100, PTH120 - links stay as given


def absolute_location(location: str) -> str:
    """Return a location that means the same wherever a command is run; a URI is one."""
    if is_uri(location):
        return location
    return os.path.abspath(local_path(location))  # noqa: PTH100 - links stay as given


def base_name(location: str) -> str:
    """Return the last name of a location; that of the folder itself for ``.`` and the like."""
    if is_uri(location):
        uri = uri_of(location)
        return f"{uri.authority}{uri.path}".rstrip("/").rpartition("/")[2]
    return os.path.basename(os.path.abspath(location))  # noqa: PTH100, PTH119 - links stay as given


def for_spark(location: str) -> str:
    """Return a location as Spark's own readers take it: what they know of a store is in its conf.

    They are given it as `spark.hadoop.fs.s3a.endpoint` and the like.
    """
    if not is_uri(location):
        return location
    uri = uri_of(location)
    scheme = "s3a" if _SCHEMES.get(uri.scheme.lower()) == "s3" else uri.scheme
    return f"{scheme}://{uri.authority}{uri.path}"


def open_location(location: str) -> tuple[FileSystem, str]:
    """Return Arrow's filesystem for a location, and the path in it.

    Raises:
        InputNotRecognizedError: Nothing here opens URIs of that scheme, or it is none.
        InputUnreadableError: The store refuses.
        ReadFailedError: It cannot be reached.
    """
    if not is_uri(location):
        return _local(), os.path.abspath(local_path(location))  # noqa: PTH100 - links stay as given
    check_scheme(location)
    uri = uri_of(location)
    filesystem, root = _store(uri.scheme.lower(), uri.authority, uri.query)
    return filesystem, (root + uri.path).rstrip("/") or "/"


def make_folder(filesystem: FileSystem, path: str) -> None:
    """Make a folder, and those that it lies in; a store has none, and asks for each in vain."""
    if filesystem.type_name not in _WITHOUT_FOLDERS:
        filesystem.create_dir(path, recursive=True)


def move_folder(filesystem: FileSystem, source: str, target: str) -> None:
    """Move a folder in one step where the filesystem can, else file by file.

    Object stores cannot, nor can any where files that stay are in the target.
    """
    from pyarrow.fs import FileSelector, FileType  # noqa: PLC0415 - as above

    is_new = filesystem.get_file_info(target).type is FileType.NotFound
    if is_new and filesystem.type_name in MOVES_FOLDERS:
        filesystem.move(source, target)
        return
    for info in filesystem.get_file_info(FileSelector(source, recursive=True)):
        if info.is_file:
            place = f"{target}/{info.path.removeprefix(source).lstrip('/')}"
            make_folder(filesystem, place.rpartition("/")[0])
            filesystem.move(info.path, place)


def remove_all_but(filesystem: FileSystem, folder: str, files: Collection[str]) -> None:
    """Delete what is in a folder, but for files that stay where they are.

    Args:
        filesystem: Where it is.
        folder: Its path there; it need not be there.
        files: Paths of those that stay; where none is in the folder, it goes as a whole.
    """
    from pyarrow.fs import FileSelector, FileType  # noqa: PLC0415 - as above

    staying = [each for each in files if each.startswith(f"{folder}/")]
    if not staying:
        if filesystem.get_file_info(folder).type is FileType.Directory:
            filesystem.delete_dir(folder)
        return
    gone: list[str] = []
    below = filesystem.get_file_info(FileSelector(folder, recursive=True))
    # A folder comes before what is in it.
    for each in sorted(below, key=lambda info: str(info.path)):
        if each.path in staying or each.path.startswith(tuple(gone)):
            continue
        if each.is_file:
            filesystem.delete_file(each.path)
        elif not any(path.startswith(f"{each.path}/") for path in staying):
            filesystem.delete_dir(each.path)
            gone.append(f"{each.path}/")


def is_of_stores() -> bool:
    """Return whether anything of this process lies elsewhere than on its own machine."""
    return bool(_STORES)


@cache
def _local() -> FileSystem:
    from pyarrow.fs import LocalFileSystem  # noqa: PLC0415 - a local dump is looked at without it

    return LocalFileSystem()


@cache
def _store(scheme: str, authority: str, query: str) -> tuple[FileSystem, str]:
    """Return the filesystem of a bucket, container or host, and the path of its root in it."""
    from pyarrow import ArrowException  # noqa: PLC0415

    name = f"{scheme}://{authority}"
    known = _SCHEMES[scheme]
    _STORES.add(name)
    opens = _opened_s3 if known == "s3" else partial(_opened_by_arrow, known)
    try:
        return tried_again(lambda: _within(lambda: opens(authority, query), name), name)
    except (ArrowException, ValueError) as error:
        why = str(error).partition("\n")[0]
        raise InputNotRecognizedError(f"{name}: this URI cannot be opened: {why}") from error


def _within(opens: Callable[[], Opened], name: str) -> Opened:
    """Return what is opened, in a thread that is left where it waits for longer than it may.

    Libraries of Hadoop, and Amazon's where it looks for a region, have a patience of their own.

    Raises:
        ReadFailedError: It takes too long.
    """
    found: Future[Opened] = Future()

    def run() -> None:
        try:
            found.set_result(opens())
        except BaseException as error:  # noqa: BLE001 - it is the caller's
            found.set_exception(error)

    Thread(target=run, daemon=True).start()
    try:
        return found.result(_PATIENCE)
    except TimeoutError as error:
        if found.done():
            raise
        raise ReadFailedError(f"{name}: no answer within {_PATIENCE} seconds: try again") from error


def _opened_by_arrow(scheme: str, authority: str, query: str) -> Opened:
    from pyarrow.fs import FileSystem  # noqa: PLC0415

    if scheme == "gs" and _GIVES_UP not in query:
        query = f"{query}&" if query else "?"
        query += f"{_GIVES_UP}={_SECONDS}"
    filesystem, root = FileSystem.from_uri(f"{scheme}://{authority}/{query}")
    if scheme in ("hdfs", "viewfs"):
        # The first request has to be answered in time, too.
        filesystem.get_file_info(root)
    return filesystem, root.rstrip("/")


def _opened_s3(authority: str, query: str) -> Opened:
    """Return the same as Arrow from a URI, with less patience: by default it waits for minutes."""
    from pyarrow.fs import S3FileSystem, resolve_s3_region  # noqa: PLC0415

    settings: dict[str, Any] = {"connect_timeout": _CONNECTS, "request_timeout": _ANSWERS}
    # What is small is written by one request, instead of three for an upload in parts.
    settings["allow_delayed_open"] = True
    for name, value in parse_qsl(query.removeprefix("?"), keep_blank_values=True):
        if name not in _OF_S3:
            raise ValueError(f"{name!r} is none of {', '.join(_OF_S3)}")
        settings[name] = _OF_S3[name](value)
    has_endpoint = "endpoint_override" in settings or any(map(os.environ.get, _ENDPOINTS))
    if not has_endpoint and "region" not in settings:
        settings["region"] = resolve_s3_region(authority)
    return S3FileSystem(**settings), authority


def content_of(filesystem: fs.FileSystem, path: str) -> bytes:
    """Return the bytes of a file, as they are stored; whoever asks tries again."""
    with filesystem.open_input_stream(path, compression=None) as stream:
        content: bytes = stream.read()
        return content


def read_staged(location: str) -> bytes:
    """Return what another task, or the process that hands them out, wrote for this one.

    Raises:
        ReadFailedError: It cannot be read here.
    """
    filesystem, path = open_location(location)
    try:
        return tried_again(lambda: content_of(filesystem, path), location)
    except InputUnreadableError as error:
        raise ReadFailedError(
            f"{error}: it was written for this task, so every machine has to see that folder"
        ) from error
