"""`pie snapshots`: the snapshots on disk, whether or not an engine runs."""

from __future__ import annotations

import json
import secrets
import stat
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pie import snapshots
from pie.cli.progress import working
from pie.cli.tables import age, print_table, size
from pie.cli.terminal import EXIT_ERROR, plain
from pie.config.suggest import nearest
from pie.errors import PieError

if TYPE_CHECKING:
    from pie.config import Flags

_COLUMNS = ("MODEL", "USER", "NAME", "TOKENS", "SIZE", "SAVED", "STATE")
_KEPT_WHERE = 'programs keep them on disk where snapshots.durability is "disk"'
# Of the name of a file, so much stands in that of the one beside it: names have a longest length.
_MAX_NAME_CHARS = 32
# Names that an error repeats.
_MAX_SHOWN = 10


@dataclass(frozen=True)
class Wanted:
    """Which snapshot is meant."""

    model: str
    name: str
    owner: str | None
    """Whose it is; none: whoever has one of that name."""


def list_kept(folder: Path | None, flags: Flags, *, checks: bool, as_json: bool) -> int:
    """Prints a line for each snapshot on disk; returns the exit code.

    With `checks` every part of each is read, and the code is 1 where one cannot be opened.
    """
    place = _folder(folder, flags)
    with working("Reading the snapshots") if checks else nullcontext():
        rows = list(_rows(place, checks=checks))
    exit_code = EXIT_ERROR if checks and any(row["problem"] for row in rows) else 0
    if as_json:
        print(json.dumps(rows, ensure_ascii=False, indent=2))
        return exit_code
    if not rows:
        print(f"there are no snapshots in {plain(str(place))}; {_KEPT_WHERE}", file=sys.stderr)
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
                _state(row),
            )
            for row in rows
        ],
    )
    return exit_code


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


def export(folder: Path | None, flags: Flags, wanted: Wanted, target: str, *, replaces: bool) -> int:
    """Writes all that a snapshot says to a file as JSON, or to stdout for `-`; returns the exit code.

    A file that is there is only written over where it `replaces` one.
    """
    _, kept = _found(_folder(folder, flags), wanted)
    text = json.dumps({"index": kept.index, **asdict(snapshots.read_content(kept))}, ensure_ascii=False)
    if target == "-":
        sys.stdout.write(text + "\n")
        return 0
    if not replaces and (Path(target).exists() or Path(target).is_symlink()):
        raise PieError("invalid-argument", f"{target} is there already; name another file, or write over it with --force")
    try:
        _write(Path(target), text + "\n")
    except OSError as error:
        raise PieError("invalid-argument", f"{target} cannot be written ({error.strerror}); name another file") from error
    return 0


def _write(target: Path, text: str) -> None:
    """Writes a file whole or not at all: beside its place first, so that a disk that is full leaves what was there."""
    place = target.resolve()  # a link stays one
    if place.exists() and not place.is_file():
        place.write_text(text, encoding="utf-8")  # a device or a pipe, in whose place no file may lie
        return
    beside = place.with_name(f".{place.name[:_MAX_NAME_CHARS]}.{secrets.token_hex(8)}")
    try:
        with beside.open("x", encoding="utf-8") as file:
            if place.exists():
                beside.chmod(stat.S_IMODE(place.stat().st_mode))  # before anybody else can read what is written
            file.write(text)
        beside.replace(place)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


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
        if not given.exists():
            message = f"there is no folder {given}; --folder names that of snapshots, in which each model has one, as in ~/.pie/snapshots"
            raise PieError("invalid-argument", message)
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


def _rows(folder: Path, *, checks: bool) -> Iterator[dict[str, Any]]:
    # Snapshots share the files of runs: each is read once.
    looked_at: dict[Path, bool] = {}
    for of_model in _models(folder):
        for kept in snapshots.kept_in(of_model):
            problem = kept.problem
            if checks and problem is None and (problem := _damage(kept)) is not None and not kept.path.exists():
                continue  # an engine has removed it since
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
                "problem": problem,
                "checked": checks,
                "damaged_pages": checks and problem is None and _has_damaged_pages(kept, looked_at),
            }


