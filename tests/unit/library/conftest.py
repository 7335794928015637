"""What tests of whole questions share: each dump is decoded and replayed once in a process."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.answered_here import ReplayedDump, replayed_for_questions
from tests.support.dump_folder import DumpFolder


@pytest.fixture(scope="session")
def replayed_dump(tmp_path_factory: pytest.TempPathFactory) -> ReplayedDump:
    """The workspace of a dump; questions may keep their tables in it."""
    made: dict[Path, Path] = {}

    def workspace_of(dump: DumpFolder) -> Path:
        if dump.root not in made:
            folder = tmp_path_factory.mktemp(dump.root.name)
            made[dump.root] = replayed_for_questions(dump, folder)
        return made[dump.root]

    return workspace_of
