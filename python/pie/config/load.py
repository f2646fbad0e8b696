"""Folds the layers into one tree: defaults, file, environment and flags.

A later layer wins over an earlier one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pie.config.environment import CONFIG_FILE, KEY, PREFIX, SEPARATOR, config_folder, data_folder, environment
from pie.config.file import File, read_file
from pie.config.mcp import written_servers
from pie.config.models import chosen_models, written_models
from pie.config.origin import DEFAULT, Origin
from pie.config.settings import Setting, settings
from pie.config.suggest import unknown
from pie.config.tree import (
    EMBEDDED,
    ClientConfig,
    Config,
    EngineConfig,
    McpServerConfig,
    ModelConfig,
    RuntimeConfig,
    ServerConfig,
    SnapshotConfig,
)
from pie.errors import PieError

FILE_NAME = "config.toml"


@dataclass(frozen=True)
class Flags:
    """What the command line sets."""

    file: Path | None = None
    """`--config`."""
    models: Sequence[str] = ()
    """`--model`: names of configured models, or folders; these alone are served, in this order."""
    models_given_by: str = "--model"
    """What `models` are given by, for errors: an option, or the argument of a command."""
    dummy: bool = False
    """`--dummy`: every model runs on the dummy driver."""
    limits: Sequence[str] = ()
    """`--limit`: NAME=VALUE."""
    values: Mapping[str, object] = field(default_factory=dict)
    """Settings with a flag of their own, by name, as in `server.port`; None is one that was not given."""
    values_given_by: str | None = None
    """What `values` are given by, for errors, where they are given by no flags."""


def config_file(flags: Flags, variables: Mapping[str, str]) -> Path | None:
    """The file that is read: one that is named has to be there, the user's own one may be."""
    if flags.file is not None:
        return flags.file
    if given := variables.get(CONFIG_FILE):
        return Path(given)
    own = own_file(variables)
    return own if _may_be_there(own) else None


def own_file(variables: Mapping[str, str]) -> Path:
    """The user's own file, whether it is there or not: that in `$XDG_CONFIG_HOME`, or else `~/.pie/config.toml`.

    Where the variable is set and neither of them is there, it is the first.
    """
    usual = data_folder() / FILE_NAME
    folder = config_folder(variables)
    if folder is None:
        return usual
    wanted = folder / FILE_NAME
    return usual if not _may_be_there(wanted) and _may_be_there(usual) else wanted


def _may_be_there(path: Path) -> bool:
    """Whether a file is there, or cannot be looked for: whoever reads it says why."""
    try:
        return path.exists()
    except OSError:
        return True


def load(flags: Flags | None = None, *, variables: Mapping[str, str] | None = None) -> Config:
    """The configuration; `variables` stand in for the environment.

    PieError `invalid-config` names what is wrong, where it stands, and what it could be.
    """
    flags = flags or Flags()
    variables = environment() if variables is None else variables
    layers = _Layers()
    path = config_file(flags, variables)
    if path is not None:
        layers.add_file(read_file(path))
    if not layers.models:
        layers.models[EMBEDDED] = {"name": EMBEDDED}
    layers.add_environment(variables)
    layers.add_flags(flags)
    return layers.tree(path)


