"""The JVM gets options for the size of its work, and a collector unless it has one already."""

from __future__ import annotations

import pytest

from jobs.spark.session import jvm_options


@pytest.mark.parametrize(
    ("small", "collector"), [(True, "-XX:+UseSerialGC"), (False, "-XX:+UseParallelGC")]
)
def test_the_collector_is_one_that_stops_and_is_done(small: bool, collector: str) -> None:
    options = jvm_options(small=small, environment={"JAVA_TOOL_OPTIONS": "-Xmx1g -XX:+UseNUMA"})
    assert collector in options


@pytest.mark.parametrize("name", ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"])
@pytest.mark.parametrize("small", [True, False])
def test_beside_a_collector_of_the_environment_there_is_none_of_ours(
    name: str, small: bool
) -> None:
    options = jvm_options(small=small, environment={name: "-Xmx1g -XX:+UseG1GC -Dx=y"})
    assert not [each for each in options if "GC" in each]
