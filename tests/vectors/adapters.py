"""Vectors of adapters: what they are called, and what tokens are computed with."""

from __future__ import annotations

from typing import Any

from tests.vectors.ops import WARM, Op, collected, generate, op, prompt, state


def adapters() -> list[Op]:
    """An adapter has a name of the user; a copy is as its original until one of both changes, and what was given to a
    generator stays.
    """
    ops = [op("adapter_names"), op("adapter_open", name="a", as_="x"), op("adapter", name="a", as_="a"), op("adapter_names")]
    ops += [op("adapter", name=name, as_="x") for name in ("a", "", "x" * 257, "a\tb")]
    ops += [op("adapter", name="x", as_="x", rank=rank) for rank in (0, 513, 100_000)]
    ops += [op("adapter_open", name="a", as_="again"), op("adapter_fork", adapter="a", name="b", as_="b"), op("adapter_names")]
    ops += [op("adapter_fork", adapter="a", name="b", as_="x")]
    # Another shape is another adapter.
    ops += [op("adapter", name="wide", as_="wide", rank=16, alpha=2)]
    for name in ("a", "again", "b", "wide"):
        ops += [*prompt(name, *range(60, 79)), *collected(name, name, WARM, 4, seed=1, adapter=name)]
    ops += [*prompt("none", *range(60, 79)), *collected("none", "none", WARM, 4, seed=1)]
    # The copy changes, and what began with it goes on with what it was.
    ops += [*prompt("old", *range(60, 79)), generate("old", "old", WARM, 6, seed=1, adapter="b"), op("step", gen="old")]
    ops += [op("adapter_change", adapter="b", changes=[[7, 0.5], [-7, -0.25]]), op("step", gen="old")]
    for name in ("a", "b"):
        ops += [*prompt(f"{name}2", *range(60, 79)), *collected(f"{name}2", f"{name}2", WARM, 4, seed=1, adapter=name)]
    ops += [op("adapter_change", adapter="b", changes=[], sigma=0.5), op("adapter_change", adapter="b", changes=[], sigma=-1)]
    ops += [op("use_adapter", gen="old", adapter="b"), op("step", gen="old"), *state("old")]
    # Destroying one leaves its copies, and the contexts that used it.
    ops += [op("adapter_destroy", adapter="a", name="a"), op("adapter_names"), op("adapter_open", name="a", as_="x")]
    ops += [op("use_adapter", gen="old", adapter="again"), op("adapter_fork", adapter="again", name="c", as_="c")]
    ops += [op("fork", ctx="a", as_="fork"), *collected("fork", "fork", WARM, 4, seed=2), op("collect_tokens", gen="old")]
    return [*ops, op("adapter_destroy", adapter="b", name="b"), op("adapter_destroy", adapter="wide", name="wide"), op("adapter_names")]


def perturbed() -> list[Op]:
    """A seed perturbs the adapter of a generator or a pass, and nothing without one. An adapter is part of what a
    token is.
    """
    ops = [op("adapter", name="a", as_="a")]
    for index, seed in enumerate((None, 0, 3, -3)):
        options = {} if seed is None else {"zo_seed": seed}
        ops += [*prompt(f"c{index}", 5, 6, 7), *collected(f"c{index}", f"g{index}", WARM, 4, seed=1, adapter="a", **options)]
    # With the last token read again by a generator without it.
    ops += [*prompt("r", *range(80, 96)), *collected("r", "first", WARM, 3, seed=1, adapter="a", zo_seed=9)]
    ops += [op("flush", ctx="r"), *collected("r", "second", WARM, 3, seed=1), op("flush", ctx="r")]
    ops += [*collected("r", "third", WARM, 3, seed=1, adapter="a")]
    # A generator that is given both later.
    ops += [
        *prompt("l", 5, 6, 7),
        generate("l", "late", WARM, 6, seed=1),
        op("step", gen="late"),
        op("use_adapter", gen="late", adapter="a"),
    ]
    ops += [op("step", gen="late"), op("zo_seed", gen="late", seed=3), op("step", gen="late"), op("collect_tokens", gen="late")]
    # Passes, the buffer with them.
    for name, asks in {
        "plain": [],
        "adapted": [op("pass_adapter", fwd="adapted", adapter="a")],
        "both": [op("pass_zo_seed", fwd="both", seed=-5), op("pass_adapter", fwd="both", adapter="a")],
        "alone": [op("pass_zo_seed", fwd="alone", seed=3)],
    }.items():
        ops += [*prompt(name, 10, 11), op("forward", ctx=name, as_=name), op("input", fwd=name, tokens=[12, 13]), *asks]
        ops += [op("sample", fwd=name, as_=f"h/{name}", indices=[0, 1], sampler={"kind": "argmax"}), op("execute", fwd=name, as_=name)]
        ops += [op("read", out=name, handle=f"h/{name}"), *collected(name, f"g/{name}", n=3)]
    return ops


def saved_adapters() -> list[Op]:
    """An adapter is written to a folder in /scratch and read from there; what lies elsewhere is refused."""
    ops = [op("adapter", name="a", as_="a"), op("adapter_change", adapter="a", changes=[[1, 0.5]]), op("adapter", name="b", as_="b")]
    ops += [op("adapter_load", adapter="b", path="absent"), op("adapter_save", adapter="a", path="mine")]
    ops += [op("adapter_save", adapter="b", path="/scratch/deep/er/"), op("adapter_load", adapter="b", path="/scratch/./mine")]
    bad = ("", "/", "..", "a/../../b", "/scratch", "/scratch/", "/etc/adapter", "/scratchy", "a\0b", "x" * 4097)
    for name in ("adapter_save", "adapter_load"):
        ops += [op(name, adapter="a", path=path) for path in bad]
    ops += [op("adapter", name="c", as_="c"), op("adapter_load", adapter="c", path="deep/er")]
    for name in ("a", "b", "c"):
        ops += [*prompt(name, 5, 6, 7), *collected(name, name, WARM, 4, seed=1, adapter=name)]
    # What is written again is replaced, and loading takes the adapter of the folder as it is then.
    ops += [op("adapter_save", adapter="c", path="mine"), op("adapter_load", adapter="a", path="mine")]
    ops += [*prompt("d", 5, 6, 7), *collected("d", "d", WARM, 4, seed=1, adapter="a")]
    ops += [
        op("adapter_destroy", adapter="c", name="c"),
        op("adapter_save", adapter="c", path="gone"),
        op("adapter_load", adapter="c", path="mine"),
    ]
    return ops


VECTORS: dict[str, tuple[list[Op], dict[str, Any]]] = {
    "adapters": (adapters(), {}),
    "perturbed": (perturbed(), {}),
    "saved_adapters": (saved_adapters(), {}),
}
SHOWS = {
    "adapters": "JS-147..150 JS-153 PY-140..143 RS-160..163 RS-166 JS-055 JS-065 PY-052 PY-062 RS-075 RS-167 OLD-025",
    "saved_adapters": "JS-151..152 PY-144..145 RS-164..165",
    "perturbed": "JS-055..056 JS-065 JS-088..089 PY-052..053 PY-062..063 PY-084..085 PY-147 RS-075..076 RS-095..096 RS-167",
}
DOCS = {name: " ".join(globals()[name].__doc__.split()) for name in VECTORS}
