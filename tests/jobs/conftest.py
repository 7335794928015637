"""Commands that tests run in their own process leave Spark open: one session a process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jobs.spark import session


@pytest.fixture(scope="module", autouse=True)
def _session_stays_open() -> Iterator[None]:
    """Let no command stop the session: that of the `spark` fixture may be the same one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "_stop", lambda _: None)
        yield
