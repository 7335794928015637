"""Is there a Java that Spark can run on: asked before Spark is, which would only say it failed.

`python -m jobs.spark.java` answers from a bare checkout, before anything is installed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

OLDEST = 17
"""The oldest Java that Spark 4 runs on."""


def java_problem(environment: Mapping[str, str] = os.environ) -> str | None:
    """Return one line saying why Spark could not start, or None when it could.

    Spark takes `$JAVA_HOME/bin/java` where JAVA_HOME is set, and else the `java` of PATH.
    """
    home = environment.get("JAVA_HOME")
    if home:
        java = Path(home) / "bin" / "java"
        if not os.access(java, os.X_OK):
            return f"JAVA_HOME is {home}, which has no bin/java: {_advice('correct or unset it')}"
        return _version_problem(java)
    found = shutil.which("java", path=environment.get("PATH"))
    if found is None:
        return f"no java on PATH, and JAVA_HOME is not set: {_advice('install one')}"
    return _version_problem(Path(found))


def major_version(printed: str) -> int | None:
    """Return the major version in what `java -version` printed; None when none is in it.

    Before 9, Java called itself 1.x: `1.8.0_392` is 8.
    """
    match = re.search(r'version "(?:1\.)?(\d+)', printed)
    return int(match[1]) if match else None


def _version_problem(java: Path) -> str | None:
    try:
        run = subprocess.run(  # noqa: S603 - the program Spark itself would run
            [str(java), "-version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{java} cannot be run ({error}): {_advice('install one that can')}"
    version = major_version(run.stderr + run.stdout)
    if version is None:
        return f"{java} does not say which version it is: {_advice('install one that does')}"
    if version < OLDEST:
        return f"{java} is Java {version}: {_advice('install a newer one')}"
    return None


def _advice(what: str) -> str:
    return f"Spark needs Java {OLDEST} or newer; {what}, or set JAVA_HOME to one"


if __name__ == "__main__":
    problem = java_problem()
    if problem is not None:
        sys.exit(f"groupscope: {problem}")
