"""What a person names: one resolver for paths and URIs, with what stands behind a question mark."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyarrow import fs

from analytics import locations
from analytics.dump.files.storage import has_glob
from analytics.errors import InputNotRecognizedError
from analytics.locations import (
    base_name,
    for_spark,
    is_uri,
    join,
    local_path,
    open_location,
    parent,
)

STORE = "?endpoint_override=127.0.0.1:1&scheme=http"


@pytest.mark.parametrize(
    ("location", "uri"),
    [
        ("hdfs://n/x", True),
        ("s3a://b/x", True),
        ("S3://b/x", True),
        ("file:///x", False),
        ("FILE:///x", False),
        ("/a/b", False),
        ("a:b", False),
    ],
)
def test_what_is_a_uri(location: str, uri: bool) -> None:
    assert is_uri(location) is uri


def test_parts_of_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert local_path("file:///a%20b") == local_path("file://localhost/a%20b") == "/a b"
    assert join("/", "x") == "/x"
    assert join("/a/", "x") == "/a/x"
    assert join("", "x") == "x"
    assert base_name(".") == tmp_path.name
    assert parent("x") == str(tmp_path)


@pytest.mark.parametrize("query", ["", STORE])
def test_parts_of_uris_keep_what_the_filesystem_is_to_know(query: str) -> None:
    assert join(f"s3://b{query}", "x") == f"s3://b/x{query}"
    assert join(f"s3://b/a/{query}", "x/y") == f"s3://b/a/x/y{query}"
    assert parent(f"hdfs://n/a/b/{query}") == f"hdfs://n/a{query}"
    assert base_name(f"hdfs://n/a/b/{query}") == "b"
    assert base_name(f"s3://b{query}") == "b"
    assert for_spark(f"s3://b/a%20b{query}") == "s3a://b/a%20b"
    assert for_spark(f"hdfs://n/a{query}") == "hdfs://n/a"
    assert not has_glob(f"s3://b/a{query}")
    assert has_glob(f"s3://b/a?{query}")


@pytest.mark.parametrize("scheme", ["s3", "s3a", "s3n", "S3"])
def test_all_names_of_a_store_open_it_and_names_in_it_are_as_they_are_written(scheme: str) -> None:
    filesystem, path = open_location(f"{scheme}://b/a%20b/c{STORE}")
    same, bucket = open_location(f"s3://b/{STORE}")
    assert filesystem.equals(same)
    assert (path, bucket) == ("b/a%20b/c", "b")
    # What is put together as text has the rest of its path behind it.
    assert open_location(f"{scheme}://b/a{STORE}/c/d")[1] == "b/a/c/d"


@pytest.mark.parametrize(
    ("location", "path"),
    [
        ("gs://anonymous@b/x/y", "b/x/y"),
        ("abfs://box@account.dfs.core.windows.net/x/y", "box/x/y"),
        ("abfss://box@account.dfs.core.windows.net/", "box"),
    ],
)
def test_paths_in_other_stores(location: str, path: str) -> None:
    assert open_location(location)[1] == path


def test_a_file_uri_is_a_path_of_this_machine(tmp_path: Path) -> None:
    filesystem, path = open_location(f"file://{tmp_path}/a%20b")
    assert isinstance(filesystem, fs.LocalFileSystem)
    assert path == f"{tmp_path}/a b"
    with pytest.raises(InputNotRecognizedError, match=r"file:///data/x"):
        open_location("file://data/x")


@pytest.mark.parametrize("location", ["foo://b/x", "http://b/x", "s3x://b/x"])
def test_a_scheme_that_nothing_opens_is_refused_with_those_that_are_known(location: str) -> None:
    with pytest.raises(InputNotRecognizedError) as refused:
        open_location(location)
    for scheme in locations.SCHEMES:
        assert f"{scheme}:" in str(refused.value)


def test_a_query_that_the_filesystem_does_not_know_is_refused() -> None:
    with pytest.raises(InputNotRecognizedError, match="endpont"):
        open_location("s3://b/x?endpont=127.0.0.1:1")


@pytest.mark.parametrize("scheme", ["s3", "s3a", "S3"])
def test_a_key_in_a_uri_is_refused_and_not_repeated(scheme: str) -> None:
    with pytest.raises(InputNotRecognizedError, match="AWS_SECRET_ACCESS_KEY") as refused:
        open_location(f"{scheme}://AKIAKEY:s%2Fcret@dumps/incident?region=eu-central-1")
    assert f"{scheme}://...@dumps" in str(refused.value)
    assert "AKIAKEY" not in str(refused.value)
