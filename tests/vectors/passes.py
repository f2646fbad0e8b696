"""Vectors of forward passes and of masks."""

from __future__ import annotations

from typing import Any

from tests.vectors.ops import ARGMAX, MODEL, TOP_P, WARM, Op, collected, op, prompt, state

V = MODEL.vocab_size
LIMIT = MODEL.max_context
LOGITS = {"kind": "logits"}
ENTROPY = {"kind": "entropy"}


def forward(ctx: str, name: str, *parts: Op, **handles: Op) -> list[Op]:
    """A pass with its parts, executed; what each handle gives. A handle is a sampler or a probe at its index."""
    ops = [op("forward", ctx=ctx, as_=name), *(part | {"fwd": name} for part in parts)]
    ops += [attached | {"fwd": name, "as": f"{name}/{handle}"} for handle, attached in handles.items()]
    return [*ops, op("execute", fwd=name, as_=name), *(op("read", out=name, handle=f"{name}/{handle}") for handle in handles)]


def sample(sampler: Op, *indices: int) -> Op:
    """Draws behind tokens of a pass."""
    return op("sample", indices=list(indices), sampler=sampler)


def probe(probe: Op, index: int = 0) -> Op:
    """Reads the row behind a token of a pass."""
    return op("probe", index=index, probe=probe)


def tokens(*ids: int) -> Op:
    """Tokens of a pass."""
    return op("input", tokens=list(ids))


def tokens_at(ids: list[int], positions: list[int]) -> Op:
    """Tokens of a pass at positions."""
    return op("input_at", tokens=ids, positions=positions)


def distribution(temperature: float, k: int) -> Op:
    """A probe."""
    return {"kind": "distribution", "temperature": temperature, "k": k}


def logprobs(*ids: int) -> Op:
    """A probe."""
    return {"kind": "logprobs", "tokens": list(ids)}


def forward_order() -> list[Op]:
    """The pending token and the buffer go first in the same pass, and indices count the tokens that it is given; where
    it is given none, the pending and buffered ones. Afterwards everything is in pages.
    """
    ops = [*prompt("c", *range(30, 50)), *collected("c", "g", n=3), op("append", ctx="c", tokens=[5, 6]), *state("c")]
    ops += [op("fork", ctx="c", as_="d"), op("fork", ctx="c", as_="e")]
    ops += [op("forward", ctx="c", as_="f"), op("start_position", fwd="f")]
    given = {"drawn": sample(ARGMAX, 1), "first": probe(logprobs(1, 2)), "again": probe(LOGITS, 1)}
    ops += forward("c", "given", tokens(7, 8), **given) + state("c")
    ops += forward("d", "none", last=sample(ARGMAX, 2), pending=probe(LOGITS, 0), buffered=probe(LOGITS, 1)) + state("d")
    # The same tokens, buffered and given: the same rows.
    ops += [op("append", ctx="e", tokens=[7, 8]), *forward("e", "buffered", drawn=sample(ARGMAX, 4), again=probe(LOGITS, 4)), *state("e")]
    ops += [op("truncate", ctx="e", n=1), *forward("e", "more", tokens(8), tokens(9), a=sample(ARGMAX, 0), b=sample(ARGMAX, 1))]
    return [*ops, *collected("c", "h", n=2), *collected("e", "i", n=2), *state("c"), *state("e")]


def forward_positions() -> list[Op]:
    """Positions repeat, jump and go back, up to the last one of the model. What a pass is not told is the index in the
    context. Causality follows the order of storage.
    """
    ops = []
    cases: dict[str, list[int]] = {
        "plain": [0, 1, 2],
        "repeat": [0, 0, 0],
        "jump": [0, 700, LIMIT - 1],
        "back": [9, 4, 1],
    }
    for name, positions in cases.items():
        ops += [
            op("context", as_=name),
            *forward(name, name, tokens_at([60, 61, 62], positions), **{str(n): sample(ARGMAX, n) for n in range(3)}),
        ]
        # The tokens behind them stand at their own indices again.
        ops += [*collected(name, f"g{name}", n=3), *state(name)]
    ops += [*prompt("mixed", 60, 61), *forward("mixed", "mixed", tokens(62), tokens_at([63], [3]), tokens(64), row=probe(LOGITS, 2))]
    ops += [*prompt("same", 60, 61), *forward("same", "same", tokens(62, 63, 64), row=probe(LOGITS, 2))]
    ops += [op("forward", ctx="same", as_="f"), tokens_at([1, 2], [1]) | {"fwd": "f"}, tokens_at([1], [LIMIT]) | {"fwd": "f"}]
    return [*ops, op("execute", fwd="f", as_="f"), *state("same")]


