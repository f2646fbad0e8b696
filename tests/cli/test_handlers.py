"""Programs that are served by `--port`, and have nothing to answer requests with."""

from __future__ import annotations

from pathlib import Path

import pytest

from pie.bakery.project import Project, open_project
from pie.cli.handlers import check_answers
from pie.errors import PieError
from pie.programs import Component, Source

HEADER = b"\0asm\r\0\1\0"
"""What a component begins with."""

ANSWERING = {
    "a function": ("p.py", "async def fetch(request):\n    return None\n"),
    "a function under a condition": ("p.py", "if True:\n    def fetch(request):\n        return None\n"),
    "an assignment": ("p.py", "fetch = print\n"),
    "an import": ("p.py", "from app import handler as fetch\n"),
    "an import of everything": ("p.py", "from app import *\n"),
    "requests that main takes": ("p.py", "from inferlet import http_server\nasync def main():\n    await http_server.serve(print)\n"),
    "requests that main takes by another name": (
        "p.py",
        "from inferlet.http_server import serve as go\nasync def main():\n    await go(print)\n",
    ),
    "what does not parse, as its launch says": ("p.py", "def fetch(:\n"),
    "a default export": ("p.ts", "export default { fetch: () => new Response('') };\n"),
    "a default export by another name": ("p.js", "const app = {};\nexport { app as default };\n"),
    "the default export of another file": ("p.js", "export { default } from './app.js';\n"),
}

SILENT = {
    "a main": ("p.py", "async def main(input):\n    return 'fetch'\n"),
    "a misspelt function": ("p.py", "from inferlet.http_server import Response\nasync def fecth(request):\n    return Response()\n"),
    "a main in TypeScript": ("p.ts", "import { Model } from 'inferlet';\nexport const main = () => Model.load('default').name;\n"),
    "a function that is exported by name": ("p.js", "export const fetch = () => new Response('');\n"),
}


def project(folder: Path, file: str, text: str) -> tuple[Project, Source]:
    (folder / file).write_text(text, encoding="utf-8")
    opened = open_project(folder / file)
    assert isinstance(opened.source, Source)
    return opened, opened.source


@pytest.mark.parametrize("name", ANSWERING)
def test_what_may_answer_is_served(tmp_path: Path, name: str) -> None:
    check_answers(*project(tmp_path, *ANSWERING[name]))


@pytest.mark.parametrize("name", SILENT)
def test_what_has_nothing_to_answer_with_is_refused_with_what_to_write(tmp_path: Path, name: str) -> None:
    file, text = SILENT[name]
    with pytest.raises(PieError) as caught:
        check_answers(*project(tmp_path, file, text))
    assert caught.value.code == "invalid-program"
    assert (
        "async def fetch(request: Request)" if file.endswith(".py") else "export default { async fetch(request)"
    ) in caught.value.message


def test_a_component_says_by_its_imports_and_exports_whether_it_answers(tmp_path: Path) -> None:
    path = tmp_path / "p.wasm"
    for name in (b"pie:core/http-server@0.1.0", b"wasi:http/incoming-handler@0.2.0"):
        # Where the name stands does not matter; a section of one's own may be called so.
        component = Component(path, content=HEADER + bytes([0, len(name) + 1, len(name)]) + name)
        check_answers(Project(path, tmp_path, component, None), component)
    component = Component(path, content=HEADER)
    with pytest.raises(PieError, match=r"the component 'p' answers no requests by HTTP; in Rust have `main` call") as caught:
        check_answers(Project(path, tmp_path, component, None), component)
    assert caught.value.code == "invalid-program"
