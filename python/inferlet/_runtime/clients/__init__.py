"""Clients that speak HTTP by sockets, which a program has none of: their way out is given to the engine.

A client is changed when the module is loaded that holds its way out. So a program without one pays nothing, and the
modules here load nothing that belongs to a client.
"""

from __future__ import annotations

from types import ModuleType

from inferlet._runtime.clients import certifi_core, httpx_transports, requests_adapters, urllib_handlers

_ADAPTERS = {
    "certifi.core": certifi_core.adapt,
    "httpx._transports.default": httpx_transports.adapt,
    "requests.adapters": requests_adapters.adapt,
    "urllib.request": urllib_handlers.adapt,
}


def adapt(module: ModuleType) -> None:
    """Changes a module that has been loaded, where it is one of those."""
    adapter = _ADAPTERS.get(module.__name__)
    if adapter is not None:
        adapter(module)
