"""`pie snapshots`: the snapshots on disk, whether or not an engine runs."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pie import snapshots
from pie.cli.tables import age, print_table, size
from pie.errors import PieError

if TYPE_CHECKING:
    from pie.config import Flags

_COLUMNS = ("MODEL", "USER", "NAME", "TOKENS", "SIZE", "SAVED", "STATE")


@dataclass(frozen=True)
class Wanted:
    """Which snapshot is meant."""

    model: str
    name: str
    owner: str | None
    """Whose it is; none: whoever has one of that name."""


def list_kept(folder: Path | None, flags: Flags, *, as_json: bool) -> int:
    """Prints a line for each snapshot on disk; returns the exit code."""
    rows = list(_rows(_folder(folder, flags)))
    if as_json:
        print(json.dumps(rows, ensure_ascii=False, indent=2))
        return 0
    now = time.time()
    print_table(
        _COLUMNS,
        [
            (
                row["model"],
                row["user"],
                row["name"],
                str(row["tokens"]),
                size(row["bytes"] + row["page_bytes"]),
                f"{age(now - row['saved_unix_s'])} ago" if row["saved_unix_s"] else "",
                row["problem"] or "whole",
            )
            for row in rows
        ],
    )
    return 0


def show(folder: Path | None, flags: Flags, wanted: Wanted) -> int:
    """Prints what a snapshot is, as JSON, after every checksum was compared; returns the exit code."""
    _, kept = _found(_folder(folder, flags), wanted)
    content = snapshots.read_content(kept)
    index = kept.index or {}
    print(
        json.dumps(
            {
                **{name: value for name, value in index.items() if name != "runs"},
                "file": kept.path.name,
                "bytes": kept.n_bytes,
                "parts": {part: length for part, (_, length, _) in kept.extents.items()},
                "runs": len(index.get("runs", [])),
                "shares_with": kept.shares,
                "pages": [_shown(pages) for pages in snapshots.read_pages(kept)],
                "computed_tokens": len(content.tokens),
                "special_tokens": len(content.special),
                "pending_tokens": len(content.pending),
                "buffered_tokens": len(content.buffer),
                **content.state,
                "stretches": len(content.turns["stretches"]),
            },
            ensure_ascii=False,
            indent=2,
        )
    )
    return 0


def export(folder: Path | None, flags: Flags, wanted: Wanted, target: str) -> int:
    """Writes all that a snapshot says to a file as JSON, or to stdout for `-`; returns the exit code."""
    _, kept = _found(_folder(folder, flags), wanted)
    text = json.dumps({"index": kept.index, **asdict(snapshots.read_content(kept))}, ensure_ascii=False)
    if target == "-":
        sys.stdout.write(text + "\n")
        return 0
    try:
        Path(target).write_text(text + "\n")
    except OSError as error:
        raise PieError("invalid-argument", f"{target} cannot be written ({error.strerror}); name another file") from error
    return 0


def delete(folder: Path | None, flags: Flags, wanted: Wanted) -> int:
    """Removes a snapshot; returns the exit code."""
    of_model, kept = _found(_folder(folder, flags), wanted)
    try:
        snapshots.delete(of_model, kept)
    except OSError as error:
        raise PieError("disk-error", f"{kept.path} cannot be removed ({error.strerror}); look at its folder") from error
    return 0


def _shown(pages: snapshots.KeptPages) -> dict[str, Any]:
    return asdict(pages) | {"path": pages.path.name, "damaged": list(pages.damaged)}


def _folder(given: Path | None, flags: Flags) -> Path:
    if given is not None:
        return given
    from pie.config import load

    config = load(flags)
    return Path(config.snapshots.folder) if config.snapshots.folder else config.engine.data_dir / "snapshots"


def _models(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.is_dir())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise PieError("invalid-argument", f"{folder} cannot be read ({error.strerror}); name another with --folder") from error


def _rows(folder: Path) -> Iterator[dict[str, Any]]:
    for of_model in _models(folder):
        for kept in snapshots.kept_in(of_model):
            index = kept.index or {}
            yield {
                "model": index.get("model", of_model.name),
                "user": kept.owner,
                "name": kept.name,
                "tokens": index.get("n_tokens", 0),
                "bytes": kept.n_bytes,
                "page_bytes": snapshots.page_bytes(kept),
                "saved_unix_s": index.get("saved_unix_s", 0),
                "file": kept.path.name,
                "problem": kept.problem,
            }


def _found(folder: Path, wanted: Wanted) -> tuple[Path, snapshots.Kept]:
    of_model = folder / snapshots.folder_name(wanted.model)
    keys = None if wanted.owner is None else {snapshots.name_key(wanted.owner, wanted.name)}
    # One that is damaged is found by the name of its file, too.
    matches = [
        kept
        for kept in snapshots.kept_in(of_model)
        if (kept.path.stem.partition("-")[2] in keys if keys is not None else kept.name == wanted.name)
    ]
    if not matches:
        whose = "" if wanted.owner is None else f" of the user {wanted.owner!r}"
        message = f"there is no snapshot {wanted.name!r}{whose} of the model {wanted.model!r} in {folder}; `pie snapshots list` names them"
        raise PieError("snapshot-missing", message)
    if len(matches) > 1:
        owners = ", ".join(repr(kept.owner) for kept in matches)
        raise PieError("invalid-argument", f"{wanted.name!r} is the name of snapshots of {owners}; say whose with --of USER")
    return of_model, matches[0]
