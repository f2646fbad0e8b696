"""The SDKs that the package brings for building: the Rust crates, and the types of TypeScript for editors."""

from __future__ import annotations

from pathlib import Path

from pie.errors import PieError

FOLDER = Path(__file__).resolve().parent / "_sdk"
"""The crates with their WIT under `rust` and `wit`, the types under `js`."""
LINK = Path(".pie") / "sdk"
"""Where a project finds them, relative to itself: a link, so that its files name no place of one machine."""


def link(project: Path) -> None:
    """Makes or mends the link in a project that uses it; others are left alone.

    Raises PieError `build-failed` where the package brings no SDK, or the link cannot be made.
    """
    if not _is_used(project):
        return
    if not FOLDER.is_dir():
        raise PieError("build-failed", f"the SDK for building is not in {str(FOLDER)!r}; install the package again, or run `make build`")
    place = project / LINK
    try:
        if place.is_symlink():
            if place.readlink() == FOLDER:
                return
            place.unlink()
        place.parent.mkdir(exist_ok=True)
        place.symlink_to(FOLDER, target_is_directory=True)
    except OSError as error:
        raise PieError("build-failed", f"the link {str(place)!r} to the SDK cannot be made: {error.strerror}") from error


def _is_used(project: Path) -> bool:
    """Whether a file of the project names the link."""
    for name in ("Cargo.toml", "tsconfig.json"):
        path = project / name
        try:
            if path.is_file() and str(LINK) in path.read_text(encoding="utf-8", errors="replace"):
                return True
        except OSError as error:
            raise PieError("build-failed", f"{str(path)!r} cannot be read: {error.strerror}") from error
    return False
