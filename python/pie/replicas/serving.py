"""`pie serve` with `server.replicas`: the front, the replicas, and the signals that end them."""

from __future__ import annotations

import asyncio
import secrets
import signal
from collections.abc import Callable
from dataclasses import replace
from ipaddress import ip_address
from typing import Protocol

from msgspec.structs import replace as changed

from pie.config import Config, ModelConfig
from pie.memory import check_memory, users_bytes
from pie.replicas.actors import Actors
from pie.replicas.front import Front, FrontOptions

_LOOPBACK = "127.0.0.1"
EXIT_TERMINATED = 143


class Replicas(Protocol):
    """What serves behind the front; a stand-in runs in this process."""

    def start(self) -> None:
        """See `Actors`."""

    def end(self, drain_s: float) -> None:
        """See `Actors`."""

    def close(self) -> None:
        """See `Actors`."""


Starting = Callable[[list[Config], Callable[[int, int], None], Callable[[int, str], None]], Replicas]


def serve_replicas(config: Config, starting: Starting = Actors) -> int:
    """Serves until SIGTERM or Ctrl-C; returns the exit code, as `pie serve` does without replicas."""
    return asyncio.run(_serve(config, starting))


def replica_configs(config: Config, port: int, inner_header: str) -> list[Config]:
    """What each replica is configured with, behind a front that serves on that port.

    It serves on loopback, believes the front whom and which address it names, and lets clients in as the front is asked
    to. The name of the header is a secret of this run: other accounts of the machine reach the port of a replica too.
    """
    server = config.server
    names = [f"{host}:{port}" for host in {server.host, "localhost", _LOOPBACK}]
    origins = [f"http://{host}:{port}" for host in ("localhost", _LOOPBACK, "[::1]")]
    inner = changed(
        server,
        host=_LOOPBACK,
        port=0,
        auth="on" if asks_who(config) else "off",
        trusted_proxies=(_LOOPBACK,),
        user_header=inner_header,
        host_names=(*server.host_names, *names),
        allowed_origins=(*server.allowed_origins, *origins),
        replicas=1,
    )
    # Each would take the memory of the machine for its own.
    configured = config.engine.memory_bytes * server.replicas
    memory_bytes = users_bytes(_all_models(config), configured, engines=server.replicas) // server.replicas
    engines = [
        changed(config.engine, data_dir=config.engine.data_dir / "replicas" / str(index), memory_bytes=memory_bytes)
        for index in range(server.replicas)
    ]
    origins_of, limits, mcp = dict(config.origins), dict(config.limits), dict(config.mcp)
    return [replace(config, server=inner, engine=engine, origins=origins_of, limits=limits, mcp=mcp) for engine in engines]


def asks_who(config: Config) -> bool:
    """Whether clients have to prove who they are, by the address of the front."""
    server = config.server
    return server.auth == "on" or (server.auth == "auto" and (not ip_address(server.host).is_loopback or bool(server.trusted_proxies)))


def _all_models(config: Config) -> list[ModelConfig]:
    """Those of all replicas, by names of their own."""
    return [changed(model, name=f"{model.name} of replica {index}") for index in range(config.server.replicas) for model in config.models]


async def _serve(config: Config, starting: Starting) -> int:
    check_memory(_all_models(config))
    server, loop, inner_header = config.server, asyncio.get_running_loop(), f"X-Pie-{secrets.token_hex(16)}"
    options = FrontOptions(server.trusted_proxies, server.user_header, inner_header, server.max_connections, server.handshake_timeout_s)
    front = Front(server.replicas, options)
    host, port = await front.listen(server.host, server.port)

    def up(index: int, at: int) -> None:
        loop.call_soon_threadsafe(front.up, index, at)

    def down(index: int, reason: str) -> None:
        print(f"replica {index}: {reason}", flush=True)
        loop.call_soon_threadsafe(front.down, index, reason)

    replicas: Replicas | None = None
    try:
        replicas = await asyncio.to_thread(starting, replica_configs(config, port, inner_header), up, down)
        await asyncio.to_thread(replicas.start)
        ending = _Ending(replicas, server.drain_s)
        loop.add_signal_handler(signal.SIGTERM, ending.on_signal)
        for model in config.models:
            print(f"model {model.name} ({model.driver}, {model.path})")
        print(f"{server.replicas} replicas")
        print(f"serving at ws://{f'[{host}]' if ':' in host else host}:{port}", flush=True)
        return await ending.exit_code
    finally:
        await front.close()
        if replicas is not None:
            await asyncio.to_thread(replicas.close)


class _Ending:
    """What SIGTERM does: the first drains, the second does not wait for what runs."""

    def __init__(self, replicas: Replicas, drain_s: float) -> None:
        self._replicas = replicas
        self._drain_s = drain_s
        self._is_draining = False
        self._tasks: list[asyncio.Task[None]] = []
        self.exit_code: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def on_signal(self) -> None:
        """Handles SIGTERM."""
        drain_s, code = (0.0, EXIT_TERMINATED) if self._is_draining else (self._drain_s, 0)
        self._is_draining = True
        self._tasks.append(asyncio.get_running_loop().create_task(self._end(drain_s, code)))

    async def _end(self, drain_s: float, code: int) -> None:
        await asyncio.to_thread(self._replicas.end, drain_s)
        if not self.exit_code.done():
            self.exit_code.set_result(code)
