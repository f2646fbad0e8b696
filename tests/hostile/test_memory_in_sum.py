"""What one user makes an engine hold has a bound in sum, whatever it is made of; nobody else notices, and nothing of it
stays.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hostile.besieged import ATTACKS, MEMORY_BYTES, Met

TESTS = Path(__file__).resolve().parents[1]
USER_BYTES = MEMORY_BYTES // 4 * 3 // 8 * 3
"""What one user may hold."""
AHEAD_BYTES = 64 << 20
"""What is not charged to anybody: what programs touch of image and stack in one turn, arguments of calls, and what the
allocator keeps.
"""

REFUSED = {
    "arrays": "limit-engine-memory",
    "encodes": "limit-engine-memory",
    "messages of a chat": "context-full",
    "tokens of contexts": "limit-engine-memory",
    "snapshots": "limit-snapshots",
    "output that nobody reads": "limit-engine-memory",
}
"""What the attackers that do not end well are told. The others are within their bounds."""

SLOWER = 60.0
"""How many times as long as alone a neighbour may take, at best of a few tries: far beyond what it does."""


def attacked(name: str) -> Met:
    """What became of an attack in a process of its own."""
    path = os.pathsep.join([str(TESTS), *sys.path])
    command = [sys.executable, "-m", "hostile.besieged", name]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return Met(**json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_on_the_memory_of_the_engine_is_refused_and_nobody_else_notices(name: str) -> None:
    met = attacked(name)
    expected = REFUSED.get(name)
    assert (expected in met.codes) if expected else set(met.codes) == {None}, met
    print(f"{name}: a neighbour took {met.slower:.2f} times as long as alone")
    assert met.neighbour, met
    assert met.slower < SLOWER, met
    assert met.most_bytes - met.before_bytes <= USER_BYTES + AHEAD_BYTES, met
    assert sum(met.charged.values()) <= USER_BYTES, met
    held = {user: {purpose: n for purpose, n in of.items() if purpose != "snapshots"} for user, of in met.held.items()}
    assert not any(held.values()), met
