"""Reads snapshots on disk: the files that `docs/reference/snapshots.md` describes.

It shares no code with the engine, which writes them. Nothing is believed that a file does not have: its length and
every checksum are compared before its content is looked at.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from pie.errors import PieError

PARTS = ("index", "state", "turns", "tail", "runs")
VERSION = 1
RUN_TOKENS = 1024
"""Tokens of a whole run."""

_MAGIC = b"pie-snap"
_START = struct.Struct("<8sII")
_PART = struct.Struct("<QQ32s")
_CHECKED_BYTES = _START.size + len(PARTS) * _PART.size
HEADER_BYTES = _CHECKED_BYTES + 32
_NAME = re.compile(r"([0-9a-f]{16})-([0-9a-f]{32})\.(snap|runs)")
_PAGES_MAGIC = b"pie-page"
_PAGES_VERSION = 1
_PAGES = struct.Struct("<8sIIIIQ32s")
_SUM_BYTES = 4
_PIECE_BYTES = 1 << 20
_LOCK = ".lock"
_MAX_FOLDER_BYTES = 200
_INDEX_KINDS: dict[str, type] = {
    "owner": str,
    "name": str,
    "model": str,
    "model_digest": str,
    "tokenizer_digest": str,
    "engine": str,
    "saved_unix_s": int,
    "n_tokens": int,
    "runs": list,
}
_RUN_KINDS: dict[str, type] = {"file": int, "offset": int, "n_bytes": int, "key": str}
_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789-_")


@dataclass(frozen=True)
class Kept:
    """The file of a snapshot, as its header and its index describe it."""

    path: Path
    number: int
    n_bytes: int
    index: dict[str, Any] | None
    """Whose it is, its name, its model, its digests and its runs; none where it cannot be read."""
    problem: str | None
    """Why it cannot be opened by anybody."""
    extents: dict[str, tuple[int, int, bytes]] = field(default_factory=dict)
    """Where each part begins, its length, and its SHA-256."""

    @property
    def owner(self) -> str:
        """The user who saved it; `?` where nobody can tell."""
        return str(self.index["owner"]) if self.index else "?"

    @property
    def name(self) -> str:
        """Its name; that of its file where nobody can tell."""
        return str(self.index["name"]) if self.index else self.path.name

    @property
    def shares(self) -> list[int]:
        """The numbers of the other files whose runs it shares."""
        runs = self.index["runs"] if self.index else []
        return sorted({run["file"] for run in runs} - {self.number})


@dataclass(frozen=True)
class PlaceOfPages:
    """Where the pages of a run lie."""

    path: Path
    run: int
    """Which of the runs of its snapshot it is, counted from 0."""
    key: str
    """What the run is known by, in hexadecimal digits."""


@dataclass(frozen=True)
class KeptPages:
    """The file with the keys and values of a run."""

    path: Path
    n_bytes: int
    run: int
    """Which of the runs of its snapshot it is of, counted from 0."""
    made_by: str = ""
    """The engine and the driver that made them."""
    page_size: int = 0
    """Tokens of a page."""
    page_bytes: int = 0
    damaged: tuple[int, ...] = ()
    """The pages whose checksums are not right, counted from 0: they are computed again."""
    problem: str | None = None
    """Why none of its pages is of use."""


@dataclass(frozen=True)
class SpecialToken:
    """A token that is not at its own position, does not see all before it, or has an adapter or a medium."""

    slot: int
    position: int
    adapter: int
    adapter_version: int
    zo_seed: int | None
    media: int
    mask: list[int]
    """Run lengths of the slots that it sees, forbidden first; empty: all."""


@dataclass(frozen=True)
class Content:
    """What the context of a snapshot says."""

    tokens: list[int]
    """Those that were computed."""
    special: list[SpecialToken]
    pending: list[int]
    """The newest tokens of a generation, which were not computed."""
    buffer: list[int]
    """What the program appended and no pass had taken."""
    state: dict[str, int]
    turns: dict[str, Any]
    """Who said what."""


def folder_name(model: str) -> str:
    """The folder of a model's snapshots within that of all."""
    raw = model.encode()
    folder = "".join(chr(byte) if byte in _PLAIN else f"%{byte:02x}" for byte in raw)
    if not folder:
        return "%"
    return folder if len(folder) <= _MAX_FOLDER_BYTES else "~" + hashlib.sha256(raw).hexdigest()


def name_key(owner: str, name: str) -> str:
    """What stands in the name of the file for a user and a name of theirs."""
    user = owner.encode()
    return hashlib.sha256(struct.pack("<Q", len(user)) + user + name.encode()).hexdigest()[:32]


