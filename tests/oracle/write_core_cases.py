"""Writes `tests/core_oracle/cases.json`: operations with the answers that the engine must give on the dummy driver.

`python tests/oracle/write_core_cases.py` writes; the file is the same each time. `--check` fails where it is out of
step.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from oracle.generator import Context, Process
from oracle.sampler import Sampler

TARGET = Path(__file__).resolve().parents[1] / "core_oracle" / "cases.json"
N_CASES = 40

Operation = dict[str, Any]


def random_sampler(rng: random.Random) -> Sampler:
    """A sampler whose parameters float32 holds exactly, so that JSON carries them without rounding."""
    temperature = rng.randint(1, 24) / 8
    match rng.randrange(6):
        case 0:
            return Sampler()
        case 1:
            return Sampler(temperature, top_p=rng.randint(1, 64) / 64)
        case 2:
            return Sampler(temperature, top_k=rng.randint(1, 60))
        case 3:
            return Sampler(temperature, min_p=rng.randint(0, 64) / 64)
        case 4:
            return Sampler(temperature, top_k=rng.randint(1, 60), top_p=rng.randint(1, 64) / 64)
        case _:
            return Sampler(temperature)


def write_case(number: int) -> dict[str, Any]:
    """One case: random operations on a few contexts, with what each generation gives."""
    rng = random.Random(number)
    vocab_size = rng.choice([17, 300, 2000])
    end_tokens = sorted(rng.sample(range(vocab_size), rng.randrange(3)))
    launch_seed, max_context = rng.getrandbits(64), rng.choice([48, 4096])
    process = Process(f"model-{number}", vocab_size, launch_seed, frozenset(end_tokens), max_context)
    contexts = [Context()]
    operations: list[Operation] = [{"op": "context"}]

    def append(index: int, n_tokens: int) -> None:
        tokens = [rng.randrange(vocab_size) for _ in range(n_tokens)]
        if len(contexts[index].tokens) + n_tokens <= max_context:
            contexts[index].append(tokens)
            operations.append({"op": "append", "context": index, "tokens": tokens})

    append(0, rng.randint(1, 30))
    for _ in range(12):
        index = rng.randrange(len(contexts))
        match rng.randrange(6):
            case 0:
                contexts.append(Context())
                operations.append({"op": "context"})
                append(len(contexts) - 1, rng.randint(1, 20))
            case 1:
                contexts.append(contexts[index].fork())
                operations.append({"op": "fork", "context": index})
            case 2:
                append(index, rng.randint(0, 10))
            case 3:
                operations.append({"op": "flush", "context": index})
            case _:
                sampler, seed = random_sampler(rng), rng.choice([None, 0, rng.getrandbits(64)])
                max_tokens, stop = rng.randint(0, 24), sorted(rng.sample(range(vocab_size), rng.randrange(3)))
                tokens, finish = process.generate(contexts[index], sampler, seed=seed, max_tokens=max_tokens, stop=frozenset(stop))
                operations.append(
                    {
                        "op": "generate",
                        "context": index,
                        "sampler": vars(sampler),
                        # A JSON number may lose the low bits of 64.
                        "seed": None if seed is None else str(seed),
                        "max_tokens": max_tokens,
                        "stop": stop,
                        "tokens": tokens,
                        "finish": finish,
                    }
                )
    return {
        "model": process.model,
        "vocab_size": vocab_size,
        "launch_seed": str(launch_seed),
        "end_tokens": end_tokens,
        "max_context": max_context,
        "operations": operations,
    }


def main() -> int:
    """Writes or checks the file; returns the exit code."""
    text = "[\n" + ",\n".join(json.dumps(write_case(number), separators=(",", ":")) for number in range(N_CASES)) + "\n]\n"
    if "--check" in sys.argv[1:]:
        if TARGET.exists() and TARGET.read_text(encoding="utf-8") == text:
            return 0
        print("out of step: run `python tests/oracle/write_core_cases.py`", file=sys.stderr)
        return 1
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
