"""`pie model list`: models of the configuration, the one inside the package, and those in known folders."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pie.cli.tables import print_table, size
from pie.errors import PieError

if TYPE_CHECKING:
    from pie.config import Config, Flags

_COLUMNS = ("NAME", "FROM", "FAMILY", "WEIGHTS", "STATE", "GIVEN AS")
# Folders that are looked at in one place.
_MAX_FOLDERS = 1000
_HUB_PREFIX = "models--"
_MAX_REVISION_BYTES = 256


@dataclass(frozen=True)
class ListedModel:
    """A model in the list."""

    name: str
    source: Literal["configuration", "package", "folder", "hugging face"]
    given_as: str
    """What `--model` is given for it."""
    folder: str
    is_default: bool
    family: str | None
    """None where it cannot be served."""
    weights_bytes: int | None
    problem: str | None
    """Why it cannot be served."""


def list_models(flags: Flags, *, as_json: bool) -> int:
    """Prints a line for each model; returns the exit code."""
    from pie.config import load

    models = list(_listed(load(flags)))
    if as_json:
        print(json.dumps([asdict(model) for model in models], ensure_ascii=False, indent=2))
    else:
        print_table(_COLUMNS, map(_row, models))
    return 0


def found_models() -> Iterator[tuple[str, str]]:
    """What `--model` may be given, each with where it is from; nothing of the models themselves is read."""
    from pie.config import EMBEDDED, load

    config = load()
    yield from ((model.name, "configuration") for model in config.models)
    if all(model.name != EMBEDDED for model in config.models):
        yield EMBEDDED, "package"
    yield from ((str(folder), source) for _, source, folder in _folders())


def _listed(config: Config) -> Iterator[ListedModel]:
    from pie.config import EMBEDDED, EMBEDDED_FOLDER

    for idx, model in enumerate(config.models):
        is_own = config.origins[f"model.{model.name}.name"].kind == "default" and model.is_embedded
        yield _looked_at(model.name, "package" if is_own else "configuration", model.name, model.folder, is_default=idx == 0)
    if all(model.name != EMBEDDED for model in config.models):
        yield _looked_at(EMBEDDED, "package", EMBEDDED, EMBEDDED_FOLDER)
    for name, source, folder in _folders():
        yield _looked_at(name, source, str(folder), folder)


def _folders() -> Iterator[tuple[str, Literal["folder", "hugging face"], Path]]:
    """Names, places and folders of the models that lie in known folders; one without a `config.json` is none."""
    from pie.config.environment import hub_folder, models_folder

    for folder in _below(models_folder()):
        if _is_model(folder):
            yield folder.name, "folder", folder
    for kept in _below(hub_folder()):
        if kept.name.startswith(_HUB_PREFIX) and (snapshot := _snapshot(kept)) is not None:
            yield kept.name.removeprefix(_HUB_PREFIX).replace("--", "/"), "hugging face", snapshot


def _below(folder: Path) -> list[Path]:
    try:
        return sorted(islice((one for one in folder.iterdir() if one.is_dir()), _MAX_FOLDERS))
    except OSError:
        return []  # there is no such folder, or it is not for us


def _is_model(folder: Path) -> bool:
    try:
        return (folder / "config.json").is_file()
    except OSError:
        return False


def _snapshot(kept: Path) -> Path | None:
    """The files of a model in the cache of Hugging Face: those of its main branch, else of any revision."""
    snapshots = kept / "snapshots"
    try:
        with (kept / "refs" / "main").open(encoding="utf-8") as file:
            revision = file.read(_MAX_REVISION_BYTES).strip()
        main = [snapshots / revision] if revision.isalnum() else []
    except (OSError, UnicodeDecodeError):
        main = []
    return next((folder for folder in (*main, *_below(snapshots)) if _is_model(folder)), None)


def _looked_at(
    name: str,
    source: Literal["configuration", "package", "folder", "hugging face"],
    given_as: str,
    folder: Path,
    *,
    is_default: bool = False,
) -> ListedModel:
    """A model with what its small files say; no weight is read."""
    from pie.models.loader import read_config, weight_files

    family: str | None = None
    weights_bytes: int | None = None
    problem: str | None = None
    try:
        family = read_config(folder).family
        weights_bytes = sum(path.stat().st_size for path in weight_files(folder))
    except PieError as error:
        problem = error.message
    except OSError as error:
        problem = f"{error.filename or folder} cannot be read ({error.strerror}); fetch the model again"
    return ListedModel(name, source, given_as, str(folder), is_default, family, weights_bytes, problem)


def _row(model: ListedModel) -> tuple[str, ...]:
    weights = "" if model.weights_bytes is None else size(model.weights_bytes)
    state = f"cannot be served: {model.problem}" if model.problem else "default" if model.is_default else "ok"
    return (model.name, model.source, model.family or "", weights, state, f"--model {model.given_as}")
