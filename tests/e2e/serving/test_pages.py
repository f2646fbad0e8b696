"""The size of the pages of memory that a server and its drivers have."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from support.serving import serving

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such setting")


def _said(status: Path, name: str) -> str | None:
    try:
        lines = [line.partition(":") for line in status.read_text().splitlines()]
    except OSError:
        return None  # a process that has ended meanwhile
    return next((value.strip() for said, _, value in lines if said == name), None)


def test_a_server_has_small_pages_and_its_drivers_have_huge_ones(tmp_path: Path) -> None:
    """What programs met is counted by page faults, which are of one size; weights are streamed from huge pages."""
    own = Path("/proc/self/status")
    if _said(own, "THP_enabled") != "1":
        pytest.skip("this system does not say what pages a process has, or keeps them small")
    with serving(tmp_path, "--port", "0") as served:
        engine = Path(f"/proc/{served.process.pid}/status")
        statuses = [status for status in Path("/proc").glob("[0-9]*/status") if _said(status, "PPid") == str(served.process.pid)]
        assert _said(engine, "THP_enabled") == "0"
        assert [_said(status, "THP_enabled") for status in statuses] == ["1"]
