"""The model card, filled in from the checkpoint that is released."""

from __future__ import annotations

from textwrap import fill
from typing import NamedTuple

from .checkpoint import Checkpoint
from .evaluation import PER_SKILL, SEALED_DIGEST
from .score import ScoreCard
from .skills import SKILLS

_CARD = """\
# pie-tiny

A chat model of {millions:.1f} million parameters that comes inside Pie. It is there so that programs, examples and
tests run on a real model at once, on any machine, without a download. It is not made to be relied on for facts.

## What it is

- Architecture: Qwen3 (`Qwen3ForCausalLM`): 8 layers, width 256, MLP 512, 4 query and 2 key-value heads of 64, tied
  embeddings, context length 2,048. `transformers` loads this folder unchanged.
- Tokenizer: byte-level BPE of 4,096 entries; each digit is one token.
- Turns: ChatML, with tools in the system turn, `<tool_call>` and `<tool_response>`. Thinking is off unless the template
  gets `enable_thinking` or the user asks for it; past thinking stays in the text.
- Weights: bfloat16, {megabytes:.1f} MB, sha256 `{digest}`.

## What it can do

Greetings and small talk, answers in one word, in JSON or in capitals, a few hundred facts (capitals, colours, animals,
days, units, opposites), sums and differences up to three digits, counting, spelling, reversing, sorting, first and last
of lists, fields of a sentence as JSON, calls of one of up to four described tools, answers from a tool's result or from
a passage, what the user said some turns ago, explanations of a few sentences, short stories and rhymes, a `<think>`
block on request, and saying that it does not know. It has also learnt to ask back for what a call lacks and to say that
a call failed; the scores measure neither these two nor explanations and rhymes.

## Scores

Greedy answers to the sealed set: {n_items:,} questions, {per_skill} of each skill below, whose wordings, names, words,
pairs of numbers and tools are kept out of the training data (`tools/pie_tiny/draw.py` does it,
`tests/pie_tiny/test_splits.py` tests it, and where it failed "How it was made" says so; the set is
`tools/pie_tiny/sealed.jsonl`, SHA-256 `{sealed_start}...`). An answer counts if it is right and ends by itself.

{scores}

`python -m tools.pie_tiny score`, from the root of the repository, prints these again.

## How it was made

- Data: conversations that a seeded generator with templates and grammars of its own writes ({n_kinds} kinds), and
  drills in sums, copying, spelling, sorting, looking up and putting words into other forms. No text was copied from
  elsewhere.
- Training: {steps} steps, {tokens:.1f} million tokens, {hours:.1f} hours on {machine}.
  Of tokens that the model only reads, three in a hundred count; in one of four documents some of them are cut into
  smaller ones. Muon for the matrices, AdamW for the rest; the released weights are a moving average.
- Loss on held-out conversations when it was last measured, of the weights themselves, not their average: {loss}.
{origin}
- Command, from the root of the repository: `{command}`.

## Limits

English only. It knows what its data holds and little else, and it may answer wrongly with confidence; the table says
where it is weak. Requests in words that are far from those of its data surprise it. It has no knowledge of the time, of
news or of persons. There is no draft model beside it. Ask a larger model for anything that matters.
"""


class Origin(NamedTuple):
    """What a checkpoint does not know of its making; each line of `before` is a point of the list."""

    machine: str = "this machine"
    before: str = "Training began with random weights."
    command: str = "python -m tools.pie_tiny all"


def model_card(checkpoint: Checkpoint, scores: ScoreCard, origin: Origin, *, digest: str, n_bytes: int) -> str:
    """The text of MODEL_CARD.md for these weights."""
    measured = [held_out for _, _, held_out in checkpoint.losses if held_out > 0]
    return _CARD.format(
        millions=sum(tensor.numel() for tensor in checkpoint.weights.values()) / 1e6,
        megabytes=n_bytes / 1e6,
        digest=digest,
        n_items=scores.n_items,
        per_skill=PER_SKILL,
        sealed_start=SEALED_DIGEST[:12],
        scores="\n".join(scores.lines()),
        machine=origin.machine,
        origin="\n".join(fill(f"- {line}", 118, subsequent_indent="  ") for line in origin.before.splitlines()),
        command=origin.command,
        n_kinds=len(SKILLS),
        steps=f"{checkpoint.step:,}",
        tokens=checkpoint.n_tokens / 1e6,
        hours=checkpoint.seconds / 3600,
        loss=f"{measured[-1]:.3f} nats a token" if measured else "not measured",
    )
