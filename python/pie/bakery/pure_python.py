"""The dependencies of a Python program: pure wheels, bundled as sources."""

from __future__ import annotations

import hashlib
import importlib.util
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from pie.bakery.command import CommandError, run, temporary_folder
from pie.bakery.lock import Pin, plain_package_name
from pie.bakery.unmet_requirements import why_unmet
from pie.config.environment import environment
from pie.errors import PieError
from pie.folder import Folder, read_file
from pie.programs import MAX_DEPENDENCY_BYTES

RUNTIME_PYTHON = "3.14"
"""The version of the language runtime, by which wheels are chosen."""

_NOT_BUNDLED = frozenset({"__pycache__"})
_COMPILED = {".so", ".pyd", ".dll", ".dylib", ".a", ".wasm"}
_NO_PURE = re.compile(
    r"(?:No matching distribution found for|satisfies the requirement|has no usable wheels|only-binary)\W*([A-Za-z0-9._-]+)"
    r"|Because ([A-Za-z0-9._-]+) was not found"
)
_UNREACHABLE = re.compile(
    r"NewConnectionError|NameResolutionError|ConnectTimeout|ReadTimeout|ConnectionError|ConnectionResetError|ProxyError|SSLError"
    r"|CERTIFICATE_VERIFY_FAILED|Failed to establish a new connection|Max retries exceeded|Temporary failure in name resolution"
    r"|Name or service not known|Network is unreachable|Connection (?:refused|reset|broken|aborted)"
    r"|error sending request|dns error|tcp connect error|Failed to fetch|Could not connect|operation timed out"
)
_NO_INDEX = re.compile(r"Ignoring indexes: |index lookups were disabled")
"""What an installer says, in its log or to the user, where it is not to ask any index."""
_NO_INDEX_VARIABLES = ("PIP_NO_INDEX", "UV_NO_INDEX")
_OUTSIDE = re.compile(r"^(?:\.\./)+")
"""How pip lists what a wheel puts beside its modules (`data`); it lies among them where a target is given."""
_LOCK_OF_UV = PurePosixPath(".lock")
_STAMP = re.compile(r"^\d{4}-\d\d-\d\dT\S+ ")
"""How a line of pip's log begins."""
_MAX_SHOWN_CHARS = 300


@dataclass(frozen=True)
class Bundled:
    """Packages that were installed for a program."""

    files: Mapping[str, bytes]
    """By the paths under which they are imported."""
    packages: tuple[Pin, ...]
    """What they belong to, by name."""


def install(wanted: Sequence[str]) -> Bundled:
    """Installs what these requirements lead to, which `requirements.checked` has looked at.

    The installer runs in a folder of its own: in that of the program it would take files of the program for its own
    modules and settings. Raises PieError `build-failed`, naming the dependency that has compiled extensions or is not
    to be had, and where no index can be reached.
    """
    return _install(wanted, ())


def install_pinned(packages: Sequence[Pin]) -> Bundled:
    """Installs these packages, and nothing that they depend on. Raises as `install`; the caller compares digests."""
    return _install([f"{one.name}=={one.version}" for one in packages], ("--no-deps",))


def _install(wanted: Sequence[str], options: Sequence[str]) -> Bundled:
    if not wanted:  # the lock of a program whose requirements all have markers that leave them out
        return Bundled({}, ())
    with temporary_folder() as folder:
        target = folder / "packages"
        listed = folder / "requirements.txt"
        listed.write_text("".join(f"{one}\n" for one in wanted), encoding="utf-8")
        log = folder / "pip.log"
        try:
            run([*_installer(target, log), *options, "-r", listed], folder=folder)
        except CommandError as error:
            noted = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
            raise PieError("build-failed", _failure(error, noted, wanted)) from error
        return _collected(target)


def _failure(error: CommandError, noted: str, wanted: Sequence[str]) -> str:
    """Why packages could not be installed. pip tells its log alone that an index cannot be reached."""
    said = f"{error.stderr}\n{error.stdout}"
    unreachable = next(filter(_UNREACHABLE.search, f"{said}\n{noted}".splitlines()), None)
    if unreachable is not None:
        asked = ", ".join(wanted)
        asked = asked if len(asked) <= _MAX_SHOWN_CHARS else f"{asked[:_MAX_SHOWN_CHARS]}..."
        return (
            f"the index that packages come from cannot be reached, and {asked} is not kept from an earlier run on this machine; check the "
            "connection, or the index that is set (PIP_INDEX_URL, `pip config list`). The installer says: "
            f"{_STAMP.sub('', unreachable).strip()[:_MAX_SHOWN_CHARS]}"
        )
    reason = why_unmet(said, noted, RUNTIME_PYTHON)
    if reason is None and (found := _NO_PURE.search(said)):
        reason = (
            f"the dependency {found[1] or found[2]!r} has no release in pure Python where packages come from, or none by that name and "
            "version; programs run in a sandbox that cannot load compiled extensions: check the name, choose another package, or a "
            "version that is pure"
        )
    return error.message if reason is None else f"{reason}{_note_no_index(said + noted)}\n{error.message}"


