"""`pie config`: what is configured, and where each value comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pie.config import Flags


def show_config(flags: Flags, *, as_json: bool) -> int:
    """Prints the configuration under these flags; returns the exit code."""
    from pie.config import load, show

    config = load(flags)
    print(show.as_json(config) if as_json else show.as_toml(config), end="\n" if as_json else "")
    return 0


def print_path(flags: Flags) -> int:
    """Prints the path of the file that is read, or would be if it were there; returns the exit code."""
    from pie.config import config_file, own_file
    from pie.config.environment import environment

    print(config_file(flags, environment()) or own_file())
    return 0
