"""Asks a streaming handler in Python by `curl -N`, cuts that off in the middle, and looks at how long pages stay.

    python tests/e2e/stream_by_curl.py --tokens 20

The handler sends each token of an answer without an end as an event. Prints when the first byte came and when each
token did, counted from the start of curl. Then curl is killed, and the time is printed until the engine has no page in
use any more. The exit code is 1 where that takes more than a second.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from pie.config import Config, EngineConfig, ModelConfig
from pie.engine import Engine
from support.engines import started
from support.launching import python_source

HANDLER = python_source(
    """
from inferlet import Context, Model, Sampler
from inferlet.http_server import Response


async def fetch(request):
    async def told():
        with Context(Model.load("default")) as ctx:
            ctx.user("Tell me something without an end.")
            while True:
                async for step in ctx.generate(Sampler.argmax(), max_tokens=64, ignore_eos=True):
                    yield {"token": (await step.execute()).tokens[0]}

    return Response.events(told())
"""
)
MOST_S = 1.0
"""How long pages may be in use after the cut."""
PATIENCE_S = 60.0
PART_BYTES = 1 << 16


def stream(url: str, n_tokens: int) -> subprocess.Popen[bytes]:
    """A curl that has so many tokens, each of which was printed as it came."""
    began_s = time.monotonic()
    curl = subprocess.Popen(["curl", "--silent", "--show-error", "-N", url], stdout=subprocess.PIPE)
    assert curl.stdout is not None
    received, n_told = b"", 0
    while n_told < n_tokens:
        part = os.read(curl.stdout.fileno(), PART_BYTES)
        at_ms = (time.monotonic() - began_s) * 1000
        if not part:
            sys.exit(f"the answer ended after {n_told} tokens; curl ended with {curl.wait()}")
        if not received:
            print(f"{at_ms:9.1f} ms  the first byte")
        received += part
        lines = [line for line in received.decode().split("\n")[:-1] if line]
        for line in lines[n_told:]:
            print(f"{at_ms:9.1f} ms  {line}")
        n_told = len(lines)
    return curl


def used(engine: Engine) -> int:
    """Pages in use."""
    return engine.models[0].stats()["n_pages_used"]


def seconds_until_free(engine: Engine) -> float:
    """How long pages are in use from now on."""
    began_s = time.monotonic()
    while used(engine) > 0:
        if time.monotonic() - began_s > PATIENCE_S:
            sys.exit(f"{used(engine)} pages are in use {PATIENCE_S:.0f} s after the cut")
        time.sleep(0.001)
    return time.monotonic() - began_s


def main() -> int:
    """Asks once; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--tokens", type=int, default=20, help="after how many tokens the connection is cut")
    parser.add_argument("--dummy", action="store_true", help="use the dummy driver in place of the embedded model")
    parser.add_argument("--shared", action="store_true", help="answer by an instance that stays")
    asked = parser.parse_args()
    if shutil.which("curl") is None:
        sys.exit("there is no curl on this machine; install it")
    with tempfile.TemporaryDirectory() as folder:
        engine = Engine(EngineConfig(data_dir=Path(folder) / "data"))
        engine.add_model(options=ModelConfig(driver="dummy") if asked.dummy else ModelConfig())
        with started(engine):
            server = engine.serve_program(HANDLER, Config(), label="told", port=0, data_dir=Path(folder), shared=asked.shared)
            port = server.address.rpartition(":")[2]
            curl = stream(f"http://127.0.0.1:{port}/", asked.tokens)
            print(f"cut with {used(engine)} pages in use")
            curl.kill()
            curl.wait()
            took_s = seconds_until_free(engine)
            print(f"no page in use {took_s * 1000:.1f} ms after the cut")
            server.stop()
    return int(took_s > MOST_S)


if __name__ == "__main__":
    sys.exit(main())
