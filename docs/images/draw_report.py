"""Makes the sample page and its picture: an audit of the bundled failover, seen in Chromium.

    python docs/images/draw_report.py            (after `make setup`; needs Chromium)

Both are what the command wrote at the time; run it again when the page changes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PICTURE = Path(__file__).with_name("report.png")
SAMPLE = ROOT / "examples" / "report.html"
DUMP = "examples/kafka-4.3.1-failover"
SIZE = "1200,1180"


def main() -> None:
    """Audit the dump, keep its page, and take a picture of how it begins."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "audited"
        subprocess.run(
            [Path(sys.executable).with_name("groupscope"), "audit", DUMP, "--out", out],
            cwd=ROOT,
            env={**os.environ, "GROUPSCOPE_NO_PROGRESS": "1", "GROUPSCOPE_FAIL_ON": "never"},
            check=True,
        )
        shutil.copy(out / "report" / "index.html", SAMPLE)
        picture(Path(folder) / "profile")


def picture(profile: Path) -> None:
    """Take the picture of the sample page."""
    subprocess.run(
        [
            shutil.which("chromium") or "google-chrome",
            *("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
            *("--no-first-run", "--disable-background-networking"),
            *(f"--user-data-dir={profile}", f"--window-size={SIZE}"),
            *(f"--screenshot={PICTURE}", SAMPLE.as_uri()),
        ],
        check=True,
        capture_output=True,
    )


if __name__ == "__main__":
    main()
