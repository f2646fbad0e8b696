"""Draws from a million random rows as the cuda back end does, and compares each token with the engine's.

`python tests/backends/cuda/sample_many.py --rows 1000000 --seed 0` from the root of the repository.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]

import torch  # noqa: E402

from pie.backends.cuda.calls import standin_calls  # noqa: E402
from support.device_draws import drawn_by  # noqa: E402
from support.random_rows import random_rows  # noqa: E402

PER_BATCH = 500
VOCABULARIES = (2, 33, 64, 160, 300)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    start_s, n_rows, n_draws, n_wrong, seed = time.monotonic(), 0, 0, 0, asked.seed
    while n_rows < asked.rows:
        rows = random_rows(seed, PER_BATCH, VOCABULARIES[seed % len(VOCABULARIES)])
        found, expected = drawn_by(standin_calls(), rows)[0], rows.expected()
        if found != expected:
            n_wrong += sum(a != b for a, b in zip(found, expected, strict=True))
            print(f"seed {seed}: other tokens than the engine's")
        n_rows, n_draws, seed = n_rows + PER_BATCH, n_draws + len(expected), seed + 1
    print(f"{n_draws} tokens of {n_rows} rows, seeds {asked.seed} to {seed - 1}: {n_wrong} differ ({time.monotonic() - start_s:.0f} s)")
    return 1 if n_wrong else 0


if __name__ == "__main__":
    sys.exit(main())
