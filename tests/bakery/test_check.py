"""What is refused when it is built: programs that could not run anywhere. Nothing of a program runs meanwhile."""

from __future__ import annotations

from pathlib import Path

import pytest

from pie import _engine
from pie.bakery.build import build
from pie.bakery.check import check
from pie.errors import PieError
from support.command import pie
from support.folders import write

PYTHON_MAIN = "async def main(input):\n    return 1\n"
SCRIPT_MAIN = "export async function main() {}\n"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"main.py": "x = 1\nasync def main(input:\n    return 1\n"}, "main.py:2:15: '(' was never closed"),
        ({"main.py": "def main(input):\n  return 1\n return 2\n"}, "main.py:3:10: unindent does not match any outer indentation level"),
        ({"main.py": "return 1\n"}, "main.py:1:1: 'return' outside function"),
        ({"main.py": "x = '\0'\n"}, "main.py: source code string cannot contain null bytes"),
        ({"main.py": "import helper\n" + PYTHON_MAIN, "helper.py": "\nx = = 1\n"}, "helper.py:2:5: invalid syntax"),
        ({"main.py": PYTHON_MAIN + "    from a.b import c\n", "a/__init__.py": "", "a/b.py": "(\n"}, "a/b.py:1:1: '(' was never closed"),
        ({"main.py": "import a\n", "a/__init__.py": "from . import b\n", "a/b.py": "0x\n"}, "a/b.py:1:2: invalid hexadecimal literal"),
        ({"main.py": "import json\nimport slugfy\n", "slugify.py": ""}, "main.py:2:1: there is no module 'slugfy' in the standard library"),
        ({"main.py": "import jsn\n" + PYTHON_MAIN}, "main.py:1:1: there is no module 'jsn' in the standard library"),
        ({"main.py": "async def main(input):\n    import numpyy\n"}, "main.py:2:5: there is no module 'numpyy'"),
        ({"main.py": "class A:\n    from gone.deep import x\n"}, "main.py:2:5: there is no module 'gone'"),
        (
            {"main.py": "import a.helpers\n", "a/__init__.py": "", "a/helper.py": ""},
            "main.py:1:1: there is no module 'helpers' in 'a'; did you",
        ),
        (
            {"main.py": "from a import b\n", "a/__init__.py": "", "a/b.py": "\nfrom .c import d\n"},
            "a/b.py:2:1: there is no module 'c' in 'a'",
        ),
        ({"main.py": "import xml.etre\n"}, "main.py:1:1: there is no module 'xml.etre' in the standard library"),
        (
            {"main.py": "import sqlite3\n"},
            "main.py:1:1: 'sqlite3' cannot be imported: No module named 'sqlite3' in a program: a program has no",
        ),
        (
            {"main.py": "import ssl\n"},
            "main.py:1:1: 'ssl' cannot be imported: No module named '_ssl' in a program: TLS is spoken by the engine",
        ),
        (
            {"main.py": "import lzma\n"},
            "main.py:1:1: 'lzma' cannot be imported: No module named '_lzma' in a program: a program compresses",
        ),
        ({"main.py": "import multiprocessing\n"}, "main.py:1:1: 'multiprocessing' cannot be imported"),
        # A file that provides modules, and has not this name, changes nothing.
        (
            {"main.py": "import stubs\nimport numpyy\n", "stubs.py": "import sys\nsys.modules['numpy'] = sys\n"},
            "main.py:2:1: there is no module 'numpyy'",
        ),
        ({"main.js": "let x = 1;\nlet = = 2;\n"}, "main.js:2:"),
        ({"main.ts": "export async function main(input: string {}\n"}, "main.ts:1:"),
        (
            {"main.ts": "enum Colour { Red }\n" + SCRIPT_MAIN},
            "main.ts:1:1: TypeScript enum is not supported in strip-only mode; types are only",
        ),
        ({"main.js": "export const x = 1;\n"}, "main.js exports no function `main`; add `export async function main(input)"),
        ({"main.ts": "export function other() {}\n"}, "main.ts exports no function `main`"),
        ({"main.js": "import { y } from './other.js';\n" + SCRIPT_MAIN, "other.js": "export const z = 1;\n"}, "Could not find export 'y'"),
        ({"main.js": "import { y } from './gone.js';\n" + SCRIPT_MAIN}, "cannot find the module './gone.js' that main.js imports"),
        ({"main.js": "import fs from 'fs';\n" + SCRIPT_MAIN}, "cannot find the module 'fs'"),
    ],
)
def test_what_cannot_run_is_refused_with_its_place(tmp_path: Path, files: dict[str, str], expected: str) -> None:
    with pytest.raises(PieError) as caught:
        build(write(tmp_path, files))
    assert caught.value.code == "invalid-program"
    assert caught.value.message.startswith(expected)
    assert not (tmp_path / "dist").exists()


