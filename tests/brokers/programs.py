"""A release's broker, tools and clients as a class path, and the acts compiled against them."""

from __future__ import annotations

import shutil
import subprocess
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.brokers.releases import Release
from tests.support.kafka_jars import JarsUnavailableError, run

ACTS = Path(__file__).with_name("acts")
_ALWAYS = ("Act", "Ask", "Member", "Members", "RandomActs", "Stage", "Wire")
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
  <groupId>org.apache.kafka</groupId><artifactId>{artifact}</artifactId><version>{release}</version>
</dependency>"""
_JVM = ("-Xmx512M", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")


@dataclass(frozen=True)
class Programs:
    """Everything of one release that runs. ``class_path`` has the compiled acts too."""

    class_path: str

    def java(self, main: str, *arguments: str, properties: Sequence[str] = ()) -> list[str]:
        """Return the command line of a class of the class path."""
        defined = [f"-D{each}" for each in properties]
        return ["java", *_JVM, *defined, "-cp", self.class_path, main, *arguments]

    def tool(self, name: str) -> str:
        """Return the full name of one of Kafka's tools: they moved between jars and packages."""
        end = f"/tools/{name}.class"
        for jar in self.class_path.split(":"):
            if Path(jar).name.startswith("kafka") and jar.endswith(".jar"):
                with zipfile.ZipFile(jar) as file:
                    for entry in file.namelist():
                        if entry.endswith(end):
                            return entry.removesuffix(".class").replace("/", ".")
        raise JarsUnavailableError(f"no {name} in the jars of this release")


def fetch_programs(release: Release, folder: Path) -> Programs:
    """Let Maven fetch what a release needs, and compile the acts.

    Raises:
        JarsUnavailableError: It cannot be had here; the message says why.
    """
    for command in ("mvn", "java", "javac"):
        if shutil.which(command) is None:
            raise JarsUnavailableError(f"{command} is not on the PATH")
    dependencies = [
        _DEPENDENCY.format(artifact=artifact, release=release.number)
        for artifact in release.artifacts
    ]
    pom, listed = folder / "pom.xml", folder / "class-path"
    pom.write_text(_POM.format(dependencies="\n".join([*dependencies, _LOGGING])))
    goal = ["dependency:build-classpath", f"-Dmdep.outputFile={listed}"]
    run(["mvn", "--quiet", "--batch-mode", "--file", str(pom), *goal])
    jars = listed.read_text().strip()
    classes = folder / "classes"
    sources = [str(ACTS / f"{name}.java") for name in sorted({*_ALWAYS, *release.acts})]
    run(["javac", "-nowarn", "-Xlint:none", "-cp", jars, "-d", str(classes), *sources])
    return Programs(f"{jars}:{classes}")


def start(command: Sequence[str], said: Path) -> subprocess.Popen[bytes]:
    """Start a program that runs beside us; what it says goes to the end of a file."""
    with said.open("ab") as file:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=file)
