"""The kernels under test."""

from pathlib import Path

import pytest

from support.kernels import kernel_library


@pytest.fixture(scope="session")
def library() -> Path:
    """The shared object with the kernels."""
    return kernel_library()
