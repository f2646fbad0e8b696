"""Prints the tokens per second of a program that generates step by step, alone and beside fifteen that spin: `python tests/hostile/fairness.py`."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from pie.engine import Engine
from support.launching import finish, python_source

N_SPINNING = 15
N_TOKENS = 256
N_ROUNDS = 3
GENERATES = python_source(
    f"""
from inferlet import Context, Model, Sampler

async def main(input):
    ctx = Context(Model.load("default"))
    ctx.user("tell me of the sea")
    generator = ctx.generate(Sampler.argmax(), max_tokens={N_TOKENS}, stop=[])
    generator.ignore_eos(True)
    tokens = []
    async for step in generator:
        tokens += (await step.execute()).tokens
    return tokens
"""
)
SPINS = python_source("def main(input):\n    while True: pass\n")


def rate(engine: Engine) -> tuple[float, list[int]]:
    """Tokens per second of one run, the launch included, and the tokens."""
    started = time.perf_counter()
    tokens: list[int] = finish(engine.launch(GENERATES, seed=1)).value
    return len(tokens) / (time.perf_counter() - started), tokens


def main() -> None:
    """Measures in one engine on the `cpu` back end with the embedded model; the best of a few rounds of each kind."""
    with Engine() as engine:
        engine.add_model()
        engine.start()
        rate(engine)
        alone = [rate(engine) for _ in range(N_ROUNDS)]
        spinning = [engine.launch(SPINS) for _ in range(N_SPINNING)]
        time.sleep(1)
        beside = [rate(engine) for _ in range(N_ROUNDS)]
        same = all(tokens == alone[0][1] for _, tokens in alone + beside)
        for process in spinning:
            process.cancel()
            finish(process)
    fast, slow = max(alone)[0], max(beside)[0]
    figures = {"alone_tokens_s": round(fast), "beside_tokens_s": round(slow), "ratio": round(slow / fast, 2), "same_tokens": same}
    sys.stdout.write(json.dumps(figures) + "\n")


if __name__ == "__main__":
    main()