def kept_in(folder: Path) -> list[Kept]:
    """The snapshots of a folder, of each name the newest, by user and name. A folder that is not there has none."""
    newest: dict[str, tuple[int, Path]] = {}
    for path in _files(folder):
        number, key, kind = _parsed(path.name)
        if kind == "snap" and number >= newest.get(key, (0, path))[0]:
            newest[key] = (number, path)
    kept = (_kept(path) for _, path in newest.values())
    return sorted((it for it in kept if it is not None), key=lambda it: (it.owner, it.name))


def read_content(kept: Kept) -> Content:
    """What the context of a snapshot says. Every checksum of its file is compared, and that of each run.

    Raises PieError `snapshot-unusable` where something is damaged or missing.
    """
    return _read(kept, _Decoding(kept.path))


def check(kept: Kept) -> None:
    """Reads all that `read_content` reads, and keeps no more of it than a run of tokens at once.

    Raises PieError `snapshot-unusable` where something is damaged or missing.
    """
    _read(kept, _Decoding(kept.path, keeps=False))


def page_bytes(kept: Kept) -> int:
    """Bytes of the files with pages of the runs that the file of a snapshot holds."""
    n_bytes = 0
    for path in kept.path.parent.glob(f"{kept.number:016x}-*.kv"):
        with suppress(FileNotFoundError):  # an engine has removed it since
            n_bytes += path.lstat().st_size
    return n_bytes


def read_pages(kept: Kept) -> list[KeptPages]:
    """The files with pages of the runs of a snapshot. Every checksum is compared."""
    return [found for place in places_of_pages(kept) if (found := read_pages_at(place)) is not None]


def places_of_pages(kept: Kept) -> list[PlaceOfPages]:
    """Where the pages of each run of a snapshot lie, if they were kept; snapshots that share runs share the places."""
    folder = kept.path.parent
    runs = enumerate(kept.index["runs"] if kept.index else [])
    return [PlaceOfPages(folder / f"{place['file']:016x}-{place['key'][:32]}.kv", run, place["key"]) for run, place in runs]


def read_pages_at(place: PlaceOfPages) -> KeptPages | None:
    """The file with pages at a place; None where there is none. Every checksum is compared."""
    path = place.path
    if not path.is_file() or path.is_symlink():
        return None
    try:
        return _pages(path, place.run, place.key)
    except PieError as error:
        n_bytes = path.stat().st_size if path.is_file() else 0  # an engine may have removed it since
        return KeptPages(path, n_bytes, place.run, problem=error.message)


def delete(folder: Path, kept: Kept) -> None:
    """Removes a snapshot from the folder of its model, which no engine may use meanwhile.

    Where other snapshots share its tokens they are kept for those. Raises PieError `invalid-argument` where an engine
    uses the folder, and OSError.
    """
    with _locked(folder):
        key = _parsed(kept.path.name)[1]
        for path in _files(folder):
            # One that was replaced and is still there would be the snapshot of the name again.
            if path != kept.path and _parsed(path.name)[1:] == (key, "snap"):
                path.rename(path.with_suffix(".runs"))
        others = [it for it in kept_in(folder) if it.number != kept.number]
        is_shared = any(it.index is None or kept.number in it.shares for it in others)
        if is_shared:
            kept.path.rename(kept.path.with_suffix(".runs"))
        else:
            kept.path.unlink()
            for path in folder.glob(f"{kept.number:016x}-*.kv"):
                path.unlink()
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def _read(kept: Kept, decoding: _Decoding) -> Content:
    """What the context of a snapshot says, as far as `decoding` keeps it."""
    if kept.problem is not None:
        raise PieError("snapshot-unusable", kept.problem)
    if kept.index is None:
        _refuse(kept.path, "its index cannot be read")
    runs = _read_runs(kept)
    key = hashlib.sha256()
    for part in ("pie-run-1", kept.index["model_digest"], kept.index["tokenizer_digest"], kept.index["owner"]):
        raw = part.encode()
        key.update(struct.pack("<Q", len(raw)) + raw)
    before = key.digest()
    for place, raw in runs:
        before = hashlib.sha256(before + raw).digest()
        if before.hex() != place["key"]:
            _refuse(kept.path, "a run of its tokens is damaged")
        words = _Words(raw, kept.path)
        if decoding.stretch(words) != RUN_TOKENS or words.left:
            _refuse(kept.path, "a run of its tokens is damaged")
    words = _Words(_part(kept, "tail"), kept.path)
    decoding.stretch(words)
    pending, buffer = words.words(), words.words()
    if words.left:
        _refuse(kept.path, "its tail is damaged")
    _compare(kept, "runs")
    state, turns = _object(kept, "state"), _object(kept, "turns")
    if not isinstance(turns.get("stretches"), list):
        _refuse(kept.path, "its part 'turns' is damaged")
    return Content(decoding.tokens, decoding.special, pending, buffer, state, turns)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    with (folder / _LOCK).open("ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            message = (
                f"an engine uses the snapshots in {folder}; end it first, or have its server delete the snapshot: "
                "pie snapshot delete MODEL NAME --server HOST:PORT"
            )
            raise PieError("invalid-argument", message) from error
        yield


