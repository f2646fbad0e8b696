"""`[mcp.NAME]`: the MCP servers of a configuration."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pie.config import Config, Flags, load
from pie.config.show import as_json, as_toml
from pie.errors import PieError

FILE = """
[mcp.files]
command = ["python", "server.py"]
env = ["TOKEN=secret"]
cwd = "there"
users = ["ada"]

[mcp."a.b"]
url = "https://example.com/mcp"
headers = ["Authorization: Bearer secret"]
start_s = 5
"""


def loaded(folder: Path, text: str, **variables: str) -> Config:
    path = folder / "config.toml"
    path.write_text(text)
    return load(Flags(file=path), variables=variables)


def test_servers_are_read_by_their_names(tmp_path: Path) -> None:
    servers = loaded(tmp_path, FILE).mcp
    assert list(servers) == ["files", "a.b"]
    assert servers["files"].command == ("python", "server.py")
    # A relative path begins at the folder of the file.
    assert servers["files"].cwd == str(tmp_path / "there")
    assert (servers["a.b"].start_s, servers["a.b"].users) == (5.0, ())
    assert loaded(tmp_path, "").mcp == {}


def test_what_is_shown_makes_it_again_without_what_is_secret(tmp_path: Path) -> None:
    config = loaded(tmp_path, FILE)
    shown = as_toml(config)
    assert "secret" not in shown + as_json(config)
    assert json.loads(as_json(config))["mcp"]["files"]["env"]["value"] == "(not shown)"
    (tmp_path / "again").mkdir()
    again = loaded(tmp_path / "again", shown)
    assert again.mcp["files"].command == config.mcp["files"].command
    assert list(again.mcp) == list(config.mcp)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("mcp = 1", "write [mcp.NAME]"),
        ("[mcp]\nfiles = 1", "write [mcp.NAME]"),
        ('[mcp."a b"]\ncommand = ["x"]', "cannot be the name"),
        ('[mcp.files]\ncomand = ["x"]', "command"),
        ('[mcp.files]\ncommand = "x"', "a list of texts"),
        ("[mcp.files]\nstart_s = 0", "start_s"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, part: str) -> None:
    with pytest.raises(PieError) as raised:
        loaded(tmp_path, text)
    assert raised.value.code == "invalid-config"
    assert part in raised.value.message


def test_the_environment_sets_no_server(tmp_path: Path) -> None:
    with pytest.raises(PieError) as raised:
        loaded(tmp_path, "", PIE_MCP__FILES__COMMAND="x")
    assert "cannot set an MCP server" in raised.value.message
