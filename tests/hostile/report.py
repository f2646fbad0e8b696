"""Prints for each hostile program what it got, after how long, and the memory of the engine:
`python tests/hostile/report.py`.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from hostile.cases import CASES
from hostile.running import meet, shown
from pie.config import ModelConfig
from pie.engine import Engine


def main() -> None:
    """Runs the corpus once."""
    with Engine() as engine, tempfile.TemporaryDirectory() as folder:
        engine.add_model(options=ModelConfig(driver="dummy"))
        for case in CASES:
            met = meet(engine, case, Path(folder))
            sys.stdout.write(shown(case, met) + "\n")


if __name__ == "__main__":
    main()
