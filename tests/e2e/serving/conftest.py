"""One server for the tests that leave it as it was; those that end one start their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.serving import Served, serving


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server of the dummy driver, in which what has no client ends at once."""
    with serving(tmp_path_factory.mktemp("server"), server__grace_s=0.001) as served:
        yield served