class _Layers:
    """The values given so far, checked as they come; of two for one setting the later stays."""

    def __init__(self) -> None:
        self.sections: dict[str, dict[str, Any]] = {section: {} for section in settings() if section not in _NAMED}
        self.models: dict[str, dict[str, Any]] = {}
        self.mcp: dict[str, dict[str, Any]] = {}
        self.origins: dict[str, Origin] = {}

    def add_file(self, file: File) -> None:
        """Takes what a file sets."""
        for section, values in file.values.items():
            if section == "model":
                self._add_models(file)
            elif section == "mcp":
                self._add_mcp(file)
            elif section not in self.sections:
                origin = file.origin((section,)) if isinstance(values, dict) else file.origin((), section)
                raise unknown(section, settings(), origin, what="section")
            elif not isinstance(values, dict):
                raise _invalid(f"{file.origin((), section)} is not a table; write [{section}] on a line of its own")
            else:
                for name, raw in values.items():
                    origin, key = file.origin((section,), name), f"{section}.{name}"
                    setting = _known(section, name, origin)
                    self.sections[section][name] = _from_file(setting, raw, key, origin, file)
                    self.origins[key] = origin

    def _add_models(self, file: File) -> None:
        for model in written_models(file):
            if model.name in self.models:
                raise _invalid(f"{model.origin()}: there are two models named {model.name!r}; give each a name of its own")
            values = self.models[model.name] = {"name": model.name}
            self.origins[f"model.{model.name}.name"] = model.origin()
            for name, raw in model.values.items():
                origin, key = model.origin(name), f"model.{model.name}.{name}"
                values[name] = _from_file(_known("model", name, origin, *_NAME_IS_GIVEN), raw, key, origin, file)
                self.origins[key] = origin
            if "path" not in values and model.name != EMBEDDED:
                raise _invalid(
                    f'{model.origin()}: the model {model.name!r} has no path; give its folder, or "{EMBEDDED}", the embedded one'
                )

    def _add_mcp(self, file: File) -> None:
        for name, given in written_servers(file):
            values: dict[str, Any] = {}
            for row, raw in given.items():
                origin, key = file.origin(("mcp", name), row), f"mcp.{name}.{row}"
                values[row] = _from_file(_known("mcp", row, origin), raw, key, origin, file)
                self.origins[key] = origin
            self.mcp[name] = values

    def add_environment(self, variables: Mapping[str, str]) -> None:
        """Takes what variables set: `PIE_SERVER__PORT`, `PIE_MODEL__NAME__KV_BYTES`, `PIE_KEY`."""
        if KEY in variables:
            origin = Origin("environment", KEY)
            self.sections["client"]["key"] = settings()["client"]["key"].parse(variables[KEY], "client.key", origin)
            self.origins["client.key"] = origin
        for variable in sorted(variables):
            section, separator, rest = variable.removeprefix(PREFIX).partition(SEPARATOR)
            if not variable.startswith(PREFIX) or variable in {CONFIG_FILE, KEY}:
                continue
            origin = Origin("environment", variable)
            if not separator:
                _check_lookalike(section, variables[variable], origin)
                continue
            if section.lower() not in settings():
                raise unknown(section, [name.upper() for name in settings()], f"the environment variable {variable}", what="section")
            if section.lower() == "mcp":
                raise _invalid(f"the environment variable {origin} cannot set an MCP server; write [mcp.NAME] in the configuration file")
            if section.lower() == "model":
                self._set_model(rest, variables[variable], origin)
            else:
                key = f"{section.lower()}.{rest.lower()}"
                setting = _known(section.lower(), rest.lower(), origin)
                self.sections[setting.section][setting.name] = setting.parse(variables[variable], key, origin)
                self.origins[key] = origin

    def _set_model(self, rest: str, text: str, origin: Origin) -> None:
        shouted, _, name = rest.partition(SEPARATOR)
        named = [model for model in self.models if _shout(model) == shouted]
        if len(named) != 1 or not name:
            known = ", ".join(f"PIE_MODEL__{_shout(model)}__..." for model in self.models)
            raise _invalid(f"the environment variable {origin} names no model, or two; the models are set by {known}")
        if name.lower() == "name":
            raise _invalid(f"the environment variable {origin} cannot name a model; write its name in the configuration file")
        key = f"model.{named[0]}.{name.lower()}"
        setting = _known("model", name.lower(), origin, *_NAME_IS_GIVEN)
        self.models[named[0]][setting.name] = setting.parse(text, key, origin)
        self.origins[key] = origin

    def add_flags(self, flags: Flags) -> None:
        """Takes what the command line sets."""
        for text in flags.limits:
            name, equals, value = text.partition("=")
            name = name.removeprefix("limits.")
            origin = Origin("flag", "--limit")
            if not equals:
                raise _invalid(f"--limit {text!r} is not a setting; write it as NAME=NUMBER, as in cpu_s=60")
            self.sections["limits"][name] = _known("limits", name, origin).parse(value, f"limits.{name}", origin)
            self.origins[f"limits.{name}"] = origin
        for key, raw in flags.values.items():
            section, _, name = key.partition(".")
            if raw is not None:
                origin = Origin("flag", flags.values_given_by or _FLAGS.get(key) or "--" + name.replace("_", "-"))
                self.sections[section][name] = settings()[section][name].check(raw, key, origin)
                self.origins[key] = origin
        if flags.models:
            self._choose(flags.models, flags.models_given_by)
        if flags.dummy:
            for name, values in self.models.items():
                values["driver"] = "dummy"
                # What belongs to the back end that it stands in for is left out with it.
                for option in [option for option in values if settings()["model"][option].driver]:
                    del values[option]
                    self.origins.pop(f"model.{name}.{option}", None)
                self.origins[f"model.{name}.driver"] = Origin("flag", "--dummy")

    def _choose(self, wanted: Sequence[str], given_by: str) -> None:
        models = {}
        for name, values, made in chosen_models(self.models, wanted, given_by):
            models[name] = values
            if made:
                self.origins = {key: origin for key, origin in self.origins.items() if not key.startswith(f"model.{name}.")}
                self.origins.update({f"model.{name}.{key}": Origin("flag", given_by) for key in values})
        self.models = models

    def tree(self, file: Path | None) -> Config:
        """The whole, with the defaults for what nobody gave."""
        limits = {name: self.sections["limits"].get(name, setting.default) for name, setting in settings()["limits"].items()}
        origins = {f"{section}.{name}": DEFAULT for section in self.sections for name in settings()[section]}
        for model in self.models:
            origins.update({f"model.{model}.{name}": DEFAULT for name in settings()["model"]})
        for name in self.mcp:
            origins.update({f"mcp.{name}.{row}": DEFAULT for row in settings()["mcp"]})
        return Config(
            engine=EngineConfig(**self.sections["engine"]),
            limits=MappingProxyType(limits),
            runtime=RuntimeConfig(**self.sections["runtime"]),
            snapshots=SnapshotConfig(**self.sections["snapshots"]),
            server=ServerConfig(**self.sections["server"]),
            client=ClientConfig(**self.sections["client"]),
            models=tuple(ModelConfig(**values) for values in self.models.values()),
            mcp=MappingProxyType({name: McpServerConfig(**values) for name, values in self.mcp.items()}),
            origins=MappingProxyType({key: self.origins.get(key, DEFAULT) for key in origins}),
            file=file,
        )


