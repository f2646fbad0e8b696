"""Makes the bindings that the SDK imports in a component importable here, where every call of them is faked by a
test.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "python")]

from tools.python_bindings import ensure_bindings  # noqa: E402

sys.path.insert(0, str(ensure_bindings()))
