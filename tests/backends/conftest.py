"""The kernels under test."""

from pathlib import Path

import pytest

from support.conformance import ISOLATED
from support.kernels import kernel_library


@pytest.fixture(scope="session")
def library() -> Path:
    """The shared object with the kernels."""
    return kernel_library()


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--driver module:function` has the conformance test ask a driver of one's own; see `docs/reference/driver.md`."""
    parser.addoption("--driver", help="module:function that opens a driver, as pie.backends.open_driver does without the name")
    parser.addoption("--isolate", action="store_true", help="has the drivers of the conformance test run in processes of their own")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """The drivers that the conformance test asks."""
    if "driver_name" in metafunc.fixturenames:
        own = metafunc.config.getoption("--driver", default=None)
        # Opening a process for each question takes minutes, so that it is done where it is asked for.
        prefix = ISOLATED if metafunc.config.getoption("--isolate", default=False) else ""
        names = [prefix + name for name in ([own] if own else ["cpu", "cuda", "reference", "dummy"])]
        metafunc.parametrize("driver_name", names, scope="module")
