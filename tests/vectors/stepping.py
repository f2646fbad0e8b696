"""Vectors of generators of which a program takes part in each step."""

from __future__ import annotations

from typing import Any

from tests.vectors.ops import ARGMAX, MODEL, TOP_P, WARM, Op, answers, collected, generate, op, prompt, report, state, transcript
from tests.vectors.passes import ENTROPY, LOGITS, distribution, logprobs

V = MODEL.vocab_size
# The languages whose programs run these vectors.
SERVED = ["python", "typescript", "rust"]


def step(gen: str, name: str = "", **rest: Any) -> Op:
    """A step, whose output has a name where it has one."""
    return op("step", gen=gen, **({"as_": name} if name else {}), **rest)


def probed(name: str, probe: Op, index: int = 0) -> Op:
    """A probe of one step."""
    return {"as": name, "index": index, "probe": probe}


def token_masks() -> list[Op]:
    """A mask in the options restricts every step, step by step and collected; one that allows nothing or does not fit
    is refused when the generator is made.
    """
    ops = []
    for name, mask in {"none": [], "all": [0, V], "half": [V // 2, V // 2], "one": [1234, 1], "few": [100, 3, 7, 1, 2, 2]}.items():
        for sampler in (ARGMAX, WARM | {"seed": 8}):
            gen = f"{name}/{sampler['kind']}"
            ops += [*prompt(gen, 41, 42), *collected(gen, gen, sampler, 4, logit_mask=mask), *report(gen)]
            ops += [*prompt("x", 41, 42), generate("x", gen, sampler, 4, logit_mask=mask), *[step(gen)] * 2, op("collect_tokens", gen=gen)]
    ops += [*prompt("c", 1), *(generate("c", "bad", logit_mask=mask) for mask in ([0], [V], [0, V + 1], [5, 0, 3, 0]))]
    return [*ops, *state("c"), *collected("c", "g", n=2)]


def constraints() -> list[Op]:
    """Constraints are asked once in each step, with what the step before accepted, nothing first. What all of them
    and the mask of the options allow may be drawn. Step by step, collected and as text it is the same.
    """
    evens = [0] + [1] * (V - 1)
    ops = []
    cases: dict[str, list[list[list[int]]]] = {
        "free": [[]],
        "one": [[[70, 1], [0, 5], [], [V - 1, 1]]],
        "two": [[[0, 100], [50, 100], []], [[90, 400], [], evens]],
        "three": [[[0, 2000]] * 3, [[100, 3000]] * 2, [evens] * 9],
    }
    for name, masks in cases.items():
        given = {"constrain": [{"masks": one} for one in masks], "logit_mask": [] if name != "three" else [150, 50]}
        for way, rest in {
            "steps": [step(f"{name}/steps")] * 5,
            "tokens": [op("collect_tokens", gen=f"{name}/tokens")],
            "text": [op("collect_text", gen=f"{name}/text")],
            "mixed": [step(f"{name}/mixed"), op("collect_tokens", gen=f"{name}/mixed")],
        }.items():
            gen = f"{name}/{way}"
            ops += [
                *prompt(gen, 51, 52),
                generate(gen, gen, TOP_P, 4, seed=3, **given),
                *rest,
                op("constraint_log", gen=gen),
                *report(gen),
                *state(gen),
            ]
    # Added later, beside the first; and a stop token that a mask forces.
    ops += [*prompt("late", 51, 52), generate("late", "late", n=3, constrain=[{"masks": [[7, 1]]}]), step("late")]
    ops += [
        op("constrain", gen="late", constrain=[{"masks": [[9, 1], [8, 1]]}]),
        op("collect_tokens", gen="late"),
        op("constraint_log", gen="late"),
    ]
    # A stop token that the program named ends the text, and is not shown.
    ops += [*prompt("said", 51, 52), generate("said", "said", n=9, stop=[66], constrain=[{"masks": [[65, 1], [66, 1]]}])]
    ops += [op("collect_text", gen="said"), *report("said")]
    end = min(MODEL.end_tokens)
    ops += [*prompt("stop", 51, 52), generate("stop", "stop", n=9, constrain=[{"masks": [[], [end, 1]]}]), op("collect_tokens", gen="stop")]
    return [*ops, op("constraint_log", gen="stop"), *report("stop"), *state("stop")]


def bad_masks() -> list[Op]:
    """A mask that forbids everything or does not fit fails its step, which does not run: the context is as before, and
    another generator goes on. The same holds of masks that together forbid everything.
    """
    ops = []
    for name, masks in {
        "nothing": [[[], [0]]],
        "too long": [[[], [0, V + 1]]],
        "too many runs": [[[], [0, 0] * V + [1]]],
        "together": [[[], [0, 5]], [[], [5, 5]]],
        "huge": [[[], [2**32 - 1, 2**32 - 1]]],
    }.items():
        ops += [*prompt(name, 61, 62), generate(name, name, n=3, constrain=[{"masks": one} for one in masks])]
        ops += [step(name), *state(name), step(name), *state(name), *report(name), op("collect_tokens", gen=name)]
        ops += [op("constraint_log", gen=name), *collected(name, f"{name}/after", n=2)]
    return ops


def step_probes() -> list[Op]:
    """Probes of every step and of one read the row from which the step draws, unmasked; their handles give nothing of
    other steps. Collectors read them too, and give the same tokens.
    """
    ops = [*prompt("c", 71, 72), generate("c", "g", WARM, 5, seed=4, logit_mask=[0, 9])]
    ops += [op("probe_each_step", gen="g", as_="every", index=0, probe=ENTROPY)]
    ops += [op("probe_each_step", gen="g", as_="top", index=0, probe=distribution(1.0, 3))]
    for n in range(3):
        own = [probed(f"logits {n}", LOGITS), probed(f"some {n}", logprobs(1, 2, V - 1))] if n != 1 else []
        ops += [step("g", f"out {n}", probes=own)]
        ops += [op("read", out=f"out {n}", handle=handle) for handle in ("auto", "every", "top", f"logits {n}", f"some {n}", "logits 0")]
    ops += [op("collect_tokens", gen="g"), *report("g"), *prompt("d", 71, 72), *collected("d", "h", WARM, 5, seed=4, logit_mask=[0, 9])]
    # Without probes the tokens of a step say it all.
    ops += [
        *prompt("e", 71, 72),
        generate("e", "i", n=2),
        step("i", "plain"),
        op("read", out="plain", handle="auto"),
        op("read", out="plain", handle="every"),
    ]
    bad = [distribution(0.0, 1), distribution(1.0, V + 1), logprobs(), logprobs(V)]
    return [*ops, *(op("probe_each_step", gen="i", as_="bad", index=0, probe=one) for one in bad), step("i"), *state("e")]


def absent_rows() -> list[Op]:
    """A step that lacks the row of a probe fails, and the context is as before."""
    ops = [*prompt("c", 71, 72), generate("c", "g", n=3), step("g"), op("probe_each_step", gen="g", as_="far", index=1, probe=ENTROPY)]
    return [*ops, step("g"), *state("c"), *collected("c", "h", n=2)]


def accepted() -> list[Op]:
    """What a step accepted can be replaced until the program goes on: cut behind a stop token, and at the cap. What
    follows is as if those tokens had been drawn.
    """
    end = min(MODEL.end_tokens)
    ops = []
    for name, tokens in {
        "one": [5],
        "three": [5, 6, 7],
        "none": [],
        "stop": [5, end, 7],
        "cap": [5, 6, 7, 8, 9, 10],
    }.items():
        ops += [*prompt(name, *range(80, 92)), generate(name, name, n=5), step(name), op("accept", gen=name, tokens=tokens), *state(name)]
        ops += [
            *report(name),
            step(name),
            op("accept", gen=name, tokens=tokens[:1]),
            op("accept", gen=name, tokens=tokens[1:2]),
            *report(name),
        ]
        ops += [op("collect_tokens", gen=name), *report(name), *state(name), *collected(name, f"{name}/after", n=2), *state(name)]
    # The same tokens, given and drawn: the same context.
    ops += [*prompt("drawn", 81, 82), generate("drawn", "drawn", n=4), step("drawn")]
    first = answers(ops[:-1], ops[-1])["tokens"][0]
    ops += [op("accept", gen="drawn", tokens=[first]), op("collect_tokens", gen="drawn")]
    ops += [*prompt("same", 81, 82, first), *collected("same", "same", n=3)]
    # Final: before the first step, behind a fill, a fork, a cut, a flush, and the opening of the next step.
    ops += [*prompt("c", 83, 84), generate("c", "g", n=9), op("accept", gen="g", tokens=[1])]
    changes: list[Op] = [
        op("append", ctx="c", tokens=[3]),
        op("fork", ctx="c", as_="f"),
        op("save", ctx="c", name="s"),
        op("flush", ctx="c"),
    ]
    for change in changes:
        ops += [step("g"), change, op("accept", gen="g", tokens=[1])]
    ops += [
        step("g"),
        op("accept", gen="g", tokens=[V]),
        op("accept", gen="g", tokens=[2]),
        op("truncate", ctx="c", n=1),
        op("accept", gen="g", tokens=[1]),
    ]
    return [*ops, op("delete", name="s"), *state("c")]


def cleared_samplers() -> list[Op]:
    """A step whose sampler is cleared draws nothing; its probes are read, and somebody has to say what follows before
    the next step.
    """
    ops = [*prompt("c", 91, 92), generate("c", "g", n=4), step("g", "a", clear=True, probes=[probed("top", distribution(1.0, 2))])]
    ops += [
        op("read", out="a", handle="auto"),
        op("read", out="a", handle="top"),
        step("g"),
        op("collect_tokens", gen="g"),
        *report("g"),
        *state("c"),
    ]
    ops += [op("accept", gen="g", tokens=[33, 34]), *state("c"), step("g", "b"), op("read", out="b", handle="auto"), *report("g")]
    # Given the likeliest of each row, it is what argmax draws.
    ops += [*prompt("d", 91, 92), generate("d", "h", n=3), *prompt("e", 91, 92), *collected("e", "i", n=3)]
    drawn: list[int] = answers(ops[:-1], ops[-1])
    for n, token in enumerate(drawn):
        ops += [step("h", f"h{n}", clear=True, probes=[probed(f"h{n}", distribution(1.0, 1))]), op("read", out=f"h{n}", handle=f"h{n}")]
        ops += [op("accept", gen="h", tokens=[token])]
    return [*ops, step("h"), *report("h"), *state("d"), *state("e")]


def steps_again() -> list[Op]:
    """A step that fails comes again with its probes and its cleared sampler, whether a draft was refused or a mask;
    the next one has neither. What a speculator was told stands where tokens are added, and is said anew where some are
    taken back.
    """
    ops = []
    top = probed("top", distribution(1.0, 2))
    for name, options in {
        "draft": {"speculator": {"drafts": [[5, V]]}},
        "mask": {"constrain": [{"masks": [[], [0]]}]},
        "both": {"speculator": {"drafts": [[], [V], [1]]}, "constrain": [{"masks": [[], []]}]},
    }.items():
        ops += [*prompt(name, 111, 112), generate(name, name, WARM, n=6, seed=5, **options)]
        if name != "draft":
            ops += [step(name)]
        ops += [step(name, f"{name} failed", probes=[top | {"as": f"{name} top"}]), *state(name), *report(name)]
        if name == "mask":
            ops += [op("constraint_log", gen=name)]
            continue
        ops += [step(name, f"{name} again"), *(op("read", out=f"{name} again", handle=handle) for handle in ("auto", f"{name} top"))]
        ops += [step(name, f"{name} next"), *(op("read", out=f"{name} next", handle=handle) for handle in ("auto", f"{name} top"))]
        ops += [*report(name), *state(name), op("collect_tokens", gen=name), op("speculator_log", gen=name)]
    ops += [*prompt("cleared", 113, 114), generate("cleared", "cleared", n=6, speculator={"drafts": [[V], [V], [], [3]]})]
    ops += [step("cleared", clear=True), step("cleared", probes=[top]), step("cleared", "again"), *state("cleared")]
    ops += [op("read", out="again", handle="top"), op("read", out="again", handle="auto"), op("accept", gen="cleared", tokens=[8, 9])]
    ops += [op("accept", gen="cleared", tokens=[8, 9]), op("accept", gen="cleared", tokens=[8, 9, 10]), step("cleared")]
    return [*ops, op("accept", gen="cleared", tokens=[4]), op("speculator_log", gen="cleared"), *report("cleared"), *state("cleared")]


def drafts() -> list[Op]:
    """A speculator changes no token, at any temperature, whatever it proposes: a draft is kept while the sampler draws
    the same, and masks apply to each. It is told how many were not kept, and then what was drawn.
    """
    ops = []
    for sampler in (ARGMAX, WARM | {"seed": 6}):
        kind = sampler["kind"]
        plain = [*prompt(f"plain {kind}", 101, 102), *collected(f"plain {kind}", f"plain {kind}", sampler, 12)]
        said: list[int] = answers(plain[:-1], plain[-1])
        ops += plain
        cases: dict[str, list[list[int]]] = {
            "right": [said[0:3], said[4:5], said[6:10]],
            "wrong": [[1, 2, 3], [4], [5, 6]],
            "half": [[*said[:2], 1, said[3]], [], [said[4], 1]],
            "none": [],
        }
        for name, proposed in cases.items():
            gen = f"{name} {kind}"
            ops += [*prompt(gen, 101, 102), generate(gen, gen, sampler, 12, speculator={"drafts": proposed})]
            ops += [step(gen), step(gen), op("collect_tokens", gen=gen), op("speculator_log", gen=gen), *report(gen), *state(gen)]
    # Beside a mask in the options, and beside a constraint, which has drafts ignored.
    for name, options in {"masked": {"logit_mask": [0, 50]}, "constrained": {"constrain": [{"masks": [[0, 50]] * 9}]}}.items():
        plain = [*prompt("x", 101, 102), *collected("x", "x", n=6, logit_mask=[0, 50])]
        said = answers(plain[:-1], plain[-1])
        ops += [*prompt(name, 101, 102), generate(name, name, n=6, speculator={"drafts": [said[:2], [70], [said[4]]]}, **options)]
        ops += [op("collect_tokens", gen=name), *state(name)]
    ops += [*prompt("replaced", 101, 102), generate("replaced", "replaced", n=6, speculator={"drafts": [[1], [2]]}), step("replaced")]
    return [*ops, op("accept", gen="replaced", tokens=[8, 9]), step("replaced"), op("speculator_log", gen="replaced"), *state("replaced")]


def declared_options() -> list[Op]:
    """What the engine does alone changes no token: its own drafts, and a horizon. Perturbing needs an adapter, and a
    text that is thought to become at least one token long.
    """
    words = [201, 202, 203, 204] * 5
    ops = []
    for sampler in (ARGMAX, WARM | {"seed": 6}):
        for name, options in {"plain": {}, "n-gram": {"system_speculation": True}, "horizon": {"horizon": 3}}.items():
            gen = f"{name} {sampler['kind']}"
            ops += [*prompt(gen, *words), *collected(gen, gen, sampler, 12, **options), *report(gen), *state(gen)]
            ops += [*prompt("x", *words), generate("x", gen, sampler, 6, **options), op("collect_text", gen=gen)]
    ops += [
        *prompt("c", 1, 2),
        generate("c", "g", n=3),
        op("horizon", gen="g", n=1),
        op("horizon", gen="g", n=0),
        op("collect_tokens", gen="g"),
    ]
    ops += [generate("c", "h", n=3), op("zo_seed", gen="h", seed=-5), step("h"), *state("c"), generate("c", "i", n=3, zo_seed=7)]
    return [*ops, op("collect_tokens", gen="i"), generate("c", "j", n=3, horizon=0), *state("c"), *collected("c", "k", n=2)]


def twins(name: str, said: list[Op], sampler: Op = ARGMAX, *changes: Op, n: int = 8, **options: Any) -> list[Op]:
    """The same generation collected and step by step. The contexts of both are made by `said`, which names none."""
    ops: list[Op] = []
    for gen, rest in {f"{name} at once": [op("collect_tokens")], f"{name} stepped": [op("step")] * (n + 1)}.items():
        ops += [op("context", as_=gen), *(one | {"ctx": gen} for one in said), generate(gen, gen, sampler, n, **options)]
        ops += [*(one | {"gen": gen} for one in (*changes, *rest)), *report(gen), *state(gen)]
    whole, *steps = (entry for one, entry in transcript(ops) if one["op"] in ("collect_tokens", "step"))
    assert whole == [token for step in steps if step for token in step["tokens"]], name
    return ops


def late_options() -> list[Op]:
    """What restricts every step and who proposes tokens can be said until the first step is opened, beside whatever was
    said before: each says it in place of the option.
    """
    words = [201, 202, 203, 204] * 5
    ops = []
    for name, mask in {"half": [V // 2, V // 2], "few": [100, 3, 7, 1, 2, 2], "any": []}.items():
        mine = [op("logit_mask", gen=name, mask=mask), op("collect_tokens", gen=name)]
        ops += [*prompt(name, *words), generate(name, name, WARM, seed=3, logit_mask=[9, 20]), op("add_stop", gen=name, tokens=[1]), *mine]
        ops += [*report(name), *state(name), *prompt("x", *words), *collected("x", f"{name} option", WARM, seed=3, logit_mask=mask)]
    for name, more in {"n-gram": {}, "model": {"model": MODEL.name}}.items():
        drafting = op("system_speculation", gen=name, **more)
        ops += [*prompt(name, *words), generate(name, name, n=12), drafting, op("logit_mask", gen=name, mask=[0, 4000])]
        ops += [op("horizon", gen=name, n=4), op("collect_tokens", gen=name), *report(name), *state(name)]
    ops += [*prompt("x", *words), *collected("x", "plain", n=12, logit_mask=[0, 4000])]
    # Who proposes may change; both a speculator and the engine may not, and no other model.
    ops += [*prompt("c", *words), generate("c", "g", n=6, system_speculation=True), op("system_speculation", gen="g", model=MODEL.name)]
    ops += [op("system_speculation", gen="g"), op("system_speculation", gen="g", model="nobody"), op("collect_tokens", gen="g")]
    ops += [*prompt("d", *words), generate("d", "h", n=6, speculator={"drafts": [[1]]}), op("system_speculation", gen="h")]
    ops += [op("collect_tokens", gen="h"), *prompt("e", *words), generate("e", "i", n=6)]
    bad: list[list[int]] = [[0], [V], [0, V + 1], [0] * (V + 2)]
    ops += [op("logit_mask", gen="i", mask=mask) for mask in bad]
    # Once a step was opened it is too late.
    late = [op("logit_mask", gen="i", mask=[5, 5]), op("system_speculation", gen="i")]
    return [*ops, step("i"), *late, op("collect_tokens", gen="i"), *late, *report("i"), *state("e")]


def stepped_options() -> list[Op]:
    """What the engine does alone gives the same tokens step by step: every sampler, every option, and what is changed
    before the first step.
    """
    words = [op("append", tokens=[201, 202, 203, 204] * 5)]
    samplers: dict[str, Op] = {
        "argmax": ARGMAX,
        "multinomial": WARM,
        "top k": {"kind": "top_k", "temperature": 1.0, "k": 20},
        "top p": TOP_P,
        "min p": {"kind": "min_p", "temperature": 1.0, "p": 0.05},
        "top k and p": {"kind": "top_k_top_p", "temperature": 0.7, "k": 40, "p": 0.9},
    }
    ops = []
    for name, sampler in samplers.items():
        warm = {} if name == "argmax" else {"seed": 6}
        ops += twins(name, words, sampler, **warm)
        ops += twins(f"{name}, n-gram", words, sampler, system_speculation=True, **warm)
        ops += twins(f"{name}, horizon", words, sampler, horizon=3, **warm)
    drawn: list[int] = answers([op("context", as_="x"), words[0] | {"ctx": "x"}, generate("x", "x")], op("collect_tokens", gen="x"))
    options: dict[str, Op] = {
        "max tokens": {"n": 3},
        "stop": {"stop": [drawn[4]]},
        "logit mask": {"logit_mask": [100, 300]},
        # By this seed the model ends its turn.
        "end": {"sampler": WARM, "seed": 4, "n": 40},
        "no end": {"sampler": WARM, "seed": 4, "n": 40, "ignore_eos": True},
    }
    for name, given in options.items():
        ops += twins(f"option {name}", [op("append", tokens=[41, 42])] if "end" in name else words, **given)
    changes = {
        "add stop": op("add_stop", tokens=[drawn[3]]),
        "max tokens": op("set_max_tokens", n=5),
        "ignore eos": op("ignore_eos", value=True),
        "horizon": op("horizon", n=2),
        "seed": op("set_seed", seed=9),
    }
    for name, change in changes.items():
        ops += twins(f"then {name}", words, WARM, change, seed=6)
    return ops


def stepped_cues() -> list[Op]:
    """The same of what Rust does otherwise: no automatic cue, and other stop tokens in place of those of the
    template.
    """
    turn = [op("user", text="Hello!")]
    drawn: list[int] = answers([op("context", as_="x"), turn[0] | {"ctx": "x"}, generate("x", "x")], op("collect_tokens", gen="x"))
    ops = [*twins("cue", turn), *twins("no cue", turn, auto_flush=False)]
    return [*ops, *twins("stop", turn, ARGMAX, op("stop", tokens=[drawn[2]])), *twins("no stop", turn, ARGMAX, op("stop", tokens=[]))]


VECTORS: dict[str, tuple[list[Op], dict[str, Any]]] = {
    make.__name__: (make(), {"languages": ["python", "typescript"] if make is stepped_cues else SERVED})
    for make in (
        token_masks,
        constraints,
        bad_masks,
        step_probes,
        absent_rows,
        accepted,
        cleared_samplers,
        steps_again,
        drafts,
        declared_options,
        late_options,
        stepped_options,
        stepped_cues,
    )
}
DOCS = {name: " ".join((globals()[name].__doc__ or "").split()) for name in VECTORS}
_ROWS = {
    "token_masks": "PY-049",
    "constraints": "PY-048 PY-060 PY-117 RS-135",
    "step_probes": "PY-064 PY-073 PY-095",
    "accepted": "PY-075",
    "cleared_samplers": "PY-072 PY-095",
    "steps_again": "PY-073 PY-095",
    "drafts": "PY-050 PY-134..136 RS-154",
    "declared_options": "PY-051 PY-053..054 PY-061 PY-063 PY-139",
    "late_options": "PY-049 PY-051 JS-052 JS-054 RS-074",
    "stepped_options": "PY-051 PY-054 PY-057 PY-059 PY-061",
    "stepped_cues": "PY-055 PY-058",
}
SHOWS = _ROWS
