"""Archived rows in a store, which Spark reads by its own client of S3: hadoop-aws.

Of a store that throttles, and of connections that are cut, it reads the same rows, or says that a
read failed.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pyspark
import pytest

from tests.conftest import COMMAND
from tests.support.archived import rows_of_partition, write_parquet
from tests.support.counting_proxy import (
    CUT,
    CUT_WITHIN,
    PASSES,
    SLOW_DOWN,
    CountingProxy,
    Fault,
    proxy_before,
)
from tests.support.kafka_jars import JarsUnavailableError, class_path
from tests.support.store import Store, store_here

pytestmark = pytest.mark.maven

PARTS, SECONDS = 6, 300
FAULTS: dict[str, Fault] = {
    "none": lambda _: PASSES,
    "a store that throttles": lambda number: SLOW_DOWN if number % 4 == 3 else PASSES,
    "connections that are cut": lambda number: CUT if number % 4 == 3 else PASSES,
}


@pytest.fixture(scope="module")
def jars(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Those of hadoop-aws, of the release of Hadoop that Spark has."""
    (client,) = (Path(pyspark.__file__).parent / "jars").glob("hadoop-client-api-*.jar")
    release = re.sub(r"\D*([\d.]+)\.jar", r"\1", client.name)
    try:
        artifacts = [f"org.apache.hadoop:hadoop-aws:{release}"]
        return class_path(tmp_path_factory.mktemp("jars"), artifacts)
    except JarsUnavailableError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def archive(failover_dump: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows of one partition, in some files."""
    folder = tmp_path_factory.mktemp("archive")
    rows = rows_of_partition(failover_dump / "broker-3" / "__consumer_offsets-9")
    for number in range(PARTS):
        write_parquet(folder / f"rows-{number}.parquet", rows[number::PARTS])
    return folder


@pytest.fixture(scope="module")
def store(archive: Path) -> Iterator[Store]:
    with store_here() as here:
        here.put(archive, "rows")
        yield here


def decoded(jars: list[Path], proxy: CountingProxy, out: Path) -> subprocess.CompletedProcess[str]:
    settings = {
        "spark.jars": ",".join(map(str, jars)),
        "spark.hadoop.fs.s3a.endpoint": f"http://{proxy.address}",
        "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
        "spark.hadoop.fs.s3a.path.style.access": "true",
    }
    conf = [each for name, value in settings.items() for each in ("--conf", f"{name}={value}")]
    return subprocess.run(
        [
            *(str(COMMAND), "decode", Store(proxy.address).location("rows"), "--out", str(out)),
            *("--master", "local[2]", *conf),
        ],
        capture_output=True,
        encoding="utf-8",
        timeout=SECONDS,
        check=False,
    )


def rows_in(workspace: Path) -> dict[str, list[str]]:
    """Rows of decoded tables; the file they were read from is another."""
    tables = {each.name: pq.read_table(each) for each in (workspace / "decoded").iterdir()}
    return {
        name: sorted(map(repr, table.drop_columns(["segment"]).to_pylist()))
        for name, table in tables.items()
    }


@pytest.mark.parametrize("what", FAULTS)
def test_rows_are_those_of_the_disk(
    jars: list[Path], archive: Path, store: Store, tmp_path: Path, what: str
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    subprocess.run([COMMAND, "decode", archive, "--out", here, "--quiet"], check=True)
    with proxy_before(store.address, FAULTS[what]) as proxy:
        ran = decoded(jars, proxy, there)
    assert ran.returncode == 0, ran.stderr
    assert len(proxy.faults) == (1 if what == "none" else 2), proxy.faults
    assert rows_in(there) == rows_in(here)


def test_an_answer_that_ends_too_soon_says_nothing_about_the_file(
    jars: list[Path], store: Store, tmp_path: Path
) -> None:
    def fault(number: int) -> str:
        return CUT_WITHIN if number % 5 == 3 else PASSES

    with proxy_before(store.address, fault) as proxy:
        ran = decoded(jars, proxy, tmp_path / "out")
    assert ran.returncode == 3, ran.stderr
    words = " ".join(ran.stderr.split())
    assert re.search(r"groupscope: \S*rows-\d\.parquet: cannot be read \(", words), words
    assert "nothing is concluded from it" in words or "this says nothing about" in words
    assert "damaged" not in words
    assert not (tmp_path / "out" / "manifest.json").exists()
