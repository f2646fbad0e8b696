"""The MCP servers of a configuration, as the file writes them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pie.config.file import File
from pie.config.suggest import shortened
from pie.errors import PieError

_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")


def written_servers(file: File) -> Iterator[tuple[str, dict[str, Any]]]:
    """The servers of a file, from `[mcp.NAME]`, in their order.

    PieError `invalid-config` for what is not a table, and for a name that cannot be one.
    """
    servers = file.values.get("mcp", {})
    if not isinstance(servers, dict):
        raise PieError("invalid-config", f"{file.origin((), 'mcp')} is not a table; write [mcp.NAME] for each server")
    for name, values in servers.items():
        where = file.origin(("mcp",), name)
        if not _NAME.fullmatch(name):
            given = shortened(repr(name))
            message = f"{where}: {given} cannot be the name of an MCP server; give 1 to 64 letters, digits, '.', '_' and '-'"
            raise PieError("invalid-config", message)
        if not isinstance(values, dict):
            raise PieError("invalid-config", f"{where} is not a table; write [mcp.NAME] for each server, with command or url below it")
        yield name, values
