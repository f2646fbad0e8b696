"""What an engine counts reaches whoever asks, whole: in the process, and through a server."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import get_type_hints

from host.programs import GENERATE, PATIENCE_S, TINY, VOCAB_SIZE, launch, returned
from pie import _engine
from pie.client import ServerStats, connect
from pie.stats import Histogram, MessageStats, ModelStats
from support.command import pie

N_STEPS = 6


def test_all_of_it_is_told_everywhere(engine: _engine.Engine, tmp_path: Path) -> None:
    model = engine.add_model("tiny", TINY, capabilities={"vocab_size": VOCAB_SIZE, "max_positions": 2048, "n_pages": 64})
    model.run_dummy()
    returned(launch(engine, GENERATE, {"n": N_STEPS}))
    stats = model.stats()
    kinds = get_type_hints(ModelStats)
    assert list(stats) == list(kinds)
    for name, kind in kinds.items():
        value = stats[name]  # type: ignore[literal-required]
        assert isinstance(value, int) if kind is int else value.keys() == get_type_hints(Histogram).keys(), name
    n_batches = stats["n_batches"]
    assert n_batches >= N_STEPS
    for histogram in (stats["batch_sequences"], stats["batch_tokens"], stats["batch_us"]):
        assert sum(histogram["counts"]) == n_batches
    assert stats["batch_tokens"]["sum"] == stats["n_tokens"]
    assert stats["n_pages_used"] + stats["n_pages_cached"] + stats["n_pages_free"] == stats["n_pages"] == 64

    messages = engine.messages()
    assert list(messages) == sorted(get_type_hints(MessageStats))

    server = engine.serve(tmp_path, {"port": 0, "operators": ["root"]})
    address = f"ws://{server.address}"
    served = asyncio.run(asyncio.wait_for(_asked(address), PATIENCE_S))
    assert served.keys() == get_type_hints(ServerStats).keys()
    assert served["server"]["models"] == {"tiny": stats}
    assert served["server"]["messages"] == messages
    assert served["server"]["n_faults"] == 0
    printed = pie("stats", "--server", address, "--user", "root")
    assert (printed.returncode, printed.stderr) == (0, "")
    assert json.loads(printed.stdout)["server"]["models"] == {"tiny": stats}
    server.stop()


async def _asked(address: str) -> ServerStats:
    async with connect(address, user="root") as client:
        return await client.stats()