def _damage(kept: snapshots.Kept) -> str | None:
    """What is wrong with any part of a snapshot, all of which are read."""
    try:
        snapshots.check(kept)
    except PieError as error:
        return error.message
    return None


def _has_damaged_pages(kept: snapshots.Kept, looked_at: dict[Path, bool]) -> bool:
    """Whether pages of its runs cannot be used; `looked_at` says what is known, by the file, and learns the rest."""
    places = snapshots.places_of_pages(kept)
    for place in places:
        if place.path not in looked_at:
            pages = snapshots.read_pages_at(place)
            looked_at[place.path] = pages is not None and (pages.problem is not None or bool(pages.damaged))
    return any(looked_at[place.path] for place in places)


def _state(row: Mapping[str, Any]) -> str:
    """What is known of a snapshot, in a word: no more than was read."""
    if row["problem"]:
        return str(row["problem"])
    if not row["checked"]:
        return "header ok"
    return "whole; damaged pages are computed again" if row["damaged_pages"] else "whole"


def _found(folder: Path, wanted: Wanted) -> tuple[Path, snapshots.Kept]:
    of_model = folder / snapshots.folder_name(wanted.model)
    there = snapshots.kept_in(of_model)
    keys = None if wanted.owner is None else {snapshots.name_key(wanted.owner, wanted.name)}
    # One that is damaged is found by the name of its file, too.
    matches = [kept for kept in there if (kept.path.stem.partition("-")[2] in keys if keys is not None else kept.name == wanted.name)]
    if not matches:
        whose = "" if wanted.owner is None else f" of the user {wanted.owner!r}"
        message = f"there is no snapshot {wanted.name!r}{whose} of the model {wanted.model!r} in {folder}"
        raise PieError("snapshot-missing", f"{message}; {_near(wanted, there) if there else _near_model(folder, wanted.model)}")
    if len(matches) > 1:
        owners = ", ".join(repr(kept.owner) for kept in matches)
        raise PieError("invalid-argument", f"{wanted.name!r} is the name of snapshots of {owners}; say whose with --of USER")
    return of_model, matches[0]


def _near(wanted: Wanted, there: Sequence[snapshots.Kept]) -> str:
    """What is nearest to a snapshot that the model does not have, among those that it has."""
    if owners := _some(kept.owner for kept in there if kept.name == wanted.name):
        return f"there is one of {owners}: name the user with --of USER"
    if names := _some(kept.name for kept in there if kept.owner == wanted.name):
        return f"{wanted.name!r} is a user, who has {names}: give the name of one, and --of {wanted.name}"
    if (near := nearest(wanted.name, (kept.name for kept in there))) is not None:
        owners = _some(kept.owner for kept in there if kept.name == near)
        return f"did you mean {near!r}, of {owners}?"
    return f"there are {_some(kept.name for kept in there)}, which `pie snapshots list` shows with their users"


def _near_model(folder: Path, model: str) -> str:
    """The models whose snapshots there are, where there are none of `model`."""
    kept = [found[0] for of_model in _models(folder) if (found := snapshots.kept_in(of_model))]
    models = [str(one.index["model"]) if one.index else one.path.parent.name for one in kept]
    if not models:
        return f"there are no others; {_KEPT_WHERE}"
    near = nearest(model, models)
    return (
        f"did you mean the model {near!r}?" if near is not None else f"there are those of {_some(models)}; `pie snapshots list` names them"
    )


def _some(names: Iterable[str]) -> str:
    """The first of these names, each once."""
    shown = list(islice(dict.fromkeys(names), _MAX_SHOWN + 1))
    return ", ".join([*map(repr, shown[:_MAX_SHOWN]), *(["..."] if len(shown) > _MAX_SHOWN else [])])
