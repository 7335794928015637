"""Without a Java that Spark runs on there is one line that says what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.spark.java import java_problem, major_version


def java_that_prints(folder: Path, text: str) -> Path:
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{text}\nEND\n")
    java.chmod(0o755)
    return folder


@pytest.mark.parametrize(
    ("printed", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "21" 2023-09-19 LTS', 21),
        ('java version "1.8.0_392"', 8),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "25.0.1"', 25),
        ("no version at all", None),
    ],
)
def test_the_major_version_is_read_from_what_java_prints(printed: str, version: int | None) -> None:
    assert major_version(printed) == version


def test_no_java_anywhere_is_said_in_one_line(tmp_path: Path) -> None:
    problem = java_problem({"PATH": str(tmp_path)})
    assert problem is not None
    assert "no java on PATH" in problem
    assert "Java 17 or newer" in problem
    assert "\n" not in problem


def test_a_java_home_without_java_is_named(tmp_path: Path) -> None:
    problem = java_problem({"JAVA_HOME": str(tmp_path), "PATH": ""})
    assert problem is not None
    assert str(tmp_path) in problem


def test_an_old_java_is_told_its_age(tmp_path: Path) -> None:
    home = java_that_prints(tmp_path / "old", 'java version "1.8.0_392"')
    problem = java_problem({"JAVA_HOME": str(home)})
    assert problem is not None
    assert "is Java 8" in problem


def test_java_17_and_newer_are_no_problem(tmp_path: Path) -> None:
    home = java_that_prints(tmp_path / "new", 'openjdk version "17.0.1"')
    assert java_problem({"JAVA_HOME": str(home)}) is None
    assert java_problem({"PATH": str(home / "bin")}) is None


def test_a_java_that_cannot_be_run_is_said(tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_bytes(b"\x7fELF not really")
    java.chmod(0o755)
    problem = java_problem({"JAVA_HOME": str(tmp_path)})
    assert problem is not None
    assert "cannot be run" in problem
