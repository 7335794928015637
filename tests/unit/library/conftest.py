"""What tests of whole questions share: each dump is decoded and replayed once for all."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from filelock import FileLock

from tests.support.answered_here import ReplayedDump, replayed_for_questions
from tests.support.dump_folder import DumpFolder


@pytest.fixture(scope="session")
def replayed_dump(shared_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> ReplayedDump:
    """The workspace of a dump, for this process; questions may keep their tables in it."""
    made: dict[Path, Path] = {}

    def workspace_of(dump: DumpFolder) -> Path:
        if dump.root not in made:
            folder = shared_folder / "replayed" / dump.root.name
            folder.mkdir(parents=True, exist_ok=True)
            with FileLock(folder / "lock"):
                if not (folder / "replayed").exists():
                    replayed_for_questions(dump, folder)
            own = tmp_path_factory.mktemp(dump.root.name) / "replayed"
            made[dump.root] = shutil.copytree(folder / "replayed", own)
        return made[dump.root]

    return workspace_of