@pytest.mark.parametrize(
    "files",
    [
        {"main.py": "print('a script')\n"},
        {"main.py": "raise SystemExit('this would end a program that runs')\n"},
        {"main.py": "while True:\n    pass\n" + PYTHON_MAIN},
        {"main.py": "type Pair = tuple[int, int]\ntry:\n    pass\nexcept ValueError, KeyError:\n    pass\nname = 'x'\nprint(t'{name}')\n"},
        {"main.py": "import sys\nif sys.version_info < (3,):\n    import old\n" + PYTHON_MAIN, "old.py": "print 'two'\n"},
        {"main.py": "try:\n    import old\nexcept SyntaxError:\n    old = None\n" + PYTHON_MAIN, "old.py": "print 'two'\n"},
        {"main.py": PYTHON_MAIN, "templates/page.py": "{% template %}\n"},
        # What may not be reached, or may fail, is left to the launch.
        {"main.py": "try:\n    import numpy\nexcept ImportError:\n    numpy = None\n" + PYTHON_MAIN},
        {"main.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import pandas\n" + PYTHON_MAIN},
        {"main.py": "import contextlib\nwith contextlib.suppress(ImportError):\n    import numpy\n" + PYTHON_MAIN},
        {"main.py": "def plot():\n    import matplotlib\n" + PYTHON_MAIN},
        {"main.py": "async def main(input):\n    if input is None:\n        return 1\n    import numpy\n"},
        {"main.py": "raise SystemExit\nimport numpy\n"},
        {"main.py": "async def fetch(request): ...\nasync def main(input):\n    import numpy\n"},
        {"main.py": "from a import b\n" + PYTHON_MAIN, "a/__init__.py": "b = 1\n", "a/b.py": "import numpy\n"},
        {"main.py": "async def main(input):\n    match input:\n        case None:\n            return 1\n    import numpy\n"},
        {
            "main.py": "from a import b\n" + PYTHON_MAIN,
            "a/__init__.py": "from .c import *\n",
            "a/c.py": "b = 1\n",
            "a/b.py": "import numpy\n",
        },
        # Another file may provide the module, and what lies below /scratch is known at the launch alone.
        {
            "main.py": "import stubs\nimport numpy, ssl\n" + PYTHON_MAIN,
            "stubs.py": "import sys\nfor n in ('numpy', 'ssl'):\n    sys.modules[n] = sys\n",
        },
        {"main.py": "import sys\nsys.path.append('/scratch')\nimport written_before\n" + PYTHON_MAIN},
        # Modules that stand in no file, as those of `six`.
        {"main.py": "import six.moves.urllib\n" + PYTHON_MAIN, "six.py": "import sys\nsys.modules['six.moves'] = sys\n"},
        {"main.py": "import os.path, xml.etree.ElementTree, collections.abc, concurrent.futures, inferlet.chat\n" + PYTHON_MAIN},
        {"main.js": "throw new Error('this would end a program that runs');\n" + SCRIPT_MAIN},
        {"main.js": "import './loop.js';\n" + SCRIPT_MAIN, "loop.js": "for (;;);\n"},
        {
            "main.ts": "import data from './data.json';\nexport { run as main };\nfunction run(): unknown { return data; }\n",
            "data.json": "[1]",
        },
        {"main.ts": "export * from './real.js';\n", "real.ts": "export const main = (): number => 1;\n"},
        {"main.js": "await Promise.resolve();\nimport { Model } from 'inferlet';\nexport const main = () => Model;\n"},
    ],
)
def test_what_may_run_is_built_and_nothing_of_it_runs(tmp_path: Path, files: dict[str, str]) -> None:
    assert build(write(tmp_path, files)).wasm.is_file()


def test_a_component_has_to_fit_the_host() -> None:
    for content, words in [
        (b"\x8f random", "not WebAssembly"),
        (b"\0asm\x0d\0\x01\0", "exports pie:inferlet/run@0.1.0"),
        (b"\0asm\x0d\0\x01\0", r"`#\[inferlet::main\]`"),
    ]:
        with pytest.raises(PieError, match=words) as caught:
            check(content)
        assert caught.value.code == "invalid-program"


def test_sources_that_take_too_much_to_compile_end_by_a_limit(tmp_path: Path) -> None:
    huge = {"main.py": b"x = [" + b"(1, 2), " * 2_000_000 + b"]\n"}
    wasm = _engine.pack_program("python", huge, "main.py", None, None)
    engine = _engine.Engine(runtimes_dir=str(Path(_engine.__file__).parent / "runtimes"), cache_dir=str(tmp_path))
    try:
        with pytest.raises(PieError) as caught:
            engine.check(wasm)
    finally:
        engine.stop()
    assert caught.value.code == "limit-memory"
    assert "limits.memory_bytes = 268435456" in caught.value.message


def test_the_command_says_what_is_wrong_and_writes_nothing(tmp_path: Path) -> None:
    write(tmp_path, {"main.py": "def main(:\n"})
    done = pie("build", "main.py", "-o", "out.wasm", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "error[invalid-program]: main.py:1:10: invalid syntax"
    assert not (tmp_path / "out.wasm").exists()


def test_the_nearest_name_is_told(tmp_path: Path) -> None:
    for source, near in [("import slugfy\n", "slugify"), ("import colections\n", "collections"), ("import inferlt\n", "inferlet")]:
        with pytest.raises(PieError, match=f"did you mean '{near}'") as caught:
            build(write(tmp_path, {"main.py": source, "slugify/__init__.py": ""}))
        assert "[dependencies] of Pie.toml" in caught.value.message
