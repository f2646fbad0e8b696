"""Gathers the SDKs that the wheel brings for building programs: `python/pie/bakery/_sdk`.

The Rust crates stand there as in the repository, with the WIT beside them, under a workspace of their own; of the
TypeScript SDK only the types, and the helper of tests on Node.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tools.artefact import ROOT

TARGET = ROOT / "python" / "pie" / "bakery" / "_sdk"
CRATES = ("inferlet", "inferlet-macros")
JS = ROOT / "js" / "inferlet"


def main() -> int:
    """Makes the folder anew; returns the exit code."""
    work = TARGET.with_name("_sdk.new")
    shutil.rmtree(work, ignore_errors=True)
    copy_rust(work)
    copy_types(work / "js")
    shutil.rmtree(TARGET, ignore_errors=True)
    work.rename(TARGET)
    n_bytes = sum(path.stat().st_size for path in TARGET.rglob("*") if path.is_file())
    print(f"{TARGET.relative_to(ROOT)}: {n_bytes / 1e3:.0f} kB")
    return 0


def copy_rust(work: Path) -> None:
    """The crates, the WIT that they read, and a workspace that holds what they inherit."""
    for crate in CRATES:
        ignored = shutil.ignore_patterns("tests", "*_tests.rs", "target")
        shutil.copytree(ROOT / "rust" / crate, work / "rust" / crate, ignore=ignored)
    shutil.copytree(ROOT / "wit", work / "wit")
    shutil.copyfile(ROOT / "examples" / "rust" / "Cargo.lock", work / "rust" / "Cargo.lock")
    root = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]
    wanted = {name for crate in CRATES for name in inherited(ROOT / "rust" / crate / "Cargo.toml")}
    lines = ["[workspace]", 'resolver = "3"', f"members = {toml(list(CRATES))}", "", "[workspace.package]"]
    lines += [f"{key} = {toml(value)}" for key, value in root["package"].items()]
    lines += ["", "[workspace.dependencies]"]
    for name in sorted(wanted):
        given = root["dependencies"][name]
        value = {"path": name} if name in CRATES else given
        lines.append(f"{name} = {toml(value)}")
    for group, lints in root["lints"].items():
        lines += ["", f"[workspace.lints.{group}]"]
        lines += [f"{key} = {toml(value)}" for key, value in lints.items()]
    (work / "rust" / "Cargo.toml").write_text("\n".join(lines) + "\n")


def inherited(manifest: Path) -> list[str]:
    """The dependencies of a crate that the workspace describes."""
    crate = tomllib.loads(manifest.read_text())
    return [name for name, value in crate["dependencies"].items() if isinstance(value, dict) and value.get("workspace")]


def toml(value: object) -> str:
    """A value as TOML writes it."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(one)}" for key, one in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"'


def copy_types(folder: Path) -> None:
    """The declarations of the SDK, made by its compiler, those of the globals, and what tests of projects import."""
    if not (JS / "node_modules").is_dir():
        subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"], cwd=JS, check=True)
    tsc = JS / "node_modules" / ".bin" / "tsc"
    subprocess.run([tsc, "-p", JS, "--emitDeclarationOnly", "--outDir", folder], check=True)
    for name in ("globals.d.ts", "testing.d.mts", "testing.mjs"):
        shutil.copyfile(JS / name, folder / name)


if __name__ == "__main__":
    sys.exit(main())
