"""Options of a back end belong to it: on another one they are an error."""

from __future__ import annotations

import dataclasses
from importlib import import_module
from pathlib import Path

import pytest

from pie.backends import BACKENDS
from pie.backends.base import DriverOptions
from pie.config import Flags, load
from pie.config.settings import settings
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


@pytest.mark.parametrize("driver", BACKENDS)
def test_an_option_has_the_default_of_its_setting(driver: str) -> None:
    """Who opens a back end by itself gets what who configures it gets. None stands for a setting of 0 or `auto`."""
    kind: type[DriverOptions] = import_module(f"pie.backends.{driver}").OPTIONS
    rows, fields = settings()["model"], {field.name: field.default for field in dataclasses.fields(kind)}
    differ = {
        name: (default, rows[name].default)
        for name, default in fields.items()
        if name in rows and default != rows[name].default and not (default is None and rows[name].default in (0, "auto"))
    }
    assert differ == {}
    own = fields.keys() - {field.name for field in dataclasses.fields(DriverOptions)}
    # Where the kernels lie is for those who build them.
    assert own - {"library"} == {row.name for row in rows.values() if row.driver == driver}
    assert fields.keys() - own <= rows.keys()
