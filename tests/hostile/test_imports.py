"""What a source imports is found without parsing it: whatever stands in the file costs time and room in proportion to
its length.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path, PurePosixPath

import pytest

from pie.imports import python_imports
from support.command import environment, pie
from support.launching import ROOT

MAX_BYTES = 256 << 20
"""What the command may take for a file of 4 MiB, its interpreter included. The tree of such a file takes gigabytes."""
N = 4 << 20


def parsed(path: PurePosixPath, text: str) -> set[str]:
    """What a file imports, by its syntax tree."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = path.parent.parts[: len(path.parent.parts) - node.level + 1] if node.level else ()
            base = ".".join([*package, *filter(None, [node.module])])
            found.update([base, *(f"{base}.{alias.name}".strip(".") for alias in node.names)])
    return found - {""}


@pytest.mark.parametrize("folder", ["python", "tests", "tools", "examples/python"])
def test_what_is_found_is_what_a_parser_finds(folder: str) -> None:
    for file in sorted((ROOT / folder).rglob("*.py")):
        path, text = PurePosixPath(file.relative_to(ROOT)), file.read_text(encoding="utf-8")
        assert set(python_imports(path, text)) == parsed(path, text), path


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import a\nimport b.c as d, e", {"a", "b.c", "e"}),
        ("from a.b import (c as d, # why )\n  e,\n)", {"a.b", "a.b.c", "a.b.e"}),
        ("from . import a\nfrom .b import c\nfrom ..d import e", {"p.q", "p.q.a", "p.q.b", "p.q.b.c", "p.d", "p.d.e"}),
        ("from .import a", {"p.q", "p.q.a"}),
        ("from a import*", {"a", "a.*"}),
        ("if x: import a; import \\\n b\ntry: from c \\\n import d\nexcept E: pass", {"a", "b", "c", "c.d"}),
        ("def f():\r\n\timport a\r\n\treturn 'import b'\r\n", {"a"}),
        ('\'\'\'\nimport a\n\'\'\'\n""" \\""" import b\n"""; import c # import d\n', {"c"}),
        ("x = r'\\\\'; y = 'import a'\nimport b", {"b"}),
        ('x = f"{d["key"]}"\nimport b', {"b"}),
        ("raise E from e\nimport a\ndef g():\n yield from h\n import b", {"a", "b"}),
        ("importer = 1; ximport = 2; reimport; from_ = import_", set()),
        ("import ﬁne", {"fine"}),
        ("import", set()),
        ("from a import (b", {"a", "a.b"}),
        ("'unfinished\nimport a\n'''unfinished\nimport b", {"a"}),
    ],
)
def test_imports_are_told_from_texts_and_comments(text: str, expected: set[str]) -> None:
    assert set(python_imports(PurePosixPath("p/q/r.py"), text)) == expected


LOADING = """
import sys
from pathlib import Path
from pie.programs import load_program

program = load_program(Path(sys.argv[1]))
peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
print(len(program.files), int(peak.split()[1]) << 10)
"""
HOSTILE = {
    "statements": "a\n" * (N // 2),
    "brackets": "(" * N,
    "signs": "x=" + "-" * (N - 2),
    "sums": "x=1" + "+1" * (N // 2 - 2),
    "lambdas": "lambda:" * (N // 7),
    "texts": '"\\""' * (N // 4),
    "a text": '"""' + '\\"' * (N // 2 - 2),
    "unfinished lists": "from a import (\n" * (N // 16),
    "names": "import " + "a." * (N // 2 - 4),
    "dots": "from " + "." * (N - 20) + " import a",
    "spaces": "from" + " " * (N - 20) + "import a",
    "other names": "import " + "a as b," * (N // 7 - 1),
    "names of a long module": "from " + "a." * (N // 4) + "a import " + "a," * (N // 4 - 8),
    "many names of a long module": "from " + "a." * 250 + "a import " + ",".join(f"b{n}" for n in range(60_000)),
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_no_text_fills_or_ends_the_command(tmp_path: Path, text: str) -> None:
    (tmp_path / "main.py").write_text(text)
    done = subprocess.run(
        [sys.executable, "-c", LOADING, str(tmp_path / "main.py")], env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    n_files, n_bytes = map(int, done.stdout.split())
    assert n_files == 1
    assert n_bytes < MAX_BYTES


@pytest.mark.parametrize("text", ["(" * 100_000, "x=" + "-" * 100_000, "x=1" + "+1" * 100_000])
def test_a_source_that_is_nested_deeply_is_one_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "main.py").write_text(text)
    done = pie("run", str(tmp_path / "main.py"), "--dummy")
    assert done.returncode == 1, done.stderr
    assert done.stderr.count("error[") == 1, done.stderr
