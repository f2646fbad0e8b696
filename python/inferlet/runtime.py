"""What a program may know of the engine and of its own launch."""

from __future__ import annotations

from wit_world.imports import runtime as _runtime

__all__ = ["args", "instance_id", "launch_seed", "models", "username", "version"]


def models() -> list[str]:
    """Names of the loaded models, in the order of the configuration; the first is the default."""
    return list(_runtime.models())


def version() -> str:
    """Version of the engine, as `major.minor.patch`."""
    return _runtime.version()


def instance_id() -> str:
    """Names this engine, not the process that runs in it."""
    return _runtime.instance_id()


def username() -> str:
    """The user who launched the program; `anonymous` where nobody gave a name."""
    return _runtime.username()


def args() -> list[str]:
    """The launch arguments as they were typed after `--`, unparsed."""
    return list(_runtime.args())


def launch_seed() -> int:
    """The seed from which every unseeded draw of this launch derives. Launching with the same seed repeats the run."""
    return _runtime.launch_seed()
