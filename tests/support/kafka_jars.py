"""Kafka's published jars, release by release, and others, fetched by Maven in one go."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

RELEASES = ("3.9.2", "4.0.2", "4.1.2", "4.2.1", "4.3.1", "4.4.0")
"""The last patch of every release whose schemas ours are held against, oldest first."""

_ARTIFACTS = (
    "kafka-clients",
    "kafka-group-coordinator",
    "kafka-metadata",
    "kafka-share-coordinator",
    "kafka-transaction-coordinator",
)
_PROBE = Path(__file__).with_name("DescribeKafka.java")
_SECONDS = 600

_POM = """<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>groupscope</groupId>
  <artifactId>kafka-jars</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <build><plugins><plugin>
    <artifactId>maven-dependency-plugin</artifactId>
    <configuration><artifactItems>{items}</artifactItems></configuration>
  </plugin></plugins></build>
</project>
"""
_ITEM = """<artifactItem>
  <groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>
  <outputDirectory>{folder}</outputDirectory>
</artifactItem>"""


class JarsUnavailableError(Exception):
    """No Maven, no Java, or a repository that does not answer; the message says which."""


def fetch_jars(folder: Path) -> dict[str, list[Path]]:
    """Return each release's jars, copied below the folder.

    Raises:
        JarsUnavailableError: They cannot be had here.
    """
    require("mvn", "java")
    items = [
        _ITEM.format(
            group="org.apache.kafka", artifact=artifact, version=release, folder=folder / release
        )
        for release in RELEASES
        for artifact in _ARTIFACTS
        if (artifact, release) != ("kafka-share-coordinator", "3.9.2")  # not yet published
    ]
    # The assignors' classes log, so they do not load without it.
    items.append(
        _ITEM.format(
            group="org.slf4j", artifact="slf4j-api", version="1.7.36", folder=folder / "slf4j"
        )
    )
    pom = folder / "pom.xml"
    pom.write_text(_POM.format(items="\n".join(items)))
    run(["mvn", "--quiet", "--batch-mode", "--file", str(pom), "dependency:copy"])
    slf4j = sorted((folder / "slf4j").glob("*.jar"))
    return {release: [*sorted((folder / release).glob("*.jar")), *slf4j] for release in RELEASES}


_CLASSES = """<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>groupscope</groupId><artifactId>classes</artifactId><version>1</version>
  <packaging>pom</packaging>
  <dependencies>{dependencies}</dependencies>
</project>
"""
_DEPENDENCY = (
    "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"
)


def class_path(folder: Path, artifacts: Sequence[str]) -> list[Path]:
    """Return the jars of artifacts (`group:name:version`) and of all that they depend on.

    Raises:
        JarsUnavailableError: They cannot be had here.
    """
    require("mvn", "java")
    pom, written = folder / "classes.xml", folder / "classes"
    dependencies = "".join(_DEPENDENCY.format(*each.split(":")) for each in artifacts)
    pom.write_text(_CLASSES.format(dependencies=dependencies))
    goal = ("dependency:build-classpath", "-Dmdep.includeScope=runtime")
    run(["mvn", "--batch-mode", "--file", str(pom), *goal, f"-Dmdep.outputFile={written}"])
    return [Path(each) for each in written.read_text().split(":")]


def describe_by_classes(jars: list[Path]) -> str:
    """Return what the probe prints about a release: JSON, one entry a message.

    Raises:
        JarsUnavailableError: Java cannot run it.
    """
    return run(["java", "--class-path", ":".join(map(str, jars)), str(_PROBE)])


def require(*commands: str) -> None:
    """Make sure that programs can be run.

    Raises:
        JarsUnavailableError: One is not on the PATH.
    """
    for command in commands:
        if shutil.which(command) is None:
            raise JarsUnavailableError(f"{command} is not on the PATH")


def run(command: list[str]) -> str:
    """Return what a program printed.

    Raises:
        JarsUnavailableError: It failed.
    """
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise JarsUnavailableError(f"{command[0]} took more than {_SECONDS} s") from None
    if done.returncode != 0:
        said = (done.stdout + done.stderr).strip().splitlines() or ["nothing"]
        raise JarsUnavailableError(f"{command[0]} failed, saying: {said[0]}")
    return done.stdout
