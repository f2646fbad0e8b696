"""What is read of the environment.

No other module of the package reads it but `pie.bakery.toolchain.machine`, which runs before anything is installed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pie.errors import PieError

PREFIX = "PIE_"
SEPARATOR = "__"
CONFIG_FILE = "PIE_CONFIG"
CONFIG_HOME = "XDG_CONFIG_HOME"
KEY = "PIE_KEY"


@dataclass(frozen=True)
class Variable:
    """An environment variable that is no setting of its own."""

    name: str
    description: str


VARIABLES = (
    Variable(CONFIG_FILE, "The configuration file, in place of the user's own one; `--config` wins over it."),
    Variable(
        CONFIG_HOME,
        "The folder in which the user's own configuration file is `pie/config.toml`. Where that is missing, or the variable is not set "
        "to an absolute path, it is `~/.pie/config.toml`.",
    ),
    Variable(KEY, "The API key of the commands that talk to a server: another name of `PIE_CLIENT__KEY`, which wins over it."),
    Variable(
        "XDG_CACHE_HOME",
        "The folder under which `engine.cache_dir` lies where it is not set, and what building programs keeps (`pie-build`); "
        "`~/.cache` if not given.",
    ),
    Variable("CARGO_TARGET_DIR", "The folder under which cargo builds Rust programs; `pie-build/target` in the cache folder if not given."),
    Variable("LD_LIBRARY_PATH", "Where shared libraries lie; workers that read programs get it, and nothing else of the environment."),
    Variable("CC", "The C compiler that makes what launches kernels on a GPU; gcc or clang if not given."),
    Variable(
        "CUDA_HOME", "The folder of the CUDA toolkit, by whose `nvcc` FlashInfer compiles its kernels; `nvcc` on the path if not given."
    ),
    Variable("CUDA_PATH", "Another name of `CUDA_HOME`, which wins over it."),
    Variable("HF_HUB_CACHE", "The cache of Hugging Face, in which `pie model list` looks; `hub` in `$HF_HOME` if not given."),
    Variable("HF_HOME", "The folder in which that cache lies; `huggingface` in `$XDG_CACHE_HOME`, or in `~/.cache`, if not given."),
    Variable("HOME", "The user's own folder, which `~` stands for at the beginning of a path."),
)
"""Every variable that is read beside those of the settings; for the reference."""


def environment() -> Mapping[str, str]:
    """The environment of this process, as it is at the moment."""
    return dict(os.environ)


def own_variables() -> list[str]:
    """Variables that are for Pie, and that no program of others gets: settings, of which some are keys."""
    return [name for name in os.environ if name.startswith(PREFIX)]


def environment_of_others() -> dict[str, str]:
    """The environment without what is for Pie."""
    withheld = set(own_variables())
    return {name: value for name, value in os.environ.items() if name not in withheld}


def with_libraries(command: tuple[str, ...]) -> tuple[str, ...]:
    """`command`, run where the libraries of this process are found: an engine gives its workers no environment."""
    folders = os.environ.get("LD_LIBRARY_PATH")
    return ("/usr/bin/env", f"LD_LIBRARY_PATH={folders}", *command) if folders else command


def home() -> Path:
    """The user's own folder; PieError `invalid-config` where the system knows none."""
    try:
        return Path.home()
    except RuntimeError as error:
        raise PieError("invalid-config", f"the user has no folder of their own ({error}); set HOME") from error


def cache_folder() -> Path:
    """Where compiled programs are kept unless configured: `$XDG_CACHE_HOME/pie`, else `~/.cache/pie`.

    Deleting it costs only time.
    """
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else home() / ".cache") / "pie"


def data_folder() -> Path:
    """Where what a server keeps for its users lies unless configured, and the configuration file: `~/.pie`."""
    return home() / ".pie"


def config_folder(variables: Mapping[str, str]) -> Path | None:
    """Where the user wants configuration files: `$XDG_CONFIG_HOME/pie`; None where that is not set.

    A relative path counts as none, as the specification of the variable wants it.
    """
    base = Path(variables.get(CONFIG_HOME, ""))
    return base / "pie" if base.is_absolute() else None


def models_folder() -> Path:
    """Where `pie model list` looks for folders of models: `~/.pie/models`."""
    return data_folder() / "models"


def hub_folder() -> Path:
    """Where Hugging Face keeps what it has downloaded, by its own variables."""
    if given := os.environ.get("HF_HUB_CACHE"):
        return Path(given)
    if given := os.environ.get("HF_HOME"):
        return Path(given) / "hub"
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else home() / ".cache") / "huggingface" / "hub"
