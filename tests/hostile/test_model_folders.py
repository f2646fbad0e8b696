"""A model folder is refused with `invalid-model`, or a conversation with `template-error`; the engine lives and takes
no more than a little.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from hostile.model_folders import HARMLESS, MESSAGES, SERVED, STRANGE, STRANGE_FILES, TEMPLATES, TOKENIZERS
from pie.config import EMBEDDED_FOLDER
from pie.errors import PieError
from pie.models.safetensors import read_tensors

MOST_BYTES = 256 << 20
"""Above what the engine took before, for one folder."""
PATIENCE_S = 300
"""A guard: a child that hangs is ended. All folders together take some seconds."""
TESTS = Path(__file__).resolve().parents[1]


def make(folder: Path, files: dict[str, str | bytes]) -> Path:
    """A folder of the embedded model with other files; its weights are not needed."""
    folder.mkdir()
    for name in ("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"):
        shutil.copy(EMBEDDED_FOLDER / name, folder / name)
    for name, content in files.items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def serve(folders: Iterable[Path]) -> dict[str, tuple[str, int]]:
    """What became of each folder, and how many bytes it took, in one engine of its own."""
    names = [str(folder) for folder in folders]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])}
    child = subprocess.run(
        [sys.executable, "-m", "hostile.serving_folders", *names],
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    lines = [json.loads(line) for line in child.stdout.splitlines()]
    became = {line["name"]: (line["said"], line["n_bytes"]) for line in lines}
    asked = [Path(name).name for name in names]
    missing = [name for name in [*asked, "default"] if name not in became]
    assert not missing, f"the engine ended ({child.returncode}) at {missing[0]}: {child.stderr[-2000:]}"
    assert child.returncode == 0, child.stderr[-2000:]
    return became


def check(names: dict[str, str], became: dict[str, tuple[str, int]], codes: set[str]) -> None:
    """Each is refused by one of these codes, within the bound of memory."""
    wrong = {name: became[key][0] for key, name in names.items() if became[key][0].split(":")[0] not in codes}
    assert not wrong
    large = {name: became[key][1] for key, name in names.items() if became[key][1] > MOST_BYTES}
    assert not large


def test_templates_end_with_an_error_of_their_own(tmp_path: Path) -> None:
    names = {f"t{place}": name for place, name in enumerate(TEMPLATES)}
    folders = [make(tmp_path / key, {"chat_template.jinja": TEMPLATES[name] + MESSAGES}) for key, name in names.items()]
    # One engine holds no more than 64 models.
    became = serve(folders[:50]) | serve(folders[50:])
    assert int(became["default"][0]) > 0
    # What is nested or walked without harm is served, such as a chain as long as may be.
    harmless = {"as many elif as there may be", "as many not as there may be", "slices of slices"}
    check({key: name for key, name in names.items() if name not in harmless}, became, {"template-error"})
    check({key: name for key, name in names.items() if name in harmless}, became, {"template-error", "served"})


def test_templates_that_look_alike_are_served(tmp_path: Path) -> None:
    names = {f"s{place}": name for place, name in enumerate(SERVED)}
    folders = [make(tmp_path / key, {"chat_template.jinja": SERVED[name]}) for key, name in names.items()]
    check(names, serve(folders), {"served"})


def test_tokenizers_are_refused(tmp_path: Path) -> None:
    plain = json.loads((EMBEDDED_FOLDER / "tokenizer.json").read_text(encoding="utf-8"))
    cases = TOKENIZERS | HARMLESS
    names = {f"k{place}": name for place, name in enumerate(cases)}
    folders = []
    for key, name in names.items():
        content = cases[name](dict(plain))
        folders.append(make(tmp_path / key, {"tokenizer.json": json.dumps(content) if isinstance(content, dict) else content}))
    became = serve(folders)
    check({key: name for key, name in names.items() if name in TOKENIZERS}, became, {"invalid-model"})
    check({key: name for key, name in names.items() if name in HARMLESS}, became, {"invalid-model", "context-full", "served"})


def test_files_that_are_no_files_are_refused(tmp_path: Path) -> None:
    names, folders = {}, []
    for place, (file, kind) in enumerate((file, kind) for file in STRANGE_FILES for kind in STRANGE):
        folder = make(tmp_path / f"f{place}", {})
        (folder / file).unlink(missing_ok=True)
        STRANGE[kind](folder / file)
        names[folder.name] = f"{file} is a {kind}"
        folders.append(folder)
    became = serve(folders)
    check(names, became, {"invalid-model"})
    for key, name in names.items():
        assert name.split(" ", maxsplit=1)[0] in became[key][0]


def tensors(*places: tuple[str, int, int], n_bytes: int) -> bytes:
    """A file of tensors at these places."""
    entries = {name: {"dtype": "F32", "shape": [(end - start) // 4], "data_offsets": [start, end]} for name, start, end in places}
    header = json.dumps(entries).encode()
    return len(header).to_bytes(8, "little") + header + bytes(n_bytes)


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (tensors(("a", 0, 8), ("b", 8, 16), n_bytes=24), "behind b"),
        (tensors(("a", 0, 8), ("b", 12, 20), n_bytes=20), "gap"),
        (tensors(("a", 4, 12), n_bytes=12), "gap"),
        (tensors(("a", 0, 8), ("b", 4, 12), n_bytes=12), "overlaps"),
        (tensors(("a", 0, 8), ("b", 0, 8), n_bytes=8), "overlaps"),
        (tensors(*[(f"t{place}", 4 * place, 4 * place + 4) for place in range(65_537)], n_bytes=262_148), "65537 tensors"),
        ((9 << 20).to_bytes(8, "little") + bytes(10 << 20), "header"),
    ],
    ids=["trailing", "a gap", "a shift", "overlapping", "the same place", "many tensors", "a large header"],
)
def test_weights_that_do_not_fill_their_file_are_refused(tmp_path: Path, content: bytes, word: str) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    with pytest.raises(PieError, match=word) as refused:
        read_tensors(path)
    assert refused.value.code == "invalid-model"
    assert str(path) in refused.value.message


def test_weights_that_fill_their_file_are_read(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(tensors(("b", 8, 16), ("none", 8, 8), ("a", 0, 8), n_bytes=16))
    assert sorted(read_tensors(path)) == ["a", "b", "none"]
