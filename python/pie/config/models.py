"""The models of a configuration: as the file writes them, and as the command line chooses them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pie.config.file import File
from pie.config.origin import Origin
from pie.config.settings import settings
from pie.config.suggest import shortened
from pie.config.tree import EMBEDDED
from pie.errors import PieError

# As Hugging Face names models: an organisation or a user, and a name.
_HUB_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*")
_MAX_HUB_NAME_CHARS = 96


@dataclass(frozen=True)
class Written:
    """A model as a file writes it."""

    name: str
    values: Mapping[str, Any]
    file: File
    table: tuple[str, ...]
    """The table that holds it, and how many of that name come before."""
    nth: int = 0

    def origin(self, key: str | None = None) -> Origin:
        """Where a key of the model stands, or the model itself."""
        return self.file.origin(self.table, key, nth=self.nth)


def written_models(file: File) -> Iterator[Written]:
    """The models of a file in their order, from `[model.NAME]` and from `[[model]]` with `name`."""
    models = file.values.get("model", {})
    if isinstance(models, dict):
        for name, values in models.items():
            model = Written(_checked(name, file.origin(("model", name))), values, file, ("model", name))
            if not isinstance(values, dict):
                raise _invalid(f"{file.origin(('model',), name)} is not a model; write [model.NAME], or [[model]] with a name")
            if "name" in values:
                where = model.origin("name").where
                raise _invalid(f"{where}: the name of [model.{shortened(name)}] stands in its header; change that, and leave name out")
            yield model
    elif isinstance(models, list) and all(isinstance(values, dict) for values in models):
        for nth, values in enumerate(models):
            if "name" not in values:
                raise _invalid(f"{file.origin(('model',), nth=nth)}: a model has no name; add name = ...")
            rest = {key: value for key, value in values.items() if key != "name"}
            name = _checked(values["name"], file.origin(("model",), "name", nth=nth))
            yield Written(name, rest, file, ("model",), nth)
    else:
        raise _invalid(f"{file.origin((), 'model')} is not a model; write [model.NAME], or [[model]] with a name")


def chosen_models(models: Mapping[str, dict[str, Any]], wanted: Sequence[str], given_by: str) -> Iterator[tuple[str, dict[str, Any], bool]]:
    """The models that the option or argument `given_by` asks for, with their values and whether the flag made them.

    Each is the name of one that is configured, else a folder. PieError `invalid-model` for what is neither,
    `invalid-config` for two of one name.
    """
    seen: set[str] = set()
    for text in wanted:
        if text in models:
            name, values, made = text, models[text], False
        elif text == EMBEDDED:
            name, values, made = text, {"name": text, "path": text}, True
        else:
            folder = _folder(text, models, given_by)
            name = folder_name(folder)
            values, made = {"name": name, "path": str(folder)}, True
        if name in seen:
            raise _invalid(f"{given_by} names two models {name!r}; give each a name of its own in the configuration file")
        seen.add(name)
        yield name, values, made


def folder_name(folder: Path) -> str:
    """What a model is called that is given as a folder alone: the last part of its path, in the letters of a name."""
    return re.sub(r"[^A-Za-z0-9.-]+", "-", folder.resolve().name).strip("-.") or "model"


def _folder(text: str, models: Mapping[str, object], given_by: str) -> Path:
    try:
        folder = Path(text).expanduser()
        # The path of no name is the current folder, which nobody means by it.
        if text and folder.is_dir():
            return folder
    except (OSError, ValueError, RuntimeError):  # too long, a NUL in it, the home of a user that there is not
        pass
    known = ", ".join(dict.fromkeys([*models, EMBEDDED]))
    message = f"{given_by} {shortened(text)!r} is neither a folder nor a configured model (those are: {known})"
    if _HUB_NAME.fullmatch(text) and len(text) <= _MAX_HUB_NAME_CHARS:
        name = text.rpartition("/")[2]
        fetch = f"hf download {text} --local-dir {name}"
        raise PieError("invalid-model", f"{message}; a model of Hugging Face is downloaded first, `{fetch}`, and given as ./{name}")
    raise PieError("invalid-model", f"{message}; give a folder in the Hugging Face format, or one that `pie model list` shows")


def _checked(name: Any, origin: Origin) -> str:
    checked: str = settings()["model"]["name"].check(name, "name", origin)
    return checked


def _invalid(message: str) -> PieError:
    return PieError("invalid-config", message)