def _note_no_index(said: str) -> str:
    """That the installer asked no index, and what forbids it to, where that is so."""
    if _NO_INDEX.search(said) is None:
        return ""
    variables = environment()
    given = next((f"{name}={variables[name]}" for name in _NO_INDEX_VARIABLES if variables.get(name)), None)
    by = f"{given} is set in the environment" if given is not None else "its own settings say no-index (`pip config list`)"
    return f". No index was asked, since {by}: unset it, or put a wheel of the package into the folder of PIP_FIND_LINKS"


def _installer(target: Path, log: Path) -> list[str]:
    if importlib.util.find_spec("pip") is not None:
        pip = [sys.executable, "-P", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
        return [
            *pip,
            f"--target={target}",
            f"--log={log}",
            "--only-binary=:all:",
            "--platform=any",
            "--implementation=py",
            "--abi=none",
            f"--python-version={RUNTIME_PYTHON}",
        ]
    if uv := shutil.which("uv"):
        return [
            uv,
            "pip",
            "install",
            "--link-mode=copy",
            "--quiet",
            "--target",
            str(target),
            "--only-binary=:all:",
            f"--python-version={RUNTIME_PYTHON}",
        ]
    raise PieError("build-failed", "the program has Python dependencies, but neither pip nor uv is there to install them; install one")


def _collected(target: Path) -> Bundled:
    if not target.is_dir():  # every requirement has a marker that leaves it out
        return Bundled({}, ())
    with Folder(target) as folder:
        walked = folder.walk(PurePosixPath(), skips=_NOT_BUNDLED, with_hidden=True)
        found = [(path, size_bytes) for path, size_bytes in walked if not _is_about(path)]
        for path, _ in found:
            if path.suffix in _COMPILED:
                package = _package_of(target, path)
                message = (
                    f"the dependency {package!r} has a compiled extension ({path}); programs run in a sandbox that cannot load it: "
                    "choose another package, or a version in pure Python"
                )
                raise PieError("build-failed", message)
        if (n_bytes := sum(size_bytes for _, size_bytes in found)) > MAX_DEPENDENCY_BYTES:
            message = f"the dependencies have {n_bytes} bytes, more than {MAX_DEPENDENCY_BYTES}; depend on fewer, or on smaller ones"
            raise PieError("build-failed", message)
        contents = {path.as_posix(): folder.read(path, MAX_DEPENDENCY_BYTES) for path, _ in found}
    files = {path: content for path, content in contents.items() if content is not None}
    return Bundled(files, _packages(target, files))


def _packages(target: Path, files: Mapping[str, bytes]) -> tuple[Pin, ...]:
    """The distributions that were installed, each with the digest of its files that are bundled.

    Raises PieError `build-failed` for a file that none of them lists: no digest would pin it.
    """
    found = []
    unlisted = set(files)
    for about in sorted(target.glob("*.dist-info")):
        described = _text(about / "METADATA").partition("\n\n")[0].splitlines()
        fields = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in reversed(described))}
        hashed = hashlib.sha256()
        own = files.keys() & _recorded(about)
        unlisted -= own
        for path in sorted(own):
            for part in (path.encode(), files[path]):
                hashed.update(len(part).to_bytes(8, "big") + part)
        name, _, version = about.name.removesuffix(".dist-info").rpartition("-")
        digest = f"sha256:{hashed.hexdigest()}"
        found.append(Pin(plain_package_name(fields.get("name", name)), fields.get("version", version), digest))
    if unlisted:
        message = (
            f"the dependencies brought the file {min(unlisted)!r}, which none of them lists in its RECORD, so that no lock would pin it; "
            "choose another version of the package that it belongs to"
        )
        raise PieError("build-failed", message)
    return tuple(sorted(found, key=lambda pin: pin.name))


def _is_about(path: PurePosixPath) -> bool:
    """Whether a file describes a package, is a command of it, or is the installer's: no program imports it."""
    return path.parts[0] == "bin" or path.parts[0].endswith(".dist-info") or path == _LOCK_OF_UV


def _package_of(target: Path, file: PurePosixPath) -> str:
    """The distribution that brought a file."""
    for about in sorted(target.glob("*.dist-info")):
        if file.as_posix() in _recorded(about):
            return about.name.partition("-")[0]
    return file.parts[0]


def _recorded(about: Path) -> set[str]:
    """The files that a distribution says it has, by where they lie now."""
    names = (line.rpartition(",")[0].rpartition(",")[0].strip('"') for line in _text(about / "RECORD").splitlines())
    return {_OUTSIDE.sub("", name) for name in names}


def _text(path: Path) -> str:
    """What a file about a distribution says; nothing where it is missing."""
    return read_file(path, MAX_DEPENDENCY_BYTES).decode("utf-8", "replace") if path.is_file() else ""
