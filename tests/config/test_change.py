"""Changing a setting in a file: its line, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from pie.config import Flags, load
from pie.config.change import change_setting
from pie.errors import PieError

WRITTEN = """# mine
[server]
port = 1 # chosen by dice
allowed_origins = [
  "http://a",
  "http://b" ]

[[model]]
name = "one"
path = "pie-tiny"

[[model]]
name = "two"
path = "pie-tiny"
"""


def changed(path: Path, name: str, text: str) -> str:
    change_setting(path, name, text)
    return path.read_text()


def test_a_file_that_is_missing_is_made_for_its_user_alone(tmp_path: Path) -> None:
    path = tmp_path / "made" / "config.toml"
    assert changed(path, "server.port", "8081") == "[server]\nport = 8081\n"
    assert path.stat().st_mode & 0o777 == 0o600
    assert changed(path, "limits.cpu_s", "none") == '[server]\nport = 8081\n\n[limits]\ncpu_s = "none"\n'
    assert changed(path, "server.port", "8082").startswith("[server]\nport = 8082\n")
    config = load(Flags(file=path), variables={})
    assert (config.server.port, config.limits["cpu_s"]) == (8082, None)
    assert [one.name for one in path.parent.iterdir()] == ["config.toml"]


def test_all_else_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(WRITTEN)
    path.chmod(0o640)
    origins = 'allowed_origins = [\n  "http://a",\n  "http://b" ]'
    assert changed(path, "server.allowed_origins", "http://c,http://d") == WRITTEN.replace(
        origins, 'allowed_origins = ["http://c", "http://d"]'
    )
    path.write_text(WRITTEN)
    assert changed(path, "model.two.kv_bytes", "1GiB") == WRITTEN.replace(
        '[[model]]\nname = "two"', '[[model]]\nkv_bytes = 1073741824\nname = "two"'
    )
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_path_is_one_of_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "elsewhere" / "config.toml"
    assert changed(path, "engine.data_dir", "data") == f'[engine]\ndata_dir = "{tmp_path}/data"\n'


@pytest.mark.parametrize(
    ("written", "name", "text", "said"),
    [
        ("", "server.prt", "1", "there is no setting 'prt' in [server]; did you mean 'port'?"),
        ("", "sever.port", "1", "there is no section 'sever'; did you mean 'server'?"),
        ("", "port", "1", "there is no section 'port'"),
        ("", "server.port", "http", "server.port = 'http' is not possible; give a whole number from 0 to 65535"),
        ("", "model.kv_bytes", "1", "'model.kv_bytes' names no model; write it as model.NAME.kv_bytes"),
        ("", "model.other.kv_bytes", "1GiB", "the model 'other' has no path"),
        (WRITTEN, "model.three.kv_bytes", "1GiB", "has no [[model]] with name = 'three'"),
        ("server = {port = 1}\n", "server.port", "2", "'port = 2' was not written, for the configuration would not be valid"),
        ("server.port = 1\n", "server.port", "2", "'port = 2' was not written"),
        ("[server\n", "server.port", "2", "the file is not TOML"),
        ("client = 'x'\n", "client.key", "secret", "key was not written"),
    ],
)
def test_what_cannot_be_set_leaves_the_file_alone(tmp_path: Path, written: str, name: str, text: str, said: str) -> None:
    path = tmp_path / "config.toml"
    path.write_text(written)
    with pytest.raises(PieError) as refused:
        change_setting(path, name, text)
    assert refused.value.code == "invalid-config"
    assert said in refused.value.message
    assert "secret" not in refused.value.message
    assert path.read_text() == written
