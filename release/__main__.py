"""What is released of a commit: `python -m release FOLDER`, from the root of a checkout."""

from __future__ import annotations

import sys
from pathlib import Path

from release.artifacts import ReleaseRefusedError, write_release

if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m release FOLDER")
    try:
        for path in write_release(Path.cwd(), Path(sys.argv[1])):
            print(path)  # noqa: T201 - what it is for
    except ReleaseRefusedError as error:
        print(f"release: {error}", file=sys.stderr)  # noqa: T201 - likewise
        sys.exit(2)
