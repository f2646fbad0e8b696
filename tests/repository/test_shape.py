"""The rules that the tree keeps: layers, file sizes, documented items, generated files, words that do not belong."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tools.measure_shape import rust_functions

ROOT = Path(__file__).resolve().parents[2]
CODE = {".rs", ".py", ".ts", ".js", ".wit"}
MAX_LINES = 800
MAX_FUNCTION_LINES = 60

# Which crate may name which: what is not listed here is not allowed.
CRATE_LAYERS = {
    "pie-core": set(),
    "pie-channel": set(),
    "pie-text": set(),
    "pie-kernels": set(),
    "pie-client": set(),
    "pie-host": {"pie-core", "pie-text"},
    "pie-server": {"pie-host"},
    "pie-python": {"pie-channel", "pie-core", "pie-host", "pie-kernels", "pie-server"},
    "pie-fuzz": {"pie-core", "pie-host", "pie-server", "pie-text"},
    "pie-interleavings": set(),
    "inferlet": {"inferlet-macros"},
    "inferlet-macros": set(),
}
PURE_CORE = re.compile(r"\bstd::(fs|net|env|time::(Instant|SystemTime)|thread|process|io)\b|\bprintln!|\beprintln!|\blog::")


def tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [ROOT / line for line in listed.splitlines() if (ROOT / line).is_file()]


def code_files() -> list[Path]:
    return [path for path in tracked() if path.suffix in CODE and "deps/wasi-" not in str(path)]


def test_crates_depend_downwards_only() -> None:
    for manifest in sorted((ROOT / "rust").glob("*/Cargo.toml")):
        package = tomllib.loads(manifest.read_text())
        name = package["package"]["name"]
        # A guest and a tool of the build, outside the workspace.
        if manifest.parent.name in {"js-runtime", "runtime-builder"}:
            continue
        ours = {dependency for dependency in package.get("dependencies", {}) if dependency in CRATE_LAYERS}
        assert ours <= CRATE_LAYERS[name], f"{name} may not depend on {ours - CRATE_LAYERS[name]}"


def test_the_core_is_pure() -> None:
    impure = []
    for path in sorted((ROOT / "rust/core/src").rglob("*.rs")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if PURE_CORE.search(line) and not line.lstrip().startswith("//"):
                impure.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()}")
    assert impure == []


def test_files_are_small() -> None:
    long = {}
    for path in code_files():
        if "tests" in path.relative_to(ROOT).parts:
            continue
        first, *others = path.read_text().splitlines() or [""]
        n_lines = 1 + len(others)
        # What is generated is as long as what it is made of, and nobody reads it from end to end.
        if n_lines > MAX_LINES and "Generated from" not in first:
            long[str(path.relative_to(ROOT))] = n_lines
    assert long == {}, f"files over {MAX_LINES} lines"


def test_functions_are_read_on_a_screen() -> None:
    long = {}
    for crate in ("client", "core", "host", "server", "text"):
        files = {path: path.read_text() for path in sorted((ROOT / "rust" / crate / "src").rglob("*.rs"))}
        tests = {
            (path.parent if path.stem in ("mod", "lib") else path.with_suffix("")) / name
            for path, text in files.items()
            for name in re.findall(r"#\[cfg\(test\)\]\n *(?:pub(?:\([a-z]+\))? )?mod (\w+);", text)
        }
        for path, text in files.items():
            # What property tests compare with stands beside them.
            is_test = re.match(r"modelled_|.*tests$", path.stem) or not tests.isdisjoint({path.with_suffix(""), *path.parents})
            if is_test or "Generated from" in text.partition("\n")[0]:
                continue
            found = rust_functions(text)
            long |= {f"{path.relative_to(ROOT)}: {name}": n for name, n in found.items() if n > MAX_FUNCTION_LINES}
    assert long == {}, f"functions over {MAX_FUNCTION_LINES} lines"


def test_a_long_function_is_seen() -> None:
    body = "\n".join(["        let a = 1;"] * 59)
    text = f"impl A {{\n    pub(crate) fn short(&self);\n    async fn long(\n        a: u32,\n    ) -> u32 {{\n{body}\n    }}\n    fn one() {{}}\n}}\n"
    assert rust_functions(text) == {"short in line 2": 1, "long in line 3": 63, "one in line 66": 1}


# Of traits of wasmtime, which name them.
OF_WASI = {"check_write"}
CHECK = re.compile(r"\bfn (check_\w+)(?:<[^>]*>)?\(\s*&(?:'\w+ )?mut self\b")
RIDDLE = re.compile(r"\b(?:struct|enum|type|trait) (Beside|Given|Held|Rider)\b")


def test_a_check_changes_nothing_and_no_type_has_a_riddle_for_a_name() -> None:
    changing, riddles = [], []
    for path in sorted(ROOT.glob("rust/*/src/**/*.rs")):
        text, name = path.read_text(encoding="utf-8"), path.relative_to(ROOT)
        changing += [f"{name}: {found}" for found in CHECK.findall(text) if found not in OF_WASI]
        if not path.stem.endswith("tests"):
            riddles += [f"{name}: {found}" for found in RIDDLE.findall(text)]
    assert changing == [], "a check takes &self; what changes something says so by its name"
    assert riddles == [], "a name that needs its comment to be understood is the wrong name"


def test_a_check_that_changes_something_is_seen() -> None:
    for code in ("fn check_room(&mut self)", "pub(crate) fn check_a<T: A>(\n        &mut self,", "fn check_b(&'a mut self)"):
        assert CHECK.search(code)
    for code in ("fn check_room(&self)", "fn recheck_a(&mut self)", "fn checked(&mut self)"):
        assert not CHECK.search(code)
    assert RIDDLE.search("pub(crate) struct Given<'a> {")
    assert not RIDDLE.search("struct HeldBytes;")


def test_the_architecture_fits_on_four_pages() -> None:
    assert len((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").splitlines()) <= 220


@pytest.mark.parametrize("package", ["pie", "inferlet"])
def test_public_python_items_are_documented(package: str) -> None:
    bare = []
    for path in sorted((ROOT / "python" / package).rglob("*.py")):
        tree = ast.parse(path.read_text())
        if ast.get_docstring(tree) is None:
            bare.append(str(path.relative_to(ROOT)))
        for node in tree.body:
            named = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            if named and not node.name.startswith("_") and ast.get_docstring(node) is None:
                bare.append(f"{path.relative_to(ROOT)}:{node.lineno}: {node.name}")
    assert bare == []


def test_every_wit_item_is_documented() -> None:
    bare = []
    for path in sorted((ROOT / "wit").rglob("*.wit")):
        if "deps/wasi-" in str(path):
            continue
        lines = path.read_text().splitlines()
        for number, line in enumerate(lines):
            item = re.match(r"\s*(interface|record|variant|enum|resource|world|flags) ([a-z-]+)\b|\s*()([a-z-]+): (?:static )?func\(", line)
            if item and number and not lines[number - 1].strip().startswith("///"):
                bare.append(f"{path.relative_to(ROOT)}:{number + 1}: {item[2] or item[4]}")
    assert bare == []


def test_the_version_stands_once() -> None:
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    assert "version" in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dynamic"]
    for manifest in sorted(ROOT.glob("rust/*/Cargo.toml")):
        if manifest.parent.name in {path.parent.name for path in ROOT.glob("rust/*/Cargo.lock")}:
            continue  # outside the workspace
        assert tomllib.loads(manifest.read_text())["package"]["version"] == {"workspace": True}, manifest
    # npm has no way to read it from elsewhere.
    for package in ("inferlet", "client"):
        assert json.loads((ROOT / f"js/{package}/package.json").read_text())["version"] == version
    assert f"'pie-js/{version}'" in (ROOT / "js/client/src/opening.ts").read_text()


@pytest.mark.parametrize(
    "generator",
    [
        "gen_errors.py",
        "gen_config_docs.py",
        "gen_driver_docs.py",
        "gen_stats.py",
        "gen_js_bridge.py",
        "gen_surface.py",
        "gen_cuda_calls.py",
        "gen_sdk_reference.py",
    ],
)
def test_generated_files_are_in_step(generator: str) -> None:
    done = subprocess.run([sys.executable, f"tools/{generator}", "--check"], cwd=ROOT, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_environment_is_read_in_one_place() -> None:
    reading = re.compile(r"\bos\.(environ|getenv|putenv)|\benviron\b *\[|\bexpandvars\b")
    # The second one runs under a bare Python, where the configuration cannot be imported.
    readers = {ROOT / "python/pie" / name for name in ("config/environment.py", "bakery/toolchain/machine.py")}
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in sorted((ROOT / "python/pie").rglob("*.py"))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if reading.search(line) and path not in readers
    ]
    assert found == []
    in_rust = re.compile(r"\benv::(var|vars|var_os|vars_os|home_dir|temp_dir)\b")
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for crate in ("core", "text", "kernels", "host", "server", "python", "client")
        for path in sorted((ROOT / "rust" / crate / "src").rglob("*.rs"))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if in_rust.search(line)
    ]
    assert found == []


def test_the_product_speaks_of_itself_alone() -> None:
    home = re.compile(r"/root/|/work/(main|shared)|/tmp/(brief|t-)")
    found = []
    for path in code_files() + [path for path in tracked() if path.suffix in {".md", ".toml", ".txt"}]:
        if path == Path(__file__).resolve():
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if home.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()}")
    assert found == []
