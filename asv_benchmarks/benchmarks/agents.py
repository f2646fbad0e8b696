"""P18: agents that call a tool eight times, of 20 ms each, by HTTP: a program in the engine, beside a client's loop.

The client has the engine run each turn, calls the tool itself, and keeps the text. Its turns find the keys and values
of those before, as an agent's do. A peer with another engine comes with its server.
"""

from __future__ import annotations

import asyncio
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

from benchmarks.harness import ROOT, Figure, Row, in_turns, save, show
from pie.client import Client, connect

N_CALLS = 8
TOOL_S = 0.02
N_TOKENS = 8
N_PROMPT = 64
N_RESULT = 8
VOCABULARY = range(300, 4000)
"""Ids of plain text."""
AT_ONCE = (1, 16, 64)
MEASURES = ("latency", "tasks a second")
CASES = [f"{measure} of {n}" for n in AT_ONCE for measure in MEASURES]
PROGRAM = ROOT / "asv_benchmarks/programs/agent.js"

ROW = Row(
    name="P18 beside a client of the same engine",
    title=f"Agents: {N_CALLS} tool calls of {TOOL_S * 1e3:.0f} ms by HTTP, {N_TOKENS} tokens a turn",
    driver="cpu, pie-tiny (bfloat16), all cores",
    path="client -> `pie serve` -> JavaScript program that calls the tool by fetch -> its value",
    peer="a client in Python that launches each turn with all tokens so far, and calls the tool over a connection of its own",
)


class Tool:
    """A server that answers each request after a while."""

    def __init__(self) -> None:
        self._server: asyncio.Server | None = None
        self.port = 0

    async def start(self) -> None:
        """Listens on a free port."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                await reader.readuntil(b"\r\n\r\n")
                await asyncio.sleep(TOOL_S)
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone")
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


@contextmanager
def served(tool_port: int) -> Iterator[str]:
    """The address of a server of the embedded model, whose programs may ask the tool."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Path(folder, "pie.toml")
        settings.write_text(f'[runtime]\nallow_net = ["127.0.0.1:{tool_port}"]\nnet_user_requests = 256\n', encoding="utf-8")
        variables = os.environ | {"PIE_CONFIG": str(settings), "PIE_ENGINE__DATA_DIR": str(Path(folder, "data"))}
        command = [sys.executable, "-m", "pie", "serve", "--port", "0"]
        process = subprocess.Popen(command, env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if line.startswith("serving at "):
                    yield line.split()[-1]
                    break
            else:
                raise RuntimeError(f"the server ended with {process.wait()}")
        finally:
            process.terminate()
            process.wait()
            process.stdout.close()


async def agent(client: Client, digest: str, prompt: list[int], result: list[int], tool: str) -> list[list[int]]:
    """A task as a program in the engine."""
    given = {"prompt": prompt, "tokens": N_TOKENS, "tool": tool, "result": result, "calls": N_CALLS}
    turns: list[list[int]] = await (await client.launch(digest, input=given)).result()
    return turns


async def loop(client: Client, digest: str, prompt: list[int], result: list[int], port: int) -> list[list[int]]:
    """The same task by a client."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    tokens, turns = list(prompt), []
    for call in range(N_CALLS + 1):
        turn: list[int] = await (await client.launch(digest, input={"prompt": tokens, "tokens": N_TOKENS})).result()
        turns.append(turn)
        if call < N_CALLS:
            writer.write(b"GET /tool HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            await reader.readuntil(b"done")
            tokens += [*turn, *result]
    writer.close()
    return turns


class Tasks:
    """Tasks of a number of agents at once, of either side."""

    def __init__(self, runner: asyncio.Runner, url: str, port: int, n_agents: int) -> None:
        self._runner = runner
        self._url = url
        self._port = port
        self._n_agents = n_agents
        self._n_runs = {"ours": 0, "peer": 0}
        self.seen: dict[str, list[Any]] = {"ours": [], "peer": []}
        """What each run of a side generated."""
        self.rates: dict[str, list[float]] = {"ours": [], "peer": []}
        """Tasks a second."""

    def run(self, side: str) -> float:
        """All tasks once; returns the median of their milliseconds."""
        return self._runner.run(self._run(side))

    async def _run(self, side: str) -> float:
        number = self._n_runs[side]
        self._n_runs[side] += 1
        draw = random.Random(f"{self._n_agents} agents, run {number}")
        result = draw.choices(VOCABULARY, k=N_RESULT)
        prompts = [draw.choices(VOCABULARY, k=N_PROMPT) for _ in range(self._n_agents)]
        # A user of its own finds nothing that another run has computed.
        async with connect(self._url, user=f"{side}-{self._n_agents}-{number}") as client:
            digest = await client.upload(PROGRAM)
            latencies: list[float] = []

            async def task(prompt: list[int]) -> list[list[int]]:
                began = time.perf_counter()
                if side == "ours":
                    turns = await agent(client, digest, prompt, result, f"http://127.0.0.1:{self._port}/tool")
                else:
                    turns = await loop(client, digest, prompt, result, self._port)
                latencies.append((time.perf_counter() - began) * 1e3)
                return turns

            began = time.perf_counter()
            self.seen[side].append(await asyncio.gather(*map(task, prompts)))
            self.rates[side].append(self._n_agents / (time.perf_counter() - began))
        return statistics.median(latencies)


def measure() -> Iterator[Figure]:
    """Both in turns; what they generate has to be the same."""
    with asyncio.Runner() as runner:
        tool = Tool()
        runner.run(tool.start())
        with served(tool.port) as url:
            for n_agents in AT_ONCE:
                tasks = Tasks(runner, url, tool.port, n_agents)
                ours, peer = in_turns(lambda: tasks.run("ours"), lambda: tasks.run("peer"))  # noqa: B023
                if tasks.seen["ours"] != tasks.seen["peer"]:
                    raise RuntimeError(f"{n_agents} agents generated other tokens than the client's loop")
                latency = Figure(f"latency of {n_agents}", "ms", ours, peer)
                rate = Figure(f"tasks a second of {n_agents}", "tasks/s", tasks.rates["ours"], tasks.rates["peer"])
                show(f"P18: {n_agents}: {latency.median('ratio'):.3g} x latency, {rate.median('ratio'):.3g} x tasks a second")
                yield latency
                yield rate


class Agents:
    """Latency of a task in milliseconds, and tasks a second."""

    params: ClassVar[list[str]] = CASES
    param_names: ClassVar[list[str]] = ["case"]
    timeout = 900
    unit = "ms or tasks/s"

    def setup_cache(self) -> dict[str, Figure]:
        """Measures all cases once."""
        return save(ROW, measure())

    def track_tasks(self, figures: dict[str, Figure], case: str) -> float:
        """Median of the rounds."""
        return figures[case].median("ours")
