"""The wheel alone is enough: no compiler, Node, Rust or torch, outside the tree."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MAX_WHEEL_BYTES = 60 * 10**6


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of the tree as it is."""
    dist = tmp_path_factory.mktemp("dist")
    maturin = Path(sys.executable).with_name("maturin")
    build = [str(maturin), "build", "--release", "--strip", "--quiet", "--out", str(dist), "--interpreter", sys.executable]
    subprocess.run(build, cwd=ROOT, check=True)
    (path,) = dist.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the executables of an empty environment with the wheel in it."""
    folder = tmp_path_factory.mktemp("venv")
    venv.create(folder, with_pip=True)
    pip = [str(folder / "bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "-r", str(ROOT / "requirements/build.txt")], check=True)
    subprocess.run([*pip, "--no-deps", str(wheel)], check=True)
    return folder / "bin"


def test_what_is_inside(wheel: Path) -> None:
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    assert re.fullmatch(rf"pie_engine-{re.escape(version)}-cp311-abi3-\w+\.whl", wheel.name)
    names = zipfile.ZipFile(wheel).namelist()
    needed = [
        "pie/_engine.abi3.so",
        "pie/_engine.pyi",
        "pie/cli/conversation.py",
        "pie/py.typed",
        "inferlet/py.typed",
        "pie/pie_tiny/model.safetensors",
        "pie/pie_tiny/tokenizer.json",
        "pie/bakery/templates/rust/Cargo.toml.template",
        "pie/bakery/templates/python/tests/test_main.py.template",
        "pie/bakery/_sdk/rust/inferlet/src/lib.rs",
        "pie/bakery/_sdk/rust/Cargo.lock",
        "pie/bakery/_sdk/wit/world.wit",
        "pie/bakery/_sdk/js/index.d.ts",
        "pie/bakery/_sdk/js/testing.mjs",
        "pie/pytest_plugin.py",
    ]
    assert [name for name in needed if name not in names] == []
    (announced,) = (name for name in names if name.endswith(".dist-info/entry_points.txt"))
    assert "[pytest11]\npie=pie.pytest_plugin" in zipfile.ZipFile(wheel).read(announced).decode().replace(" = ", "=")
    for language in ("python", "javascript"):
        assert any(name.startswith(f"pie/runtimes/{language}.wasm") for name in names)
    assert [name for name in names if "__pycache__" in name or name.startswith("tests/")] == []
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB")
    assert wheel.stat().st_size <= MAX_WHEEL_BYTES


@pytest.mark.parametrize("program", ["python/hello.py", "typescript/hello.ts"])
def test_a_program_runs_from_the_wheel_alone(installed: Path, tmp_path: Path, program: str) -> None:
    source = ROOT / "examples" / program
    (tmp_path / source.name).write_text(source.read_text())
    alone = {"PATH": str(installed), "HOME": str(tmp_path), "LANG": "C.UTF-8"}
    command = [str(installed / "pie"), "run", source.name, "--seed", "7"]
    done = subprocess.run(command, cwd=tmp_path, env=alone, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    print(done.stdout)
    assert done.returncode == 0, done.stderr
    assert any(letter.isalpha() for letter in done.stdout)
    listed = subprocess.run([str(installed / "python"), "-c", "import torch"], capture_output=True, check=False)
    assert listed.returncode != 0, "torch was installed with the wheel"


@pytest.mark.parametrize("language", ["python", "ts"])
def test_a_program_is_made_and_built_from_the_wheel_alone(installed: Path, tmp_path: Path, language: str) -> None:
    alone = {"PATH": str(installed), "HOME": str(tmp_path), "LANG": "C.UTF-8"}
    for command in (
        ["pie", "new", "first", f"--{language}"],
        ["bakery", "build", "first"],
        ["pie", "run", "first/dist/first.wasm", "--dummy"],
    ):
        line = [str(installed / command[0]), *command[1:]]
        done = subprocess.run(line, cwd=tmp_path, env=alone, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The npm package of the types, as `make wheel` makes it."""
    folder = tmp_path_factory.mktemp("npm")
    sdk = ROOT / "js/inferlet"
    subprocess.run(["npm", "run", "--silent", "build"], cwd=sdk, check=True)
    subprocess.run(["npm", "pack", "--silent", "--ignore-scripts", "--pack-destination", str(folder)], cwd=sdk, check=True)
    (path,) = folder.glob("inferlet-*.tgz")
    return path


def test_the_npm_package_brings_the_types(package: Path, tmp_path: Path) -> None:
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    assert package.name == f"inferlet-{version}.tgz"
    with tarfile.open(package) as archive:
        names = archive.getnames()
        archive.extractall(tmp_path / "packed", filter="data")
    assert {"package/package.json", "package/README.md", "package/globals.d.ts", "package/dist/index.d.ts"} <= set(names)
    assert [name for name in names if name.startswith(("package/src", "package/node_modules"))] == []
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "packed/package").rename(tmp_path / "node_modules/inferlet")
    settings = {
        "target": "ESNext",
        "module": "ESNext",
        "moduleResolution": "bundler",
        "lib": ["ES2024", "ESNext.Disposable"],
        "types": ["inferlet/globals"],
        "strict": True,
        "noEmit": True,
    }
    (tmp_path / "tsconfig.json").write_text(json.dumps({"compilerOptions": settings, "files": ["main.ts"]}))
    source = "import { Sampler } from 'inferlet';\nawait new Promise((r) => setTimeout(r, 20));\nexport const main = () => Sampler.topP(0.6, 0.95);\n"
    (tmp_path / "main.ts").write_text(source)
    tsc = ROOT / "js/inferlet/node_modules/.bin/tsc"
    done = subprocess.run([str(tsc), "-p", str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.stdout == ""
