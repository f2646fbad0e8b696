"""Options of a back end belong to it: on another one they are an error."""

from __future__ import annotations

from pathlib import Path

import pytest

from pie.config import Flags, load
from pie.engine import Engine
from pie.errors import PieError


def written(folder: Path, text: str) -> Path:
    path = folder / "config.toml"
    path.write_text(text)
    return path


@pytest.mark.parametrize("isolate", [False, True])
@pytest.mark.parametrize(
    ("driver", "option"),
    [("reference", 'isa = "avx2"'), ("reference", "n_threads = 2"), ("dummy", "n_threads = 2"), ("reference", "graph_seqs = 4")],
)
def test_an_option_of_another_back_end_is_named_with_the_line(tmp_path: Path, driver: str, option: str, *, isolate: bool) -> None:
    text = f'[model.pie-tiny]\ndriver = "{driver}"\nisolate = {str(isolate).lower()}\nkv_bytes = "16MiB"\n{option}\n'
    path = written(tmp_path, text)
    name = option.split(" ", maxsplit=1)[0]
    with pytest.raises(PieError) as error:
        Engine.from_config(load(Flags(file=path), variables={}))
    assert error.value.code == "invalid-config"
    assert error.value.message == (
        f"{path}:5: model.pie-tiny.{name} is not possible: the back end {driver} has no option {name}: it has none of its own; "
        f"leave {name} out"
    )


def test_the_dummy_flag_leaves_out_what_belongs_to_the_back_end(tmp_path: Path) -> None:
    path = written(tmp_path, '[model.pie-tiny]\nn_threads = 2\nisa = "avx2"\nkv_bytes = "16MiB"\n')
    [model] = load(Flags(file=path, dummy=True), variables={}).models
    assert (model.driver, model.n_threads, model.isa, model.kv_bytes) == ("dummy", 0, "auto", 16 << 20)
    with Engine.from_config(load(Flags(file=path, dummy=True), variables={})) as engine:
        assert engine.models[0].name == "pie-tiny"