def forward_masks() -> list[Op]:
    """Attention masks have a row for each token, over all slots after the pass, and causality besides. Rows may differ,
    and restrict nothing where they are empty.
    """
    ops, seven = [], list(range(70, 77))
    cases: dict[str, list[list[int]]] = {
        "empty": [[]] * 7,
        "causal": [[0, n + 1] for n in range(7)],
        "beyond": [[0, 7]] * 7,
        "window": [[0, 1], [0, 2], [1, 2], [2, 2], [3, 2], [4, 2], [5, 2]],
        "sinks": [[], [], [], [0, 1, 1, 2], [0, 1, 2, 2], [0, 1, 3, 2], [0, 1, 4, 2]],
        "others": [[0, 1], [0, 1], [0, 1], [0, 2], [0, 2], [0, 1, 1, 1], [3, 3]],
        "long way round": [[0, 1], [0, 2], [0, 1, 0, 2], [0, 4], [0, 5], [0, 6], [0, 7]],
    }
    for name, masks in cases.items():
        rows = {str(n): sample(ARGMAX, n) for n in range(7)}
        ops += [op("context", as_=name), *forward(name, name, tokens(*seven), op("attention_mask", masks=masks), **rows)]
        ops += collected(name, f"g{name}", n=2)
    # Behind a context of more than a page, which the last token does not see; a mask replaces the one before.
    ops += [*prompt("c", *range(100, 140)), op("flush", ctx="c"), op("fork", ctx="c", as_="d")]
    far = op("attention_mask", masks=[[0, 41], [36, 6]])
    ops += forward("c", "far", tokens(1, 2), op("attention_mask", masks=[[], []]), far, a=sample(ARGMAX, 0, 1))
    # A re-read of the last token keeps its mask.
    ops += [op("truncate", ctx="c", n=0), *collected("c", "gc", n=2)]
    # Given to pending and buffered tokens.
    ops += [*collected("d", "gd", n=1), op("append", ctx="d", tokens=[3])]
    ops += forward("d", "taken", op("attention_mask", masks=[[30, 11], [0, 1, 40, 1]]), a=sample(ARGMAX, 0, 1))
    bad: list[list[list[int]]] = [[[0, 1]], [[0, 1], [0, 44]], [[43], []], [[0], []], [[], [43]], [[0, 0] * 30, []]]
    for n, masks in enumerate(bad):
        ops += forward("d", f"bad{n}", tokens(1, 2), op("attention_mask", masks=masks))
    # What no row can take is told before the pass is executed.
    for n, mask in enumerate(([0, MODEL.max_context + 1], [0] * (MODEL.max_context + 2), [2**32 - 1] * 3)):
        ops += [op("forward", ctx="d", as_=f"long{n}"), op("attention_mask", fwd=f"long{n}", masks=[[], mask])]
    return [*ops, *state("d")]


def forward_samplers() -> list[Op]:
    """Several samplers in one pass, at any index, several at one: each row has a place in the key, in order of
    attachment, probes not counted; every draw of a row as well. A seed of a sampler is used as it is.
    """
    many = WARM | {"draws": 5}
    ops = []
    # A constructor that older programs know takes 0 for no seed, the others take it as it is.
    for seed, zero in (({}, {}), ({"seed": 1}, {"seed": 0}), ({"seed": 99}, {"seed": 99})):
        name = f"own {seed.get('seed')}"
        handles = {
            "argmax": sample(ARGMAX, 2),
            "warm": sample(WARM | seed, 1, 1, 0),
            "entropy": probe(ENTROPY, 1),
            "top": sample(TOP_P | zero, 2),
            "many": sample(many | seed, 2, 0),
            "cold": sample({"kind": "multinomial", "temperature": 0.0, "draws": 3}, 2),
        }
        ops += [*prompt(name, 11, 12), *forward(name, name, tokens(13, 14, 15), **handles)]
        # The second pass of the same content draws by another seed, where none was given.
        ops += [op("context", as_="x"), op("append", ctx="x", tokens=[11, 12]), *forward("x", f"{name}/x", tokens(13, 14, 15), **handles)]
    # A pass without a sampler counts as none, one with a sampler as one, and a generation as one more.
    for name in ("first", "second", "third"):
        ops += [*prompt(name, 21, 22), *forward(name, f"{name}/quiet", tokens(23), row=probe(ENTROPY)), op("truncate", ctx=name, n=1)]
        ops += [op("fork", ctx=name, as_=f"{name}/fork"), *forward(name, name, tokens(23), drawn=sample(WARM, 0))]
        ops += [*collected(f"{name}/fork", f"g{name}", WARM, n=2)]
    return ops


