"""What a step accepted is replaced where a grammar walks it: it goes back, wherever it began, and may refuse."""

from __future__ import annotations

import re

import pytest

from pie.engine import Engine
from support.launching import python_source, run

REPLACING = """
from inferlet import Context, Grammar, GrammarConstraint, InferletError, Matcher, Model, Sampler

async def replaced(model, pattern, before, wanted, cleared=()):
    tokenizer = model.tokenizer()
    matcher = Matcher(Grammar.from_regex(pattern), tokenizer)
    matcher.accept_tokens(tokenizer.encode(before))
    ctx = Context(model)
    ctx.append([41, 42])
    g = ctx.generate(Sampler.multinomial(1.5, 1), seed=5, max_tokens=400, constrain=GrammarConstraint(matcher))
    tokens, index = [], 0
    async for step in g:
        if index in cleared:
            step.clear_sampler()
        out = await step.execute()
        if index < len(wanted) and wanted[index] is not None:
            out = g.accept(tokenizer.encode(wanted[index]))
            tokens += out
        else:
            tokens += out.tokens
        index += 1
    return [tokenizer.decode(tokens), str(g.finish_reason)]

async def refused(model):
    tokenizer = model.tokenizer()
    ctx = Context(model)
    ctx.append([41, 42])
    g = ctx.generate(Sampler.multinomial(1.5, 1), seed=5, constrain=GrammarConstraint.from_regex("[a-c]{2}x+", model))
    seen = []
    async for step in g:
        tokens = (await step.execute()).tokens
        before = [ctx.seq_len, g.tokens_generated, str(g.finish_reason)]
        for text in ["d", "ab?", "abc"]:
            try:
                g.accept(tokenizer.encode(text))
            except InferletError as error:
                seen.append(error.code)
        after = [ctx.seq_len, g.tokens_generated, str(g.finish_reason)]
        g.accept(tokenizer.encode("bb"))
        break
    async for step in g:
        rest = tokenizer.decode((await step.execute()).tokens)
        break
    return [seen, before == after, rest]

async def main(jobs):
    model = Model.load("default")
    return [*[await replaced(model, *job) for job in jobs], await refused(model)]
"""


@pytest.mark.rows("PY-048 PY-060 PY-072 PY-075")
def test_a_grammar_goes_back_to_where_the_last_step_began(dummy: Engine) -> None:
    letters = list("abcb" * 60)
    jobs = [
        # The matcher walked before the generator had it.
        ["<[a-c]{6}>", "<", list("abcabc")],
        # Of many steps, each is replaced.
        ["[a-c]{240}", "", letters],
        # A step that draws nothing is one too, and not the one before it.
        ["[a-c]{4};", "", list("abca"), [1, 3]],
        # Steps that were not replaced lie between it and where the matcher was copied.
        ["[a-c]{40};", "", [None, None, "a", None, "b", "c"]],
        # What several of them said in one.
        ["(ab|ba){3}", "", ["ab", "ba", "ab"]],
    ]
    outcome = run(dummy, python_source(REPLACING), jobs)
    assert outcome.code is None, outcome.traceback
    *texts, (refused, is_unchanged, rest) = outcome.value
    some, ending = texts.pop(3)
    assert texts == [
        ["abcabc>", "constraint"],
        ["".join(letters), "constraint"],
        ["abca;", "constraint"],
        ["abbaab", "constraint"],
    ]
    assert re.fullmatch("[a-c]{40};", some)
    assert ending == "constraint"
    # What it does not allow is refused, and neither the context nor the grammar has moved.
    assert refused == ["grammar-mismatch"] * 3
    assert is_unchanged
    assert set(rest) == {"x"}
