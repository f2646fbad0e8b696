"""Several models in one engine: each with a driver of its own, found by name from all three languages, the first the
default.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pie.config import Config, Flags, load
from pie.engine import Engine
from pie.errors import PieError
from support.command import pie
from support.engines import started
from support.launching import LANGUAGES, finish, load_interpreter, python_source, run

FILE = """
[[model]]
name = "tiny"
path = "pie-tiny"

[[model]]
name = "hashes"
path = "pie-tiny"
driver = "dummy"
page_size = 8
"""


def configured(folder: Path, text: str, *chosen: str) -> Config:
    file = folder / "pie.toml"
    file.write_text(text)
    return load(Flags(file=file, models=chosen), variables={})


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with started(Engine.from_config(configured(tmp_path_factory.mktemp("both"), FILE))) as engine:
        yield engine


@pytest.fixture(scope="module", params=["tiny", "hashes"])
def alone(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """One of the two, served alone."""
    with started(Engine.from_config(configured(tmp_path_factory.mktemp("alone"), FILE, request.param))) as engine:
        yield engine


def transcript(engine: Engine, language: str, models: list[str | None]) -> list[Any]:
    """Sixteen tokens of each model, all at once; then the names, and the page sizes in the order of the contexts."""
    ops: list[dict[str, Any]] = [{"op": "context", "as": f"c{n}", **({"model": name} if name else {})} for n, name in enumerate(models)]
    for n in range(len(models)):
        ops.append({"op": "user", "ctx": f"c{n}", "text": "Hello!"})
        ops.append({"op": "generate", "ctx": f"c{n}", "as": f"g{n}", "sampler": {"kind": "argmax"}, "max_tokens": 16})
    ops.append({"op": "all", "ops": [[{"op": "collect_tokens", "gen": f"g{n}"}] for n in range(len(models))]})
    ops += [{"op": "models"}, *({"op": "page_size", "ctx": f"c{n}"} for n in range(len(models)))]
    outcome = run(engine, load_interpreter(language), {"ops": ops}, seed=1)
    assert outcome.code is None, outcome.message
    return outcome.value[3 * len(models) :]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_program_uses_both_models_at_once(engine: Engine, language: str) -> None:
    tokens, names, *page_sizes = transcript(engine, language, ["hashes", "tiny", None, "default"])
    assert names == ["tiny", "hashes"]
    assert page_sizes == [8, 16, 16, 16]
    hashed, first, *others = tokens
    assert others == [first, first]
    assert hashed != first


SAYS = """
from inferlet import Context, Model, Sampler, messaging


async def main(input):
    with Context(Model.load(input["model"])) as ctx:
        said = await ctx.user("Hello!").generate(Sampler.argmax(), max_tokens=4, ignore_eos=True).collect_tokens()
    if input["says"]:
        heard = await messaging.pull("heard")
        messaging.broadcast("told", input["model"])
        messaging.push("said", input["model"])
        return heard
    with messaging.subscribe("told") as told:
        messaging.push("heard", input["model"])
        return [await messaging.pull("said"), told.try_next(), len(said)]
"""


def test_programs_of_two_models_share_topics(engine: Engine) -> None:
    program = python_source(SAYS)
    for model, other in (("hashes", "tiny"), ("tiny", "hashes")):
        saying = engine.launch(program, input={"model": model, "says": True})
        hearing = engine.launch(program, input={"model": other, "says": False})
        heard = finish(hearing)
        assert heard.value == [model, model, 4], heard.message
        assert finish(saying).value == other


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_model_beside_another_answers_as_alone(engine: Engine, alone: Engine, language: str) -> None:
    (name,) = (model.name for model in alone.models)
    beside, *_ = transcript(engine, language, ["tiny", "hashes", name])
    (expected,), names, _ = transcript(alone, language, [None])
    assert names == [name]
    assert beside[2] == expected


@pytest.mark.rows("JS-014 PY-011 RS-026")
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_model_that_there_is_not(engine: Engine, language: str) -> None:
    outcome = run(engine, load_interpreter(language), {"ops": [{"op": "context", "as": "c", "model": "third"}]})
    assert outcome.value == [{"error": "unknown-model"}]


MISTAKES = {
    "a folder that is not there": (
        "[model.a]\npath = 'absent'",
        "invalid-model",
        ["model 'a' (", "pie.toml:2 model.a.path", "absent/config.json: cannot be read", "Hugging Face"],
    ),
    "a folder of another kind": ("[model.a]\npath = '.'", "invalid-model", ["config.json"]),
    "the name of the first, which means another": (
        FILE.replace("hashes", "default"),
        "invalid-config",
        ["model 'default'", "default means the first one"],
    ),
    "more memory than there is": (
        "[model.a]\npath='pie-tiny'\nkv_bytes='200TiB'\n[model.b]\npath='pie-tiny'",
        "invalid-config",
        ["need at least", "'a' 204800.", "'b' 0.2", "GiB", "lower model.NAME.kv_bytes"],
    ),
    "less than a page": (
        "[model.a]\npath='pie-tiny'\nkv_bytes=1024",
        "invalid-config",
        [
            "pie.toml:3: model.a.kv_bytes is not possible: kv_bytes is 1024; one page of 16 tokens needs 65536 bytes: give at least 65536",
        ],
    ),
    "less than a large page": (
        "[model.a]\npath='pie-tiny'\nkv_bytes=1048576\npage_size=1024",
        "invalid-config",
        ["pie.toml:3: model.a.kv_bytes", "one page of 1024 tokens needs 4194304 bytes: give at least 4194304"],
    ),
    "pages that are no tokens": ("[model.a]\npath='pie-tiny'\npage_size=0", "invalid-config", ["model.a.page_size = 0", "from 1 to 1024"]),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_models_that_cannot_be_served(name: str, tmp_path: Path) -> None:
    text, code, words = MISTAKES[name]
    with pytest.raises(PieError) as caught:
        Engine.from_config(configured(tmp_path, text))
    assert caught.value.code == code
    for word in words:
        assert word in caught.value.message


def test_what_does_not_fit_says_so_before_anything_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text("def main(input):\n    return 1\n")
    (tmp_path / "pie.toml").write_text("[model.pie-tiny]\nkv_bytes = '300TiB'\n")
    done = pie("run", "p.py", "--config", "pie.toml", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error[invalid-config]: the models need at least 307200.")
    # The dummy driver keeps no keys and values.
    assert pie("run", "p.py", "--config", "pie.toml", "--dummy", cwd=tmp_path).stdout == "1\n"


def test_run_chooses_a_model_of_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text("from inferlet import runtime\ndef main(input):\n    return runtime.models()\n")
    (tmp_path / "pie.toml").write_text(FILE)
    chosen = [
        pie("run", "p.py", "--config", "pie.toml", *flags, cwd=tmp_path).stdout
        for flags in ([], ["--model", "hashes"], ["--model", "hashes", "--model", "tiny"])
    ]
    assert chosen == ['["tiny","hashes"]\n', '["hashes"]\n', '["hashes","tiny"]\n']


def test_a_quota_of_a_process_is_set(tmp_path: Path) -> None:
    text = "[model.a]\npath = 'pie-tiny'\ndriver = 'dummy'\nmax_contexts = 8\nmax_process_contexts = 3\n"
    ops = [{"op": "context", "as": f"c{n}"} for n in range(4)]
    with started(Engine.from_config(configured(tmp_path, text))) as engine:
        assert run(engine, load_interpreter("python"), {"ops": ops}).value == [None, None, None, {"error": "limit-resources"}]