def _files(folder: Path) -> list[Path]:
    try:
        named = (path for path in folder.iterdir() if _NAME.fullmatch(path.name))
        return sorted(path for path in named if path.is_file() and not path.is_symlink())
    except FileNotFoundError:
        return []


def _parsed(name: str) -> tuple[int, str, str]:
    found = _NAME.fullmatch(name)
    assert found is not None
    return int(found[1], 16), found[2], found[3]


def _kept(path: Path) -> Kept | None:
    number, key, _ = _parsed(path.name)
    try:
        n_bytes = path.stat().st_size
    except FileNotFoundError:
        # An engine has removed it since.
        return None
    try:
        extents = _extents(path, n_bytes)
        kept = Kept(path, number, n_bytes, None, None, extents)
        index = _object(kept, "index")
        _check_index(path, index)
        if name_key(index["owner"], index["name"]) != key:
            _refuse(path, "its name is that of another snapshot")
    except PieError as error:
        return Kept(path, number, n_bytes, None, error.message)
    except UnicodeEncodeError:
        return Kept(path, number, n_bytes, None, f"{path.name}: its part 'index' is damaged")
    return Kept(path, number, n_bytes, index, None, extents)


def _check_index(path: Path, index: dict[str, Any]) -> None:
    places = index.get("runs")
    objects = [(index, _INDEX_KINDS), *((place, _RUN_KINDS) for place in (places if isinstance(places, list) else []))]
    for found, kinds in objects:
        if not isinstance(found, dict) or not all(isinstance(found.get(name), kind) for name, kind in kinds.items()):
            _refuse(path, "its part 'index' is damaged")
        if any(isinstance(value, int) and value < 0 for value in found.values()):
            _refuse(path, "its part 'index' is damaged")


def _extents(path: Path, n_bytes: int) -> dict[str, tuple[int, int, bytes]]:
    header = _read_at(path, 0, HEADER_BYTES)
    if len(header) < HEADER_BYTES:
        _refuse(path, f"it has {n_bytes} bytes, less than its header: it was cut")
    magic, version, n_parts = _START.unpack_from(header)
    if magic != _MAGIC:
        _refuse(path, "it is not the file of a snapshot")
    if version != VERSION:
        _refuse(path, f"it is of version {version} of the format, and this reads version {VERSION}")
    if hashlib.sha256(header[:_CHECKED_BYTES]).digest() != header[_CHECKED_BYTES:] or n_parts != len(PARTS):
        _refuse(path, "its header is damaged")
    extents: dict[str, tuple[int, int, bytes]] = {}
    end = HEADER_BYTES
    for number, part in enumerate(PARTS):
        offset, length, digest = _PART.unpack_from(header, _START.size + number * _PART.size)
        if offset != end:
            _refuse(path, f"the place of its part {part!r} is damaged")
        end += length
        extents[part] = (offset, length, digest)
    if end != n_bytes:
        _refuse(path, f"it has {n_bytes} bytes, and its parts take {end}: it was cut or added to")
    return extents


