"""Commands that are run beside a cluster."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.cluster.conftest import Cluster


def run(
    cluster: Cluster,
    *command: str | Path,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; its environment is that of a driver and what is given here."""
    return subprocess.run(
        [*map(str, command)],
        cwd=cwd,
        env={**cluster.environment, **(env or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
