"""The folder that `restore` writes: whole or not at all, and none but its own files replaced."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from analytics.errors import OutputRefusedError
from analytics.workspace import RESTORED
from jobs.workspaces.written_text import staged_file, write_text


def write_folder(out: str, files: Mapping[str, str], about: Mapping[str, Any]) -> None:
    """Write the files; those of an earlier run that are no more are removed.

    Args:
        out: The folder.
        files: Their text by name.
        about: What `restore.json` says besides.

    Raises:
        OutputRefusedError: The folder holds something else.
    """
    folder = Path(out)
    earlier = check_folder(out)
    folder.mkdir(parents=True, exist_ok=True)
    staged: dict[str, Path] = {}
    try:
        for name, text in files.items():
            staged[name] = staged_file(folder / name, text.encode())
    except BaseException:
        for path in staged.values():
            path.unlink(missing_ok=True)
        raise
    # Without this file nobody takes the folder for finished.
    (folder / RESTORED).unlink(missing_ok=True)
    for name in earlier:
        (folder / name).unlink(missing_ok=True)
    for name, path in staged.items():
        path.replace(folder / name)
    write_text(
        folder / RESTORED,
        json.dumps({**about, "files": sorted(files)}, indent=1, ensure_ascii=False),
    )


def check_folder(out: str) -> list[str]:
    """Return the files of an earlier run.

    Raises:
        OutputRefusedError: The folder is none, or holds something else.
    """
    folder = Path(out)
    if not folder.exists():
        return []
    if not folder.is_dir():
        raise OutputRefusedError(f"{out} is a file, not a folder")
    if not any(folder.iterdir()):
        return []
    try:
        files = json.loads((folder / RESTORED).read_text(encoding="utf-8"))["files"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise OutputRefusedError(
            f"{out} is not empty and was not written by restore: choose another folder"
        ) from error
    return [str(name) for name in files if Path(str(name)).name == name]