def _pages(path: Path, run: int, key: str) -> KeptPages:
    n_bytes = _size(path)
    start = _read_at(path, 0, _PAGES.size)
    if len(start) < _PAGES.size:
        _refuse(path, f"it has {n_bytes} bytes, less than its header: it was cut")
    magic, version, n_pages, page_size, n_name_bytes, page_bytes, of_run = _PAGES.unpack(start)
    if magic != _PAGES_MAGIC:
        _refuse(path, "it is not a file of pages")
    if version != _PAGES_VERSION:
        _refuse(path, f"it is of version {version} of the format, and this reads version {_PAGES_VERSION}")
    n_checked = _PAGES.size + _SUM_BYTES * n_pages + n_name_bytes
    first = n_checked + _SUM_BYTES
    if first + n_pages * page_bytes != n_bytes:
        _refuse(path, f"it has {n_bytes} bytes, and what it says takes {first + n_pages * page_bytes}: it was cut or added to")
    header = _read_at(path, 0, first)
    if struct.pack("<I", zlib.crc32(header[:n_checked])) != header[n_checked:]:
        _refuse(path, "its header is damaged")
    if of_run.hex() != key:
        _refuse(path, "it is that of another run")
    sums = struct.unpack_from(f"<{n_pages}I", header, _PAGES.size)
    damaged = [page for page in range(n_pages) if zlib.crc32(_read_at(path, first + page * page_bytes, page_bytes)) != sums[page]]
    made_by = header[n_checked - n_name_bytes : n_checked].decode(errors="replace")
    return KeptPages(path, n_bytes, run, made_by, page_size, page_bytes, tuple(damaged))


def _part(kept: Kept, part: str) -> bytes:
    offset, length, digest = kept.extents[part]
    raw = _read_at(kept.path, offset, length)
    if hashlib.sha256(raw).digest() != digest:
        _refuse(kept.path, f"its part {part!r} is damaged")
    return raw


def _compare(kept: Kept, part: str) -> None:
    """Compares the checksum of a part that may be long."""
    offset, length, digest = kept.extents[part]
    found = hashlib.sha256()
    for begin in range(offset, offset + length, _PIECE_BYTES):
        found.update(_read_at(kept.path, begin, min(_PIECE_BYTES, offset + length - begin)))
    if found.digest() != digest:
        _refuse(kept.path, f"its part {part!r} is damaged")


def _object(kept: Kept, part: str) -> dict[str, Any]:
    try:
        value = json.loads(_part(kept, part))
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        _refuse(kept.path, f"its part {part!r} is damaged")
    return value


def _read_runs(kept: Kept) -> Iterator[tuple[dict[str, Any], bytes]]:
    assert kept.index is not None
    holders = {_parsed(path.name)[0]: path for path in _files(kept.path.parent)}
    extents = {kept.number: kept.extents}
    for place in kept.index["runs"]:
        holder = holders.get(place["file"])
        if holder is None:
            _refuse(kept.path, "a file with tokens that it shares is not there any more")
        if place["file"] not in extents:
            extents[place["file"]] = _extents(holder, _size(holder))
        offset, length, _ = extents[place["file"]]["runs"]
        if place["offset"] + place["n_bytes"] > length:
            _refuse(kept.path, "the place of a run is damaged")
        yield place, _read_at(holder, offset + place["offset"], place["n_bytes"])


def _read_at(path: Path, offset: int, n_bytes: int) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(offset)
            return file.read(n_bytes)
    except OSError as error:
        _refuse(path, f"it cannot be read ({error.strerror})")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError as error:
        _refuse(path, f"it cannot be read ({error.strerror})")


class _Words:
    """Reads 32-bit words in order."""

    def __init__(self, raw: bytes, path: Path) -> None:
        self._raw, self._at, self._path = raw, 0, path

    @property
    def left(self) -> int:
        return len(self._raw) - self._at

    def take(self, form: str) -> tuple[int, ...]:
        n_bytes = struct.calcsize(form)
        if n_bytes > self.left:
            _refuse(self._path, "it holds less than it says")
        values = struct.unpack_from(form, self._raw, self._at)
        self._at += n_bytes
        return values

    def word(self) -> int:
        return self.take("<I")[0]

    def words(self) -> list[int]:
        n = self.word()
        if 4 * n > self.left:
            _refuse(self._path, "it holds less than it says")
        return [*self.take(f"<{n}I")]


class _Decoding:
    """The tokens of a context, stretch by stretch; they are not kept where they are only looked at."""

    def __init__(self, path: Path, *, keeps: bool = True) -> None:
        self.path = path
        self.keeps = keeps
        self.tokens: list[int] = []
        self.special: list[SpecialToken] = []

    def stretch(self, words: _Words) -> int:
        """Adds the tokens that come next, and what is special of them; returns how many those are."""
        tokens = words.words()
        if self.keeps:
            self.tokens += tokens
        for _ in range(words.word()):
            slot, position, adapter, version, has_seed, seed, media = words.take("<IIQIIQQ")
            zo_seed = seed if has_seed else None
            special = SpecialToken(slot, position, adapter, version, zo_seed, media, words.words())
            if self.keeps:
                self.special.append(special)
        return len(tokens)


def _refuse(path: Path, why: str) -> NoReturn:
    raise PieError("snapshot-unusable", f"{path.name}: {why}")
