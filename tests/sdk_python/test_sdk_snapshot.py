"""What launches share of the Python runtime's snapshot, and that what one of them does to it stays its own."""

from __future__ import annotations

from typing import Any

import pytest

from pie.engine import Engine
from pie.programs import Source
from support.launching import finish

PAGE_BYTES = 4096
# What the allocator takes for the smallest object; the list and what else is allocated meanwhile take less than twice
# that.
BLOCK_BYTES = 16
N_OBJECTS = 5000


@pytest.fixture
def engine(dummy: Engine) -> Engine:
    return dummy


def answer(engine: Engine, text: str) -> Any:
    process = engine.launch(Source("python", (("main.py", text.encode()),), "main.py"), seed=7)
    process.close_input()
    outcome = finish(process)
    assert outcome.code is None, outcome
    return outcome.value


def test_objects_of_the_snapshot_are_not_counted(engine: Engine) -> None:
    shared = answer(
        engine,
        """
import asyncio, inferlet, json, sys
from wit_world.imports import session

def main():
    ours = {"a": 1}
    shared = [json, json.__dict__, json.loads, json.loads.__code__, json.loads.__code__.co_consts, asyncio.Task, asyncio.Runner,
              inferlet.Context, inferlet.Context.generate, session.send, sys.modules, json.JSONDecoder.__doc__]
    return [sys._is_immortal(one) for one in shared], sys._is_immortal(ours), sys._is_immortal(main)
""",
    )
    assert shared == [[True] * 12, False, False]


def test_what_a_launch_allocates_lies_together(engine: Engine) -> None:
    n_pages = answer(
        engine,
        f"""
def main():
    return len({{id(one) // {PAGE_BYTES} for one in [object() for _ in range({N_OBJECTS})]}})
""",
    )
    assert N_OBJECTS <= n_pages * PAGE_BYTES / BLOCK_BYTES < 3 * N_OBJECTS


def test_the_collector_works_on_what_a_program_makes(engine: Engine) -> None:
    collected = answer(
        engine,
        """
import gc, json, weakref

class Node:
    pass

def cycle():
    node = Node()
    node.self = node
    return weakref.ref(node)

def main():
    nodes = [cycle() for _ in range(3)]
    gc.unfreeze()
    gc.collect()
    return [node() is None for node in nodes], json.loads(json.dumps({"works": True}))
""",
    )
    assert collected == [[True, True, True], {"works": True}]


def test_a_program_changes_only_its_own_copy(engine: Engine) -> None:
    spoiled = """
import json, sys
def main():
    seen = getattr(json, "spoiled", False), "spoiled" in sys.modules
    json.spoiled = True
    sys.modules["spoiled"] = json
    del sys.modules["json"]
    return seen
"""
    assert [answer(engine, spoiled) for _ in range(3)] == [[False, False]] * 3
