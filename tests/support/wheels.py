"""Wheels made on the spot, so that tests of dependencies need no network."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path


def wheel(folder: Path, name: str, files: dict[str, str], version: str = "1", requires: Sequence[str] = ()) -> str:
    """A wheel that says of itself that it is pure; returns the name of the file."""
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    needs = "".join(f"Requires-Dist: {one}\n" for one in requires)
    described = {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    described[f"{info}/RECORD"] = "".join(f"{file},,\n" for file in (*files, *described, f"{info}/RECORD"))
    with zipfile.ZipFile(path, "w") as archive:
        for file, text in (files | described).items():
            archive.writestr(file, text)
    return path.name
