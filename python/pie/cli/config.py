"""`pie config`: what is configured, where each value comes from, and changing it."""

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


def set_config(flags: Flags, name: str, text: str) -> int:
    """Sets one setting in the configuration file, and says what stands there; returns the exit code."""
    import sys

    from pie.config import config_file, own_file
    from pie.config.change import change_setting
    from pie.config.environment import environment
    from pie.config.settings import settings

    path = config_file(flags, environment()) or own_file(environment())
    line = change_setting(path, name, text)
    section, _, rest = name.partition(".")
    is_secret = settings()[section][rest.rpartition(".")[2]].is_secret
    print(f"{path}: {name} is set" if is_secret else f"{path}: {name}: {line}", file=sys.stderr)
    return 0


def print_path(flags: Flags) -> int:
    """Prints the path of the file that is read, or would be if it were there; returns the exit code."""
    from pie.config import config_file, own_file
    from pie.config.environment import environment

    print(config_file(flags, environment()) or own_file(environment()))
    return 0
