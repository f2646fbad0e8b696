"""An environment for development can be made by hand, as CONTRIBUTING.md shows."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
(COMMANDS,) = re.findall(r"^```bash\n(uv .*?)^```$", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def listed(file: str) -> list[str]:
    """The requirements of a file, without comments and other files."""
    lines = (ROOT / "requirements" / file).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith(("#", "-"))]


@pytest.mark.rows("OLD-092")
def test_an_environment_is_made_by_one_line() -> None:
    assert COMMANDS.splitlines()[0] == "uv venv && source .venv/bin/activate"


@pytest.mark.rows("OLD-093")
def test_the_extra_for_development_has_what_the_tests_need() -> None:
    assert 'uv pip install -e ".[dev]"' in COMMANDS
    assert sorted(PROJECT["optional-dependencies"]["dev"]) == sorted(listed("build.in") + listed("test.in"))


@pytest.mark.rows("OLD-094")
def test_the_bakery_comes_with_the_package() -> None:
    assert PROJECT["scripts"]["bakery"] == "pie.cli:bakery"