def forward_token_masks() -> list[Op]:
    """Masks of tokens restrict every sampler of a pass and no probe; of several masks the last one counts."""
    all_samplers: list[Op] = [
        ARGMAX,
        TOP_P,
        {"kind": "top_k", "temperature": 1.0, "k": 3},
        {"kind": "min_p", "temperature": 1.0, "p": 0.3},
        {"kind": "top_k_top_p", "temperature": 0.7, "k": 40, "p": 0.9},
        WARM | {"draws": 8},
    ]
    probes = {"logits": probe(LOGITS), "top": probe(distribution(1.0, 3)), "log": probe(logprobs(0, 100, V - 1)), "entropy": probe(ENTROPY)}
    cases: dict[str, list[int]] = {
        "none": [],
        "all": [0, V],
        "half": [V // 2, V // 2],
        "one": [1234, 1],
        "few": [100, 3, 7, 1, 2, 2],
        "beginning": [0, 10],
        "parts": [0, 5, 0, 5],
    }
    ops = []
    for name, mask in cases.items():
        drawn = {str(n): sample(sampler | ({} if sampler == ARGMAX else {"seed": 5}), 0) for n, sampler in enumerate(all_samplers)}
        ops += [op("context", as_=name), *forward(name, name, tokens(33), op("mask", mask=mask), **drawn, **probes)]
    ops += [op("context", as_="c"), *forward("c", "last", tokens(33), op("mask", mask=[1, 1]), op("mask", mask=[7, 1]), a=sample(WARM, 0))]
    ops += [op("forward", ctx="c", as_="f")]
    ops += [op("mask", fwd="f", mask=mask) for mask in ([0], [V], [5, 0, 3, 0], [0, V + 1], [V, 1], [2**32 - 1, 2**32 - 1])]
    return [*ops, *state("c")]


def forward_probes() -> list[Op]:
    """Several probes in one pass, several at one index, beside samplers. A distribution of the likeliest comes in their
    order, of all tokens in the order of their ids, with probabilities over the whole vocabulary in both. Another kind's
    or another pass's handle gives nothing.
    """
    handles = {
        "logits": probe(LOGITS, 1),
        "three": probe(distribution(1.0, 3), 1),
        "warm": probe(distribution(2.5, 5), 1),
        "cold": probe(distribution(0.1, 2), 1),
        "all": probe(distribution(1.0, 0), 1),
        "every": probe(distribution(0.7, V), 1),
        "one": probe({"kind": "logprob", "token": 17}, 1),
        "some": probe(logprobs(17, 0, V - 1, 17), 1),
        "entropy": probe(ENTROPY, 1),
        "drawn": sample(WARM | {"seed": 3}, 1, 0),
        "state": probe({"kind": "embedding"}, 1),
        "state before": probe({"kind": "embedding"}, 0),
        "before": probe(LOGITS, 0),
        "one before": probe(logprobs(17), 0),
    }
    ops = [*prompt("c", 81, 82), *forward("c", "a", tokens(83, 84), **handles)]
    ops += [
        *forward("c", "b", tokens(85), row=probe(ENTROPY)),
        op("read", out="b", handle="a/entropy"),
        op("read", out="a", handle="b/row"),
    ]
    ops += [op("forward", ctx="c", as_="f")]
    bad = [
        distribution(0.0, 1),
        distribution(-1.0, 1),
        distribution(1.0, V + 1),
        logprobs(),
        logprobs(V),
        {"kind": "logprob", "token": 2**32 - 1},
    ]
    ops += [probe(one) | {"fwd": "f", "as": "bad"} for one in bad]
    return [*ops, probe(ENTROPY, 2**32 - 1) | {"fwd": "f", "as": "far"}, op("execute", fwd="f", as_="f"), *state("c")]


def forward_mistakes() -> list[Op]:
    """Every mistake has its code, at the earliest moment: the pass does not run, and the context is as before. A pass
    is executed once.
    """
    ops = [op("context", as_="c"), *forward("c", "empty")]
    ops += [
        *prompt("d", *range(40, 60)),
        op("flush", ctx="d"),
        *forward("d", "nothing", a=sample(ARGMAX, 0)),
        op("append", ctx="d", tokens=[1]),
    ]
    ops += [op("forward", ctx="d", as_="f"), tokens(V) | {"fwd": "f"}, tokens_at([1, 2], [1, 2, 3]) | {"fwd": "f"}]
    ops += [tokens_at([1], [2**32 - 1]) | {"fwd": "f"}, sample(ARGMAX) | {"fwd": "f", "as": "none"}]
    bad: list[Op] = [
        {"kind": "top_p", "temperature": -1.0, "p": 0.9},
        {"kind": "top_p", "temperature": 1.0, "p": 0.0},
        {"kind": "top_k", "temperature": 1.0, "k": 0},
        {"kind": "min_p", "temperature": 1.0, "p": 1.5},
        {"kind": "multinomial", "temperature": 1.0, "draws": 0},
        {"kind": "multinomial", "temperature": 1.0, "draws": 65_537},
    ]
    ops += [sample(one, 0) | {"fwd": "f", "as": "bad"} for one in bad]
    # What was refused is not in it: the buffered token alone is computed.
    ops += [
        op("fork", ctx="d", as_="e"),
        sample(ARGMAX, 0) | {"fwd": "f", "as": "f/a"},
        op("execute", fwd="f", as_="f"),
        op("read", out="f", handle="f/a"),
    ]
    ops += [op("execute", fwd="f", as_="f"), tokens(1) | {"fwd": "f"}, *state("d")]
    for name, parts, handles in (
        ("index", [tokens(1, 2)], {"a": sample(ARGMAX, 0, 2)}),
        ("buffered index", [], {"a": probe(ENTROPY, 1)}),
        ("zo", [tokens(1), op("pass_zo_seed", seed=3)], {}),
    ):
        ops += [*forward("e", name, *parts, **handles)[: 1 + len(parts) + len(handles) + 1], *state("e")]
    # Whatever failed, the same draws come as if it had never been.
    ops += [
        *forward("e", "after", tokens(9), a=sample(WARM, 0)),
        op("fork", ctx="d", as_="g"),
        op("forward", ctx="g", as_="g"),
        op("release", ctx="g"),
    ]
    return [*ops, tokens(1) | {"fwd": "g"}, op("execute", fwd="g", as_="g"), op("forward", ctx="g", as_="h")]


def forwards_together() -> list[Op]:
    """Passes of several contexts that run at once answer as if each had run alone."""
    ops = [*prompt("root", *range(100, 140)), op("flush", ctx="root")]
    branches: list[list[Op]] = []
    for n in range(5):
        ops.append(op("fork", ctx="root", as_=f"f{n}"))
        handles: dict[str, Op] = {"a": sample(WARM, 0, 1), "b": probe(LOGITS, n % 2)}
        branches.append([*forward(f"f{n}", f"f{n}", tokens(n, 7), **handles), *collected(f"f{n}", f"g{n}", WARM, n=3), *state(f"f{n}")])
    return [*ops, op("all", ops=branches), *state("root")]


def masks() -> list[Op]:
    """Masks are run lengths, forbidden first. A mask has one shortest form, which is empty where nothing is forbidden,
    and only there.
    """
    rows: list[list[bool]] = [
        [False, False, True, True, True, False],
        [True, True],
        [False],
        [True],
        [True, False, True],
        [n % 3 == 0 for n in range(70)],
        [n > 60 for n in range(64)],
    ]
    ops = [op("mask_of_bools", allowed=row) for row in rows]
    every: list[list[int]] = [[], [0], [0, 6], [6], [2, 3, 1], [2, 3], [0, 2, 0, 3], [0, 0, 0, 0, 1, 1], [1, 1, 1, 1], [0, 6, 0]]
    for mask in every:
        ops += [op(name, mask=mask, length=6) for name in ("mask_shortest", "mask_allowed", "mask_pack")]
    ops += [op("mask_and", masks=[one, other], length=6) for one in every for other in every]
    ops += [op("mask_and", masks=[], length=6), op("mask_and", masks=[[0, 5], [1, 5], [0, 2, 1, 3]], length=6)]
    ops += [op("mask_allowing", elements=elements, length=10) for elements in ([], [3], [9, 0, 1, 9], list(range(10)), [10])]
    ops += [
        op("mask_unpack", bits=bits, length=length)
        for bits, length in (([0b11100], 6), ([255, 1], 9), ([0, 0], 16), ([255], 6), ([1], 9), ([], 0))
    ]
    ops += [
        op("mask_window", start=start, n=n, window=window, sinks=sinks)
        for start, n, window, sinks in ((0, 6, 3, 0), (0, 6, 2, 1), (40, 3, 8, 4), (2, 2, 9, 9))
    ]
    ops += [op("mask_window", start=0, n=3, window=0, sinks=0), op("mask_window", start=2**32 - 1, n=3, window=1, sinks=0)]
    ops += [op("mask_causal", start=3, n=2)]
    bad: list[tuple[list[int], int]] = [([0, 7], 6), ([7], 6), ([2**32 - 1] * 2, 6), ([0] * 9 + [1], 6)]
    ops += [op(name, mask=mask, length=length) for mask, length in bad for name in ("mask_shortest", "mask_allowed", "mask_pack")]
    return [*ops, op("mask_and", masks=[[0, 1], [0, 7]], length=6)]


VECTORS: dict[str, tuple[list[Op], dict[str, Any]]] = {
    make.__name__: (make(), {})
    for make in (
        forward_order,
        forward_positions,
        forward_masks,
        forward_samplers,
        forward_token_masks,
        forward_probes,
        forward_mistakes,
        forwards_together,
        masks,
    )
}
DOCS = {name: " ".join((globals()[name].__doc__ or "").split()) for name in VECTORS}
