"""The cases that the engine's tests read are those that the oracle writes."""

import subprocess
import sys
from pathlib import Path


def test_core_cases_are_in_step() -> None:
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("write_core_cases.py")), "--check"], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
