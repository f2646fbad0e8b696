"""Where the model's own end is another token than that of its chat template, a generation stops at the template's
too.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pie.config import EMBEDDED_FOLDER
from pie.engine import Engine
from support.engines import started
from support.launching import LANGUAGES, load_interpreter, run

END_OF_TURN, END_OF_TEXT = 4087, 4085
# By this seed the model says the end of the turn as its 58th token.
N_TOKENS = 58


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """The dummy driver, with the embedded tokenizer and template; the model ends with the end of the text alone."""
    folder: Path = tmp_path_factory.mktemp("models") / "m"
    shutil.copytree(EMBEDDED_FOLDER, folder)
    for name in ("config.json", "generation_config.json"):
        config = json.loads((folder / name).read_text())
        (folder / name).write_text(json.dumps(config | {"eos_token_id": END_OF_TEXT}))
    engine = Engine()
    engine.add_model(folder, dummy=True)
    with started(engine):
        yield engine


def generated(engine: Engine, language: str, **options: Any) -> list[int]:
    """What is generated with these options, of at most 80 tokens."""
    sampler = {"kind": "multinomial", "temperature": 1.0, "draws": 1}
    ops = [
        {"op": "context", "as": "c"},
        {"op": "append", "ctx": "c", "tokens": [41, 42]},
        {"op": "generate", "ctx": "c", "as": "g", "sampler": sampler, "seed": 0, "max_tokens": 80} | options,
        {"op": "collect_tokens", "gen": "g"},
    ]
    outcome = run(engine, load_interpreter(language), {"ops": ops})
    assert outcome.code is None, outcome.message
    tokens: list[int] = outcome.value[-1]
    return tokens


@pytest.mark.rows("JS-050 JS-058 PY-047 PY-055 RS-069")
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_generation_stops_at_the_end_of_the_turn(engine: Engine, language: str) -> None:
    endless = generated(engine, language, ignore_eos=True)
    assert (len(endless), endless.index(END_OF_TURN)) == (80, N_TOKENS - 1)
    assert generated(engine, language) == endless[:N_TOKENS]
    assert generated(engine, language, stop=[endless[70]]) == endless[:N_TOKENS]


@pytest.mark.rows("JS-058 PY-055")
@pytest.mark.parametrize("language", ["python", "typescript"])
def test_without_auto_flush_it_does_not(engine: Engine, language: str) -> None:
    assert generated(engine, language, auto_flush=False) == generated(engine, language, ignore_eos=True)
