"""Where the engine keeps what outlives it; the one place that reads the environment for it."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """The user's cache of compiled programs: `$XDG_CACHE_HOME/pie`, else `~/.cache/pie`. Deleting it costs only time."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "pie"
