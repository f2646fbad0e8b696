"""Requests by HTTP to programs in Python and JavaScript, an instance each, beside launches of the same programs."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import ClassVar

from benchmarks.harness import Figure, Goal, Row, in_turns, save, show
from pie.config import Config, EngineConfig, ModelConfig
from pie.engine import Engine
from pie.events import Event
from pie.programs import Source

PATIENCE_S = 120.0
N_TIMES = 100
PROGRAMS = {
    "JavaScript": Source(
        "javascript",
        (
            (
                "main.js",
                b"export async function main() { return 0; }\nexport default { async fetch() { return new Response('0'); } };\n",
            ),
        ),
        "main.js",
    ),
    "Python": Source(
        "python",
        (
            (
                "main.py",
                b"from inferlet.http_server import Response\n\n\ndef main(input):\n    return 0\n\n\n"
                b"async def fetch(request):\n    return Response('0')\n",
            ),
        ),
        "main.py",
    ),
}
CASES = list(PROGRAMS)

ROW = Row(
    name="handlers",
    title="A request by HTTP that an instance of its own answers, one after the other",
    driver="none",
    path="client in Python -> server -> launch of the source -> its handler -> client, over one connection",
    peer="Engine.launch of the same program, whose main answers at once, and its last event, in the same engine",
)


@contextmanager
def opened(program: Source) -> Iterator[tuple[Engine, HTTPConnection]]:
    """An engine that serves the program, and a connection to it."""
    with tempfile.TemporaryDirectory() as folder:
        engine = Engine(EngineConfig(data_dir=Path(folder, "data")))
        engine.add_model(options=ModelConfig(driver="dummy"))
        with engine:
            engine.start()
            server = engine.serve_program(program, Config(), label="bench", port=0, data_dir=Path(folder, "served"))
            try:
                host, _, port = server.address.rpartition("/")[2].rpartition(":")
                with closing(HTTPConnection(host, int(port), timeout=PATIENCE_S)) as connection:
                    yield engine, connection
            finally:
                server.stop()


def asked(connection: HTTPConnection) -> None:
    """One request."""
    connection.request("GET", "/")
    answer = connection.getresponse()
    if (answer.status, answer.read()) != (200, b"0"):
        raise RuntimeError(f"the program answered with the status {answer.status}")


def launched(engine: Engine, program: Source) -> None:
    """One launch."""
    process = engine.launch(program)
    event = process.next_event(PATIENCE_S)
    if event != Event.Return("0"):
        raise RuntimeError(f"the program ended with {event}")


def each_us(once: Callable[[], None]) -> float:
    """Microseconds of one of many."""
    began = time.perf_counter()
    for _ in range(N_TIMES):
        once()
    return (time.perf_counter() - began) * 1e6 / N_TIMES


def measure() -> Iterator[Figure]:
    """Both in turns, each once before."""
    for case, program in PROGRAMS.items():
        with opened(program) as (engine, connection):
            asked(connection)
            launched(engine, program)
            ours, peer = in_turns(lambda: each_us(lambda: asked(connection)), lambda: each_us(lambda: launched(engine, program)))  # noqa: B023
        figure = Figure(case, "us", ours, peer, [Goal("ratio", 1.5)])
        show(f"handlers: {case}: {figure.median('ours'):.6g} us, {figure.median('ratio'):.3g} x")
        yield figure


class Handlers:
    """Time of one request, in microseconds."""

    params: ClassVar[list[str]] = CASES
    param_names: ClassVar[list[str]] = ["case"]
    timeout = 600
    unit = "us"

    def setup_cache(self) -> dict[str, Figure]:
        """Measures all cases once."""
        return save(ROW, measure())

    def track_request(self, figures: dict[str, Figure], case: str) -> float:
        """Median of the rounds."""
        return figures[case].median("ours")
