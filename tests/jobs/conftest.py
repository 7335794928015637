"""What tests of running brokers share."""

from __future__ import annotations

import pytest

from tests.brokers.programs import Programs, fetch_programs
from tests.brokers.releases import Release
from tests.support.kafka_jars import JarsUnavailableError


@pytest.fixture(scope="module")
def programs(release: Release, tmp_path_factory: pytest.TempPathFactory) -> Programs:
    """Fetch the programs of the release that a module is about."""
    try:
        return fetch_programs(release, tmp_path_factory.mktemp("programs"))
    except JarsUnavailableError as reason:
        pytest.skip(str(reason))
