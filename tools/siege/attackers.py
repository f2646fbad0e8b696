"""The attackers, in a process of their own: each repeats its attack until the time is over."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import Counter

from pie.client import PieError
from tools.siege import doors, programs, requests
from tools.siege.doors import Target

_ROUND_LIMIT_S = 60.0


async def repeat(attack: programs.Attack, target: Target, until: float) -> Counter[str]:
    """Attacks again and again; what came of each round, by error code."""
    met: Counter[str] = Counter()
    while (left := until - time.monotonic()) > 0:
        try:
            async with asyncio.timeout(min(left, _ROUND_LIMIT_S)):
                await attack(target)
            met["done"] += 1
        except PieError as error:
            met[error.code] += 1
        except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
            met[type(error).__name__] += 1
        await asyncio.sleep(0.1)
    return met


async def main(host: str, port: int, seconds: float) -> None:
    """Attacks, and prints what came of it as JSON."""
    until = time.monotonic() + seconds
    attacks = (*doors.ATTACKS, *requests.ATTACKS, *programs.ATTACKS)
    targets = [Target(host, port, f"attacker-{number}") for number in range(len(attacks))]
    met = await asyncio.gather(*(repeat(attack, target, until) for attack, target in zip(attacks, targets, strict=True)))
    print(json.dumps({attack.__name__: dict(counts) for attack, counts in zip(attacks, met, strict=True)}))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])))
