"""Folders of small files."""

from pathlib import Path


def write(root: Path, files: dict[str, str]) -> Path:
    """Writes files below `root` by their paths, which `/` separates; returns `root`."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root