_NAMED = ("model", "mcp")
"""Sections of which there is one for each name."""
_NAME_IS_GIVEN = ("name",)
_FLAGS = {"client.url": "--server", "runtime.fs_mounts": "--mount", "server.log_programs": "--quiet"}
"""Flags that are not called as their setting."""


def _check_lookalike(text: str, value: str, origin: Origin) -> None:
    """Refuses a setting with one underscore too few, whose value would do.

    All else of that form is of other software: Kubernetes sets PIE_SERVER_PORT to an address where a service is called
    pie-server.
    """
    section, _, name = text.lower().partition("_")
    setting = settings().get(section, {}).get(name)
    if setting is None or section in _NAMED:
        return
    try:
        setting.parse(value, f"{section}.{name}", origin)
    except PieError:
        return
    written = f"{PREFIX}{section.upper()}{SEPARATOR}{name.upper()}"
    raise _invalid(f"the environment variable {origin} is not a setting; write it as {written}")


def _known(section: str, name: str, origin: Origin, *without: str) -> Setting:
    rows = settings()[section]
    if name in rows and name not in without:
        return rows[name]
    raise unknown(name, [row for row in rows if row not in without], origin, what="setting", place=f" in [{section}]")


def _from_file(setting: Setting, raw: Any, key: str, origin: Origin, file: File) -> Any:
    """The value; a relative path is relative to the folder of the file."""
    value = setting.check(raw, key, origin)
    if setting.kind is Path:
        return file.path.absolute().parent / value
    return str(file.path.absolute().parent / value) if setting.is_path and value not in {"", EMBEDDED} else value


def _shout(model: str) -> str:
    """The name of a model in a variable: upper case, and `_` for whatever is neither letter nor digit."""
    return re.sub(r"[^A-Z0-9]", "_", model.upper())


def _invalid(message: str) -> PieError:
    return PieError("invalid-config", message)
