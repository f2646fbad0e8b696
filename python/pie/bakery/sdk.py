"""The SDKs that the package brings for building: the Rust crates, and the types of TypeScript for editors."""

from __future__ import annotations

from pathlib import Path

from pie.errors import PieError
from pie.folder import read_project_file

FOLDER = Path(__file__).resolve().parent / "_sdk"
"""The crates with their WIT under `rust` and `wit`, the types under `js`."""
NAMES = ("inferlet", "@pie-project/inferlet")
"""What scripts may call the SDK of JavaScript and TypeScript, which the runtime brings."""
LINK = Path(".pie") / "sdk"
"""Where a project finds them, relative to itself: a link, so that its files name no place of one machine."""


def link(project: Path, *, is_needed: bool = True) -> None:
    """Makes or mends the link in a project that uses it; others are left alone.

    Where it is not needed to run the program, but by editors alone, a folder that cannot be written is left as it is.
    Raises PieError `build-failed` where the package brings no SDK, or the link cannot be made.
    """
    if not _is_used(project):
        return
    if not FOLDER.is_dir():
        if is_needed:
            raise _missing()
        return
    try:
        make_link(project)
    except PieError as error:
        if is_needed or not isinstance(error.__cause__, OSError):
            raise


def make_link(folder: Path) -> Path:
    """Makes or mends the link in a folder, and returns its path. Raises PieError `build-failed`."""
    if not FOLDER.is_dir():
        raise _missing()
    place = folder / LINK
    if place.parent.is_symlink():
        raise PieError("build-failed", f"{str(place.parent)!r} is a link, and nothing is made outside of the project; remove the link")
    try:
        if place.is_symlink():
            if place.readlink() == FOLDER:
                return place
            place.unlink(missing_ok=True)
        place.parent.mkdir(exist_ok=True)
        place.symlink_to(FOLDER, target_is_directory=True)
    except OSError as error:
        if place.is_symlink() and place.readlink() == FOLDER:  # another command has made it meanwhile
            return place
        raise PieError("build-failed", f"the link {str(place)!r} to the SDK cannot be made: {error.strerror}") from error
    return place


def _missing() -> PieError:
    return PieError("build-failed", f"the SDK for building is not in {str(FOLDER)!r}; install the package again, or run `make build`")


def _is_used(project: Path) -> bool:
    """Whether a file of the project names the link."""
    contents = (read_project_file(project, name) for name in ("Cargo.toml", "tsconfig.json"))
    return any(content is not None and str(LINK).encode() in content for content in contents)
