"""Kafka's own tools, fetched by Maven into a temporary folder."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

RELEASE = "4.3.1"
_CLASS = "org.apache.kafka.tools.DumpLogSegments"
# What Kafka's scripts give their tools.
_JAVA = ("java", "-Xmx256M", "-server", "-XX:+UseG1GC")
_SECONDS = 900

_POM = """<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>groupscope</groupId>
  <artifactId>kafka-tools</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>{dependencies}</dependencies>
</project>
"""
_DEPENDENCY = """<dependency>
  <groupId>org.apache.kafka</groupId><artifactId>{artifact}</artifactId><version>{release}</version>
</dependency>"""


class ToolsUnavailableError(Exception):
    """No Maven, no Java, or a repository that does not answer; the message says which."""


def fetch(folder: Path) -> Path:
    """Return a folder with the tools' jars and all they need.

    Raises:
        ToolsUnavailableError: They cannot be had here.
    """
    for program in ("mvn", "java"):
        if shutil.which(program) is None:
            raise ToolsUnavailableError(f"{program} is not on the PATH")
    folder.mkdir(parents=True)
    dependencies = [
        _DEPENDENCY.format(artifact=artifact, release=RELEASE)
        for artifact in ("kafka_2.13", "kafka-tools")
    ]
    pom = folder / "pom.xml"
    pom.write_text(_POM.format(dependencies="\n".join(dependencies)), encoding="utf-8")
    jars = folder / "jars"
    goal = ["dependency:copy-dependencies", f"-DoutputDirectory={jars}"]
    command = ["mvn", "--quiet", "--batch-mode", "--file", str(pom), *goal]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise ToolsUnavailableError(f"Maven took more than {_SECONDS} s") from None
    if done.returncode:
        said = (done.stdout + done.stderr).strip().splitlines() or ["nothing"]
        raise ToolsUnavailableError(f"Maven failed, saying: {said[0]}")
    return jars


def dump_log(jars: Path, segment: Path) -> list[str]:
    """Return the command line that prints a segment's records, decoded."""
    arguments = [_CLASS, "--offsets-decoder", "--files", str(segment)]
    return [*_JAVA, "-cp", f"{jars}/*", *arguments]


def printed_records(jars: Path, segment: Path) -> int:
    """Count the records that the tool prints of a segment."""
    done = subprocess.run(dump_log(jars, segment), capture_output=True, text=True, check=True)
    return sum(line.startswith("| offset:") for line in done.stdout.splitlines())
