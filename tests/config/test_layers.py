"""Which layer a value comes from, and what it then is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from pie import _engine
from pie.config import Config, Flags, config_file, load, own_file


def at(config: Config, key: str) -> Any:
    """The value of a setting by its name."""
    section, _, name = key.partition(".")
    if section == "limits":
        return config.limits[name]
    if section == "model":
        model, _, name = name.rpartition(".")
        return getattr({model.name: model for model in config.models}[model], name)
    return getattr(getattr(config, section), name)


def written(folder: Path, text: str) -> Path:
    path = folder / "pie.toml"
    path.write_text(text, encoding="utf-8")
    return path


class Case(NamedTuple):
    key: str
    value: Any
    origin: str
    file: str = ""
    variables: Mapping[str, str] = MappingProxyType({})
    flags: Mapping[str, Any] = MappingProxyType({})


LAYERS = [
    Case("server.port", 8080, "default"),
    Case("server.port", 1, "pie.toml:2 server.port", "[server]\nport = 1"),
    Case("server.port", 2, "PIE_SERVER__PORT", "[server]\nport = 1", {"PIE_SERVER__PORT": "2"}),
    Case("server.port", 3, "--port", "[server]\nport = 1", {"PIE_SERVER__PORT": "2"}, {"values": {"server.port": 3}}),
    Case("server.port", 2, "PIE_SERVER__PORT", "", {"PIE_SERVER__PORT": "2"}, {"values": {"server.port": None}}),
    Case("limits.cpu_s", 300.0, "default"),
    Case("limits.wall_s", None, "default"),
    Case("limits.cpu_s", 1.5, "pie.toml:3 limits.cpu_s", "[limits]\n# seconds\ncpu_s = 1.5"),
    Case("limits.cpu_s", None, "pie.toml:2 limits.cpu_s", '[limits]\ncpu_s = "none"'),
    Case("limits.cpu_s", None, "--limit", "", {}, {"limits": ("cpu_s=none",)}),
    Case("limits.cpu_s", 60.0, "--limit", "", {"PIE_LIMITS__CPU_S": "7"}, {"limits": ("limits.cpu_s=60",)}),
    Case("limits.cpu_s", 2.0, "--limit", "", {}, {"limits": ("cpu_s=1", "cpu_s=2")}),
    Case("limits.memory_bytes", 1_000_000_000, "--limit", "", {}, {"limits": ("memory_bytes=1e9",)}),
    Case("limits.memory_bytes", 512 << 20, "PIE_LIMITS__MEMORY_BYTES", "", {"PIE_LIMITS__MEMORY_BYTES": "512MiB"}),
    Case("limits.memory_bytes", 1_500_000_000, "pie.toml:2 limits.memory_bytes", '[limits]\nmemory_bytes = "1.5 GB"'),
    Case("engine.worker_threads", 7, "pie.toml engine.worker_threads", "engine = { worker_threads = 7 }"),
    Case("server.allowed_origins", ("http://a", "http://b"), "pie.toml:2 server.allowed_origins", "[server]\nallowed_origins = ['http://a', 'http://b']"),
    Case("server.allowed_origins", ("http://a", "http://b"), "PIE_SERVER__ALLOWED_ORIGINS", "", {"PIE_SERVER__ALLOWED_ORIGINS": "http://a, http://b"}),
    Case("server.allowed_origins", (), "PIE_SERVER__ALLOWED_ORIGINS", "", {"PIE_SERVER__ALLOWED_ORIGINS": ""}),
    Case("client.user", "$HOME {x} %s ~", "PIE_CLIENT__USER", "", {"PIE_CLIENT__USER": "$HOME {x} %s ~"}),
    Case("client.user", "7", "PIE_CLIENT__USER", "", {"PIE_CLIENT__USER": "7"}),
    Case("model.pie-tiny.driver", "cpu", "default"),
    Case("model.pie-tiny.driver", "dummy", "--dummy", "", {}, {"dummy": True}),
    Case("model.pie-tiny.kv_bytes", 1 << 20, "PIE_MODEL__PIE_TINY__KV_BYTES", "", {"PIE_MODEL__PIE_TINY__KV_BYTES": "1MiB"}),
    Case("model.a.page_size", 8, "pie.toml:3 model.a.page_size", "[model.a]\npath = 'pie-tiny'\npage_size = 8"),
    Case("model.a.page_size", 8, "pie.toml:4 model.page_size", "[[model]]\nname = 'a'\npath = 'pie-tiny'\npage_size = 8"),
    Case("model.b.page_size", 9, "pie.toml:8 model.page_size", "[[model]]\nname='a'\npath='pie-tiny'\npage_size=8\n[[model]]\nname='b'\npath='pie-tiny'\npage_size=9"),
    Case("model.a.page_size", 4, "PIE_MODEL__A__PAGE_SIZE", "[model.a]\npath = 'pie-tiny'\npage_size = 8", {"PIE_MODEL__A__PAGE_SIZE": "4"}),
    Case("model.Org/x-1.5.driver", "dummy", "PIE_MODEL__ORG_X_1_5__DRIVER", "[model.'Org/x-1.5']\npath = 'pie-tiny'", {"PIE_MODEL__ORG_X_1_5__DRIVER": "dummy"}),
]  # fmt: skip


@pytest.mark.parametrize("case", LAYERS, ids=[f"{case.key} from {case.origin}" for case in LAYERS])
def test_the_later_layer_wins_and_says_so(case: Case, tmp_path: Path) -> None:
    config = load(Flags(file=written(tmp_path, case.file), **case.flags), variables=case.variables)
    value = at(config, case.key)
    assert value == case.value
    assert type(value) is type(case.value)
    assert str(config.origins[case.key]).removeprefix(f"{tmp_path}/") == case.origin


@pytest.mark.parametrize(("text", "value"), [("false", False), ("True", True)])
def test_what_is_true_or_false_is_written_so_in_the_environment(text: str, value: bool) -> None:
    config = load(variables={"PIE_MODEL__PIE_TINY__RUN_AHEAD": text})
    assert config.models[0].run_ahead is value


def test_the_file_is_the_flags_then_the_variables_then_the_users_own(tmp_path: Path, home: Path) -> None:
    assert load(variables={}).file is None
    (home / ".pie").mkdir()
    files = {name: tmp_path / f"{name}.toml" for name in ("flag", "variable")}
    files["own"] = home / ".pie/config.toml"
    for port, path in enumerate(files.values(), 1):
        path.write_text(f"[server]\nport = {port}")
    assert load(variables={}).server.port == 3
    assert load(variables={"PIE_CONFIG": str(files["variable"])}).server.port == 2
    both = load(Flags(file=files["flag"]), variables={"PIE_CONFIG": str(files["variable"])})
    assert (both.server.port, both.file) == (1, files["flag"])


def test_the_environment_is_that_of_the_process_unless_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIE_SERVER__PORT", "77")
    assert load().server.port == 77
    assert load(variables={}).server.port == 8080


@pytest.mark.parametrize(
    "variable",
    ["PATH", "PIE_EXECUTOR", "PIE_HOME", "PIEX_SERVER__PORT", "SERVER__PORT", "PIE_", "PIE_SERVER_PORT", "PIE_SERVER_SERVICE_HOST"],
)
def test_variables_of_others_are_let_be(variable: str) -> None:
    """Also those that Kubernetes makes for a service that is called pie-server."""
    assert load(variables={variable: "tcp://10.0.0.1:8080"}) == load(variables={})


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", ["pie-tiny"]),
        ("[model.b]\npath='pie-tiny'\n[model.a]\npath='pie-tiny'", ["b", "a"]),
        ("[[model]]\nname='b'\npath='pie-tiny'\n[[model]]\nname='a'\npath='pie-tiny'", ["b", "a"]),
        ("[model.pie-tiny]\nkv_bytes = 65536", ["pie-tiny"]),
        ("[[model]]\nname = 'pie-tiny'", ["pie-tiny"]),
    ],
)
def test_models_stay_in_the_order_of_the_file(text: str, names: list[str], tmp_path: Path) -> None:
    assert [model.name for model in load(Flags(file=written(tmp_path, text)), variables={}).models] == names


def test_both_shapes_of_a_model_are_the_same(tmp_path: Path) -> None:
    table = load(Flags(file=written(tmp_path, "[model.a]\npath = 'pie-tiny'\ndriver = 'dummy'")), variables={})
    array = load(Flags(file=written(tmp_path, "[[model]]\ndriver = 'dummy'\nname = 'a'\npath = 'pie-tiny'")), variables={})
    assert table == array


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (("b",), [("b", 2)]),
        (("b", "a"), [("b", 2), ("a", 1)]),
        (("pie-tiny",), [("pie-tiny", 16)]),
        (("{folder}",), [("My-model-1.5", 16)]),
        (("{folder}", "a"), [("My-model-1.5", 16), ("a", 1)]),
    ],
)
def test_the_flag_chooses_models_by_name_or_folder(wanted: tuple[str, ...], expected: list[tuple[str, int]], tmp_path: Path) -> None:
    folder = tmp_path / "My model_1.5"
    folder.mkdir()
    file = written(tmp_path, "[model.a]\npath='pie-tiny'\npage_size=1\n[model.b]\npath='pie-tiny'\npage_size=2")
    config = load(Flags(file=file, models=[text.format(folder=folder) for text in wanted]), variables={})
    assert [(model.name, model.page_size) for model in config.models] == expected
    made = config.models[0].name == "My-model-1.5"
    assert not made or config.models[0].folder == folder
    assert str(config.origins[f"model.{config.models[0].name}.path"]).startswith(
        "--model" if made or wanted == ("pie-tiny",) else str(file)
    )


@pytest.mark.parametrize(
    ("written_as", "read_as"),
    [("~/x", "{home}/x"), ("~", "{home}"), ("x/y", "{folder}/x/y"), ("/x", "/x"), ("$HOME/x", "{folder}/$HOME/x"), ("a~", "{folder}/a~")],
)
def test_paths_of_a_file_begin_at_its_folder(written_as: str, read_as: str, tmp_path: Path, home: Path) -> None:
    file = written(tmp_path, f"[engine]\ncache_dir = '{written_as}'\n[model.m]\npath = '{written_as}'")
    config = load(Flags(file=file), variables={})
    expected = read_as.format(home=home, folder=tmp_path)
    assert str(config.engine.cache_dir) == expected
    assert config.models[0].path == expected


def test_the_folders_of_the_user_are_the_defaults(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = load(variables={}).engine
    assert (engine.data_dir, engine.cache_dir) == (home / ".pie", home / ".cache/pie")
    monkeypatch.setenv("XDG_CACHE_HOME", "/elsewhere")
    assert load(variables={}).engine.cache_dir == Path("/elsewhere/pie")


def test_the_file_of_the_user_is_where_the_user_wants_configuration(home: Path, tmp_path: Path) -> None:
    variables = {"XDG_CONFIG_HOME": str(tmp_path / "wanted")}
    usual, wanted = home / ".pie/config.toml", tmp_path / "wanted/pie/config.toml"
    assert own_file({}) == usual
    assert own_file({"XDG_CONFIG_HOME": "relative"}) == usual
    assert own_file(variables) == wanted
    assert config_file(Flags(), variables) is None
    for port, path in ((1, usual), (2, wanted)):
        path.parent.mkdir(parents=True)
        path.write_text(f"[server]\nport = {port}\n", encoding="utf-8")
        assert config_file(Flags(), variables) == path
        assert load(variables=variables).server.port == port
    assert load(variables={}).server.port == 1
    assert config_file(Flags(), {**variables, "PIE_CONFIG": "named.toml"}) == Path("named.toml")


def test_every_limit_of_the_engine_is_there_with_its_default() -> None:
    assert dict(load(variables={}).limits) == {setting.name: setting.default for setting in _engine.settings()["limits"]}
    _engine.Engine(limits=dict(load(variables={}).limits))


def test_the_tree_is_frozen() -> None:
    config = load(variables={})
    for change in ("config.models = ()", "config.server.port = 1", "config.limits['cpu_s'] = 1", "config.models[0].name = 'x'"):
        with pytest.raises((AttributeError, TypeError)):
            exec(change, {"config": config})
