"""What `pie config` prints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pie.config import Flags, load, show
from support.command import pie

FILE = """
[engine]
cache_dir = "a b # c/\\u00fc\\u007f"
[limits]
cpu_s = "none"
memory_bytes = "300MiB"
[server]
allowed_origins = ["http://a", 'x"y']
grace_s = 1
[client]
user = "a\\tb\\\\ # no comment"
[[model]]
name = "Org/x-1.5"
path = "pie-tiny"
driver = "dummy"
[[model]]
name = "second"
path = "~/models/second"
hold_s = 1e-7
"""


@pytest.mark.parametrize("text", ["", FILE])
def test_what_is_shown_is_a_file_that_makes_the_same(text: str, tmp_path: Path) -> None:
    first, second = tmp_path / "first.toml", tmp_path / "second.toml"
    first.write_text(text)
    config = load(Flags(file=first, limits=("wall_s=5",)), variables={"PIE_SERVER__PORT": "1"})
    second.write_text(show.as_toml(config), encoding="utf-8")
    assert load(Flags(file=second), variables={}) == config


def test_every_value_has_its_origin_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "pie.toml"
    file.write_text("[server]\nport = 1\n[[model]]\nname = 'm'\npath = 'pie-tiny'\n")
    done = pie("config", "show", "--config", str(file), "--dummy", "--limit", "cpu_s=4")
    assert done.returncode == 0, done.stderr
    rows = dict(line.split("#", 1) for line in done.stdout.splitlines() if "#" in line)
    shown = {row.strip(): origin.strip() for row, origin in rows.items()}
    assert shown["port = 1"] == f"{file}:2 server.port"
    assert shown["cpu_s = 4.0"] == "--limit"
    assert shown['driver = "dummy"'] == "--dummy"
    assert shown['wall_s = "none"'] == "default"
    assert shown['path = "pie-tiny"'] == f"{file}:5 model.path"
    assert all(shown.values())
    assert "[[model]]" in done.stdout


def test_the_same_as_json(tmp_path: Path) -> None:
    file = tmp_path / "pie.toml"
    file.write_text("[server]\nport = 1\n")
    shown = json.loads(pie("config", "show", "--config", str(file), "--json").stdout)
    assert shown["server"]["port"] == {"value": 1, "origin": {"kind": "file", "where": f"{file}:2", "key": "server.port"}}
    assert shown["limits"]["wall_s"] == {"value": None, "origin": {"kind": "default"}}
    assert shown["model"][0]["name"]["value"] == "pie-tiny"
    assert set(shown) == {"engine", "limits", "runtime", "snapshots", "server", "client", "model"}


def test_the_path_of_the_file(tmp_path: Path, home: Path) -> None:
    assert pie("config", "path").stdout == f"{home}/.pie/config.toml\n"
    assert pie("config", "path", "--config", str(tmp_path / "x")).stdout == f"{tmp_path}/x\n"


def test_a_terminal_that_cannot_show_a_path_ends_no_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    done = pie("config", "path", "--config", "für.toml")
    assert (done.returncode, done.stdout, done.stderr) == (0, "f?r.toml\n", "")


def test_a_mistake_ends_the_command_with_one_line(tmp_path: Path) -> None:
    file = tmp_path / "pie.toml"
    file.write_text("[server]\nprot = 1\n")
    for command in (["config", "show"], ["run", "absent.py"]):
        done = pie(*command, "--config", str(file))
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.count("\n") == 1
    assert pie("config", "show", "--config", str(file)).stderr.startswith(f"error[invalid-config]: {file}:2 server.prot: ")
