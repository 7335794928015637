"""Options of the JVM that a command on one machine starts, works in and ends."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

ROOM_FOR_CLASSES = "-XX:MetaspaceSize=384m"
"""Loading classes is no reason to collect garbage."""

# With one compiler the JVM makes room for little code, and is busy throwing some out.
QUICK_COMPILER = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
"""For work that is done in seconds, sooner than the other compiler would be of use."""

TRUSTED_ARROW = "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"
"""Arrow in the JVM need not look at the bounds of what a worker sends once more for each value."""

_ENVIRONMENT = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
_ANY_COLLECTOR = re.compile(r"-XX:\+Use\w+GC\b")


def jvm_options(*, small: bool, environment: Mapping[str, str] = os.environ) -> list[str]:
    """Return the options; a JVM that is told of two collectors does not start."""
    chosen = any(_ANY_COLLECTOR.search(environment.get(name, "")) for name in _ENVIRONMENT)
    options = [ROOM_FOR_CLASSES, TRUSTED_ARROW]
    if small:
        options.append(QUICK_COMPILER)
    if not chosen:
        # Nobody waits for the JVM between two pauses, so no work is done to make them short.
        options.append("-XX:+UseSerialGC" if small else "-XX:+UseParallelGC")
    return options
