"""A release's broker, tools and clients as a class path, and the acts compiled against them."""

from __future__ import annotations

import subprocess
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.brokers.releases import Release
from tests.support.kafka_jars import JarsUnavailableError, require, run

ACTS = Path(__file__).with_name("acts")
_ALWAYS = ("Act", "Ask", "Member", "Members", "RandomActs", "Stage", "Wire")
_DECODERS = tuple(f"kafka-{each}" for each in ("group-c", "share-c", "transaction-c"))
_LOGGING = """<dependency>
  <groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>1.7.36</version>
</dependency>"""
_POM = """<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>groupscope</groupId>
  <artifactId>kafka-broker</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>{dependencies}</dependencies>
</project>
"""
_DEPENDENCY = """<dependency>
  <groupId>org.apache.kafka</groupId><artifactId>{artifact}</artifactId><version>{version}</version>
</dependency>"""
_JVM = ("-Xmx512M", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")


@dataclass(frozen=True)
class Programs:
    """Everything of one release that runs: ``class_path`` with the compiled acts, and its tools."""

    class_path: str
    tools_class_path: str

    def java(self, main: str, *arguments: str, properties: Sequence[str] = ()) -> list[str]:
        """Return the command line of a class of the class path."""
        defined = [f"-D{each}" for each in properties]
        return ["java", *_JVM, *defined, "-cp", self.class_path, main, *arguments]

    def tool(self, name: str, *arguments: str) -> list[str]:
        """Return the command line of one of Kafka's tools: they moved between jars and packages."""
        end = f"/tools/{name}.class"
        for jar in map(Path, self.tools_class_path.split(":")):
            if jar.name.startswith("kafka"):
                with zipfile.ZipFile(jar) as file:
                    for entry in file.namelist():
                        if entry.endswith(end):
                            main = entry.removesuffix(".class").replace("/", ".")
                            return ["java", *_JVM, "-cp", self.tools_class_path, main, *arguments]
        raise JarsUnavailableError(f"no {name} in the jars of this release")


def fetch_broker(release: Release, folder: Path) -> Programs:
    """Let Maven fetch a release's broker, and nothing else.

    Raises:
        JarsUnavailableError: It cannot be had here; the message says why.
    """
    require("mvn", "java")
    jars = _class_path({"kafka_2.13": release.number}, folder / "broker.xml")
    return Programs(jars, jars)


def fetch_programs(release: Release, folder: Path) -> Programs:
    """Let Maven fetch what a release needs, and compile the acts.

    Raises:
        JarsUnavailableError: It cannot be had here; the message says why.
    """
    require("mvn", "java", "javac")
    jars = _class_path(release.artifacts, folder / "broker.xml")
    tools = {"kafka_2.13": release.tools.number, "kafka-tools": release.tools.number}
    tool_jars = _class_path(tools, folder / "tools.xml")
    classes = folder / "classes"
    sources = [str(ACTS / f"{name}.java") for name in sorted({*_ALWAYS, *release.acts})]
    run(["javac", "-nowarn", "-Xlint:none", "-cp", jars, "-d", str(classes), *sources])
    # An older release's tools print newer records too if they decode with the newer classes.
    newer = release.line > release.tools.line
    decoders = [jar for jar in jars.split(":") if newer and Path(jar).name.startswith(_DECODERS)]
    return Programs(f"{jars}:{classes}", ":".join([*decoders, tool_jars]))


def _class_path(artifacts: Mapping[str, str], pom: Path) -> str:
    dependencies = [
        _DEPENDENCY.format(artifact=artifact, version=version)
        for artifact, version in artifacts.items()
    ]
    pom.write_text(_POM.format(dependencies="\n".join([*dependencies, _LOGGING])))
    listed = pom.with_suffix(".txt")
    goal = ["dependency:build-classpath", f"-Dmdep.outputFile={listed}"]
    run(["mvn", "--quiet", "--batch-mode", "--file", str(pom), *goal])
    return listed.read_text().strip()


def start(command: Sequence[str], said: Path) -> subprocess.Popen[bytes]:
    """Start a program that runs beside us; what it says goes to the end of a file."""
    with said.open("ab") as file:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=file)
