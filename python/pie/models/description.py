"""What a model folder says of itself, from its small files and the headers of its weights; no weight is read."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pie.errors import PieError
from pie.models.config import check_regular, invalid_model, read_json_object
from pie.models.loader import Checkpoint

_TEMPLATES = ("tokenizer_config.json", "chat_template.json")
_CARDS = ("README.md", "MODEL_CARD.md")
_MAX_CARD_BYTES = 1 << 18
_HASH_BYTES = 1 << 20


@dataclass(frozen=True)
class EndToken:
    """A token with which the model ends what it writes."""

    id: int
    text: str | None
    """None where the tokenizer does not name it."""


@dataclass(frozen=True)
class Description:
    """What stands in the files of a model."""

    n_parameters: int
    """Numbers in the weights; weights that two uses share count once."""
    weights_bytes: int
    stored_dtypes: tuple[str, ...]
    files: Mapping[str, int]
    """Bytes of each weight file, by name."""
    end_tokens: tuple[EndToken, ...]
    template: str | None
    """The file that holds the chat template; None: the model has none."""
    card: str | None
    """The model card, without its front matter."""


def describe(checkpoint: Checkpoint) -> Description:
    """Reads what a folder says; PieError `invalid-model` where one of its files is damaged or cannot be read."""
    try:
        return _describe(checkpoint)
    except OSError as error:
        raise _unreadable(Path(error.filename or checkpoint.folder), error) from error


def _describe(checkpoint: Checkpoint) -> Description:
    folder, tensors = checkpoint.folder, checkpoint.tensors.values()
    paths = sorted({tensor.path for tensor in tensors})
    return Description(
        n_parameters=sum(math.prod(tensor.shape) for tensor in tensors),
        weights_bytes=sum(tensor.data.nbytes for tensor in tensors),
        stored_dtypes=tuple(sorted({tensor.dtype for tensor in tensors})),
        files={path.name: path.stat().st_size for path in paths},
        end_tokens=_end_tokens(folder),
        template=template_file(folder),
        card=_card(folder),
    )


def template_file(folder: Path) -> str | None:
    """The file of a model folder that holds its chat template; None where there is none.

    PieError `invalid-model` for a damaged file.
    """
    if (folder / "chat_template.jinja").exists():
        return "chat_template.jinja"
    return next((name for name in _TEMPLATES if _optional(folder / name).get("chat_template")), None)


def weights_digest(folder: Path, files: Mapping[str, int]) -> str:
    """SHA-256 of the weight files, one after the other by name, as `sha256:` and hexadecimal digits.

    The files are read in pieces.
    """
    digest = hashlib.sha256()
    for name in sorted(files):
        with (folder / name).open("rb") as file:
            while piece := file.read(_HASH_BYTES):
                digest.update(piece)
    return f"sha256:{digest.hexdigest()}"


def _unreadable(path: Path, error: OSError) -> PieError:
    return invalid_model(f"{path}: cannot be read ({error.strerror}); see to it that you may read it")


def _optional(path: Path) -> dict[str, Any]:
    return read_json_object(path) if path.exists() else {}


def _end_tokens(folder: Path) -> tuple[EndToken, ...]:
    """The end tokens of the generation config, else of the config."""
    for name in ("generation_config.json", "config.json"):
        ids = _optional(folder / name).get("eos_token_id")
        if ids is None:
            continue
        ids = ids if isinstance(ids, list) else [ids]
        if any(isinstance(token, bool) or not isinstance(token, int) for token in ids):
            raise invalid_model(f"{folder / name}: eos_token_id is {ids!r}; it must be a token id or a list of them")
        added = _optional(folder / "tokenizer.json").get("added_tokens")
        texts = {
            entry["id"]: entry["content"]
            for entry in (added if isinstance(added, list) else [])
            if isinstance(entry, dict) and isinstance(entry.get("id"), int) and isinstance(entry.get("content"), str)
        }
        return tuple(EndToken(token, texts.get(token)) for token in ids)
    return ()


def _card(folder: Path) -> str | None:
    for name in _CARDS:
        path = folder / name
        check_regular(path)
        if path.exists():
            try:
                with path.open("rb") as file:
                    text = file.read(_MAX_CARD_BYTES).decode("utf-8", "replace")
            except OSError as error:
                raise _unreadable(path, error) from error
            if text.startswith("---\n") and (end := text.find("\n---\n", 4)) >= 0:
                text = text[end + 5 :]
            return text.strip() or None
    return None
