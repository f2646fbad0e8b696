"""The model card, filled in from the checkpoint that is released."""

from __future__ import annotations

from .checkpoint import Checkpoint
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
days, units, opposites), small sums and differences, counting, spelling, reversing, sorting, fields of a sentence as
JSON, a call of one of up to four described tools, what the user said some turns ago, explanations of a few sentences,
short stories and rhymes, a `<think>` block on request, and saying that it does not know.

## How it was made

- Data: conversations that a seeded generator with templates and grammars of its own writes ({n_skills} skills). No text
  was copied from elsewhere. One exchange in fifty is held out for validation by what it asks.
- Training: {steps} steps, {tokens:.1f} million tokens, {hours:.1f} hours, seed {seed}. Tokens that the model
  only reads count a tenth. Muon for the matrices, AdamW for the rest; the released weights are a moving average.
- Loss on held-out conversations after the last measurement: {loss}.
- The mix of skills was adjusted while it trained, and the batch was halved after the first hundred steps, so the
  command makes a model like this one, not the same bytes.
- Command, from the root of the repository: `python -m tools.pie_tiny all`.

## Limits

English only. It knows what its data holds and little else; it may answer wrongly with confidence, above all sums of
three digits, words that it never saw and long texts (few of its conversations were longer than 500 tokens). It has no
knowledge of the time, of news or of persons. Ask a larger model for anything that matters.
"""


def model_card(checkpoint: Checkpoint, *, digest: str, n_bytes: int) -> str:
    """The text of MODEL_CARD.md for these weights."""
    measured = [held_out for _, _, held_out in checkpoint.losses if held_out > 0]
    return _CARD.format(
        millions=sum(tensor.numel() for tensor in checkpoint.weights.values()) / 1e6,
        megabytes=n_bytes / 1e6,
        digest=digest,
        n_skills=len(SKILLS),
        steps=f"{checkpoint.step:,}",
        tokens=checkpoint.n_tokens / 1e6,
        hours=checkpoint.seconds / 3600,
        seed=checkpoint.seed,
        loss=f"{measured[-1]:.3f} nats a token" if measured else "not measured",
    )
