"""Makes ready what building needs, on a machine where nothing is prepared: `python3 -m tools.toolchain`.

Runs under a bare Python 3.11, as often as one likes. Downloads come from the Cargo registry, PyPI, rustup where it
answers, and the Debian mirrors that the machine already uses.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""The repository."""

sys.path.insert(0, str(ROOT / "python"))  # what users need for building is part of the product: `pie.bakery.toolchain`
