"""The browser that pages are opened in, one for all tests of a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.browser import Browser, browser


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened
