"""Back ends by name."""

from __future__ import annotations

from pathlib import Path

from pie.backends.base import Driver, DriverOptions
from pie.errors import PieError

BACKENDS = ("cpu", "reference")
"""The names that `open_driver` knows."""


def open_driver(name: str, folder: Path, options: DriverOptions | None = None) -> Driver:
    """Loads a model folder on the back end of that name.

    Raises PieError `invalid-model` for the folder, `invalid-argument` for the name or the options, and `invalid-config`
    where the package that a back end needs is not installed.
    """
    # Each back end is imported when it is asked for: torch alone takes seconds.
    if name == "cpu":
        from pie.backends import cpu  # noqa: PLC0415

        return cpu.open_driver(folder, options)
    if name == "reference":
        try:
            from pie.backends import reference  # noqa: PLC0415
        except ModuleNotFoundError as error:
            if error.name != "torch":
                raise
            raise PieError(
                "invalid-config", "the reference back end needs torch, which is not installed: pip install 'pie-engine[reference]'"
            ) from None
        return reference.open_driver(folder, options)
    raise PieError("invalid-argument", f"the back end {name!r} is unknown; choose one of {', '.join(BACKENDS)}")
