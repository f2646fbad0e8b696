"""The server as Python starts it; its protocol is tested with the crate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import ClientConnection, connect

from host.programs import PATIENCE_S
from pie import _engine
from pie.errors import PieError


def test_a_client_says_hello_and_asks(engine: _engine.Engine, tmp_path: Path) -> None:
    server = engine.serve(tmp_path, {"port": 0, "max_connections": 3, "allowed_origins": []})
    with connect(f"ws://{server.address}/") as client:
        hello = _said(client, {"type": "hello", "protocol": 1, "user": "alice"})
        assert (hello["type"], hello["user"], hello["instance"]) == ("hello", "alice", engine.instance_id)
        assert _said(client, {"id": 1, "type": "ping"}) == {"id": 1, "ok": {}}
        assert (server.n_connections, server.n_live) == (1, 0)
        server.begin_drain()
        assert json.loads(client.recv(PATIENCE_S)) == {"type": "draining"}
        server.stop()
    server.stop()


def test_what_cannot_be_served_is_named(engine: _engine.Engine, tmp_path: Path) -> None:
    server = engine.serve(tmp_path, {"port": 0})
    port = int(server.address.rpartition(":")[2])
    for code, part, arguments in (
        ("port-in-use", str(port), {"settings": {"port": port}}),
        ("invalid-config", r"no setting \"colour\" in \[server\]", {"settings": {"colour": 1}}),
        ("invalid-config", "server.grace_s = -1", {"settings": {"grace_s": -1}}),
        ("invalid-config", "server.grace_s = .* is not a value", {"settings": {"grace_s": [1]}}),
        ("invalid-config", "cannot be used", {"data_dir": "/dev/null"}),
    ):
        with pytest.raises(PieError, match=part) as error:
            engine.serve(**{"data_dir": tmp_path, "settings": {"port": 0}, **arguments})  # type: ignore[arg-type]
        assert error.value.code == code
    server.stop()


def test_only_levels_are_levels() -> None:
    with pytest.raises(PieError, match="is not a level") as error:
        _engine.init_logging("loud")
    assert error.value.code == "invalid-config"


def _said(client: ClientConnection, message: dict[str, Any]) -> Any:
    """What the server answers to a message."""
    client.send(json.dumps(message))
    return json.loads(client.recv(PATIENCE_S))
