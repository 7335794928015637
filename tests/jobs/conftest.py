"""What tests of commands share: charts that were drawn before, and programs of brokers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import vl_convert

from tests.brokers.programs import Programs, fetch_programs
from tests.brokers.releases import Release
from tests.support.kafka_jars import JarsUnavailableError


@pytest.fixture(scope="session", autouse=True)
def _charts_are_drawn_once() -> Iterator[None]:
    """Draw a chart of the same rows once: that is a third of an audit, and it has no state.

    How charts are drawn is what `tests/unit/reports` are about.
    """
    draw = vl_convert.vegalite_to_svg
    drawn: dict[str, str] = {}

    def once(chart: dict[str, Any]) -> str:
        key = json.dumps(chart)
        if key not in drawn:
            drawn[key] = draw(chart)
        return drawn[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vl_convert, "vegalite_to_svg", once)
        yield


@pytest.fixture(scope="module")
def programs(release: Release, tmp_path_factory: pytest.TempPathFactory) -> Programs:
    """Fetch the programs of the release that a module is about."""
    try:
        return fetch_programs(release, tmp_path_factory.mktemp("programs"))
    except JarsUnavailableError as reason:
        pytest.skip(str(reason))
