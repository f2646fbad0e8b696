"""What Debian has: packages installed by apt, and packages only unpacked."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from .machine import ToolchainError, cache_folder, find, run

SOURCES = Path("/etc/apt/sources.list")
OS_RELEASE = Path("/etc/os-release")
PATIENT = ("-o", "DPkg::Lock::Timeout=300")
"""Waits for another installation, as one that a new machine does by itself, in place of failing."""

_updated: list[bool] = []
"""Holds an entry once the lists of packages have been fetched by this run."""


def has_apt() -> bool:
    """Whether this is a machine of the Debian family."""
    return find("apt-get") is not None


def install_command(*packages: str) -> str:
    """What a person types to install packages; elsewhere than on Debian, their names there."""
    if not has_apt():
        return f"your package manager, for what Debian calls {' '.join(packages)}"
    sudo = "" if os.geteuid() == 0 else "sudo "
    return f"{sudo}apt-get update && {sudo}apt-get install --yes --no-install-recommends {' '.join(packages)}"


def install(*packages: str) -> None:
    """Installs packages; fetches the lists first where they know one of them not."""
    if not has_apt():
        raise ToolchainError("this machine has no apt-get")
    if os.geteuid() != 0:
        raise ToolchainError("installing packages needs root")
    if not _updated and not all(map(_is_known, packages)):
        run(["apt-get", "update"])
        _updated.append(True)
    run(["apt-get", *PATIENT, "install", "--yes", "--no-install-recommends", *packages])


def _is_known(package: str) -> bool:
    return re.search(r"^\s*Candidate: (?!\(none\))", run(["apt-cache", "policy", package]), re.M) is not None


@dataclass(frozen=True)
class Mirror:
    """A place that the machine gets its packages from."""

    uri: str
    signed_by: str | None


def unpack(package: str, folder: Path, wanted: Path) -> None:
    """Unpacks a package into a folder, without installing it and without root, until `wanted` is there.

    The backports of the machine's release are asked first, its release next. Both come from the mirror in the machine's
    own sources, by lists of our own: the machine's are left as they are.
    """
    if not has_apt():
        raise ToolchainError("this machine has no apt-get")
    mirror, codename = find_mirror(), release_codename()
    for suite in (f"{codename}-backports", codename):
        work = cache_folder() / "apt" / suite
        shutil.rmtree(work, ignore_errors=True)
        try:
            archive = _download(package, mirror, suite, work)
        except ToolchainError as failure:
            refused = failure
            continue
        run(["dpkg", "-x", archive, folder])
        if wanted.exists():
            shutil.rmtree(work)
            return
        refused = ToolchainError(f"{package} of {suite} has no {wanted.relative_to(folder)}")
    raise refused


def _download(package: str, mirror: Mirror, suite: str, work: Path) -> Path:
    """Downloads a package with the ordinary client, whose state lies in `work`."""
    for folder in ("parts", "lists/partial", "archives/partial", "package"):
        (work / folder).mkdir(parents=True)
    entry = {"Types": "deb", "URIs": mirror.uri, "Suites": suite, "Components": "main"}
    if mirror.signed_by:
        entry["Signed-By"] = mirror.signed_by
    (work / "parts" / "pie.sources").write_text("".join(f"{key}: {value}\n" for key, value in entry.items()))
    settings = {
        "Dir::Etc::SourceList": "/dev/null",
        "Dir::Etc::SourceParts": work / "parts",
        "Dir::State::Lists": work / "lists",
        "Dir::Cache": work,
        # Root would hand the download to a user who cannot write into this folder.
        "APT::Sandbox::User": "",
    }
    configuration = work / "apt.conf"
    configuration.write_text("".join(f'{key} "{value}";\n' for key, value in settings.items()))
    environment = {"APT_CONFIG": str(configuration)}
    run(["apt-get", "update"], environment=environment)
    run(["apt-get", "download", package], folder=work / "package", environment=environment)
    return next((work / "package").glob("*.deb"))


def release_codename() -> str:
    """The name of the machine's release."""
    found = re.search(r"^VERSION_CODENAME=(\w+)", OS_RELEASE.read_text() if OS_RELEASE.exists() else "", re.M)
    if found is None:
        raise ToolchainError(f"{OS_RELEASE} names no release")
    return found[1]


def find_mirror() -> Mirror:
    """The mirror of the machine's release, from its own sources."""
    codename = release_codename()
    for path in [SOURCES, *sorted(SOURCES.with_name("sources.list.d").glob("*"))]:
        if not path.is_file():
            continue
        parse = parse_sources if path.suffix == ".sources" else parse_list
        if mirror := parse(path.read_text(), codename):
            return mirror
    raise ToolchainError(f"no entry of {SOURCES} and its folder serves main of {codename}")


def parse_sources(text: str, codename: str) -> Mirror | None:
    """The mirror of a release in a file of stanzas."""
    for stanza in re.split(r"\n\s*\n", text):
        fields = dict(re.findall(r"^([\w-]+):[ \t]*(.*)$", stanza, re.M))
        serves = "main" in fields.get("Components", "").split() and codename in fields.get("Suites", "").split()
        if serves and fields.get("URIs") and fields.get("Enabled", "yes") != "no":
            return Mirror(fields["URIs"].split()[0], fields.get("Signed-By"))
    return None


def parse_list(text: str, codename: str) -> Mirror | None:
    """The mirror of a release in a file of lines."""
    for found in re.finditer(r"^\s*deb\s+(?:\[(.*?)\]\s+)?(\S+)\s+(\S+)\s+(.*)$", text, re.M):
        options, uri, suite, components = found.groups()
        if suite == codename and "main" in components.split():
            signed_by = re.search(r"signed-by=(\S+)", options or "")
            return Mirror(uri, signed_by and signed_by[1])
    return None
