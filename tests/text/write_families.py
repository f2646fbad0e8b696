"""Writes what `rust/text` knows of the families of templates: a small tokenizer, the control tokens of each family,
random conversations, and what `transformers` makes of them by each family's template.

Run it from anywhere, with `transformers` installed: `python tests/text/write_families.py`. `test_parity.py` checks that
the files are in step.
"""

# ruff: noqa: RUF001  # the bars of DeepSeek are wide ones

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from text.write_cases import load  # the folder of the tests must be on the path first

FAMILIES = Path(__file__).resolve().parents[2] / "rust" / "text" / "tests" / "data" / "families"

N_CONVERSATIONS = 200

Family = dict[str, Any]


def family(bos: str | None, ends: str, special: str, markers: str = "", *, calls: int = 0) -> Family:
    """The tokens of a family, each list apart by blanks, and how many calls one message may have."""
    return {
        "bos_token": bos,
        "eos_token": ends.split(maxsplit=1)[0],
        "ends": ends.split(),
        "special": special.split(),
        "markers": markers.split(),
        "calls": calls,
    }


CHATML = "<|endoftext|> <|im_start|> <|im_end|>"

FAMILY: dict[str, Family] = {
    "llama3": family(
        "<|begin_of_text|>",
        "<|eot_id|> <|eom_id|> <|end_of_text|>",
        "<|begin_of_text|> <|end_of_text|> <|start_header_id|> <|end_header_id|> <|eot_id|> <|eom_id|> <|python_tag|>",
        calls=1,
    ),
    "qwen25": family(None, "<|im_end|> <|endoftext|>", CHATML, "<tool_call> </tool_call>", calls=3),
    "qwen3": family(
        None, "<|im_end|> <|endoftext|>", CHATML, "<tool_call> </tool_call> <tool_response> </tool_response> <think> </think>", calls=3
    ),
    "mistral": family(
        "<s>", "</s>", "<s> </s> [INST] [/INST] [AVAILABLE_TOOLS] [/AVAILABLE_TOOLS] [TOOL_CALLS] [TOOL_RESULTS] [/TOOL_RESULTS]", calls=3
    ),
    "gemma": family("<bos>", "<end_of_turn> <eos>", "<bos> <eos> <start_of_turn> <end_of_turn>"),
    "phi3": family("<s>", "<|end|> <|endoftext|>", "<s> <|endoftext|> <|system|> <|user|> <|assistant|> <|end|>"),
    "phi4": family(
        "<|endoftext|>",
        "<|end|> <|endoftext|>",
        "<|endoftext|> <|system|> <|user|> <|assistant|> <|end|> <|tool|> <|/tool|> <|tool_call|> <|/tool_call|> <|tool_response|>",
        calls=3,
    ),
    "deepseek_r1": family(
        "<｜begin▁of▁sentence｜>",
        "<｜end▁of▁sentence｜>",
        "<｜begin▁of▁sentence｜> <｜end▁of▁sentence｜> <｜User｜> <｜Assistant｜> <｜tool▁calls▁begin｜> <｜tool▁calls▁end｜> "
        "<｜tool▁call▁begin｜> <｜tool▁call▁end｜> <｜tool▁sep｜> <｜tool▁outputs▁begin｜> <｜tool▁outputs▁end｜> "
        "<｜tool▁output▁begin｜> <｜tool▁output▁end｜>",
        "<think> </think>",
        calls=3,
    ),
    "harmony": family(
        None,
        "<|return|> <|call|> <|endoftext|>",
        "<|startoftext|> <|endoftext|> <|return|> <|constrain|> <|channel|> <|start|> <|end|> <|message|> <|call|>",
        calls=1,
    ),
}

CORPUS = (
    "The quick brown fox jumps over the lazy dog, and the dog answers: what does a violin cost?",
    "You are a helpful assistant. You may call functions for the question of the user, and answer in words.",
    '{"name": "get_price", "arguments": {"item": "violin", "count": 2}} {"type": "object", "properties": {}}',
    "Reasoning stands before the answer; a tool answers with a result, and the model goes on.\n\n",
    "Zwei Sätze auf Deutsch: Größe und Übermut. 漢字 and 😀 emoji. 12345 67890",
)

WORDS = (
    *(
        "the",
        "violin",
        "costs",
        "340",
        "and",
        "what",
        "is",
        "über",
        "漢字",
        "😀",
        "don't",
        "2 + 2",
        "a<b",
        "x>y",
        "[1]",
        "{}",
        "Hello",
        "ok",
    ),
    *("\n", "\n\n", "  ", "user", "assistant", "system", '"quoted"', "tool", "\\n", "end."),
)

TOOLS: tuple[dict[str, Any], ...] = (
    {
        "name": "get_price",
        "description": "Get the price of an item.",
        "parameters": {"type": "object", "properties": {"item": {"type": "string", "description": "What is sold."}}, "required": ["item"]},
    },
    {
        "name": "search-web",
        "description": 'Looks for "words", <b>bold</b> ones too.',
        "parameters": {
            "type": "object",
            "properties": {
                "words": {"type": "array", "items": {"type": "string"}},
                "most": {"type": "integer"},
                "kind": {"enum": ["a", "b"]},
            },
        },
    },
    {"name": "now", "description": "", "parameters": {"type": "object", "properties": {}}},
)


def tokenizer(family: Family) -> dict[str, Any]:
    """The base tokenizer with the tokens of a family added."""
    base: dict[str, Any] = json.loads((FAMILIES / "base.json").read_text(encoding="utf-8"))
    start = len(base["model"]["vocab"])
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    tokens = [(token, True) for token in family["special"]] + [(token, False) for token in family["markers"]]
    base["added_tokens"] = [
        {"id": start + place, "content": token, **flags, "special": special} for place, (token, special) in enumerate(tokens)
    ]
    return base


def trained() -> dict[str, Any]:
    """A byte-level tokenizer, trained on a few sentences."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    it = Tokenizer(models.BPE())
    it.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    it.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=420, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()), show_progress=False)
    it.train_from_iterator(CORPUS, trainer)
    written: dict[str, Any] = json.loads(it.to_str())
    return written


def text(draw: random.Random, most: int = 8) -> str:
    words = [draw.choice(WORDS) for _ in range(draw.randrange(1, most))]
    return " ".join(words).strip() or "ok"


def call(draw: random.Random, number: int) -> dict[str, Any]:
    tool = draw.choice(TOOLS)
    arguments = {"item": text(draw, 4), "n": draw.randrange(100)} if draw.random() < 0.8 else {}
    return {"id": f"call{number:05}", "type": "function", "function": {"name": tool["name"], "arguments": arguments}}


def conversation(draw: random.Random) -> dict[str, Any]:
    """A conversation in which the model has still to answer, a question or its tools."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": text(draw)}] if draw.random() < 0.5 else []
    with_tools = draw.random() < 0.6
    n_questions = draw.randrange(1, 4)
    for question in range(n_questions):
        messages.append({"role": "user", "content": text(draw)})
        for _ in range(draw.randrange(0, 3) if with_tools else 0):
            calls = [call(draw, place) for place in range(draw.randrange(1, 3))]
            messages.append({"role": "assistant", "content": None, "tool_calls": calls})
            messages.extend(
                {"role": "tool", "name": each["function"]["name"], "tool_call_id": each["id"], "content": text(draw)} for each in calls
            )
        if question + 1 < n_questions:
            messages.append({"role": "assistant", "content": text(draw)})
    tools = draw.sample(TOOLS, draw.randrange(1, 3)) if with_tools else None
    return {"messages": messages, "tools": tools and [{"type": "function", "function": tool} for tool in tools]}


def conversations() -> list[dict[str, Any]]:
    draw, thinking = random.Random(24), random.Random(25)
    made = [conversation(draw) for _ in range(N_CONVERSATIONS)]
    for message in (message for each in made for message in each["messages"]):
        if message["role"] == "assistant" and thinking.random() < 0.4:
            message["thought"] = text(thinking)
    return made


def thinking(message: dict[str, Any], name: str, *, follows_question: bool) -> dict[str, Any]:
    """The message with its thought where the template of a family reads it; without one where none is read."""
    plain = {key: value for key, value in message.items() if key != "thought"}
    if "thought" not in message:
        return plain
    match name:
        case "qwen3":
            return plain | {"reasoning_content": message["thought"]}
        case "harmony":
            return plain | {"thinking": message["thought"]}
        # Behind the answers of tools its template opens no thought.
        case "deepseek_r1" if follows_question and "tool_calls" not in message:
            return plain | {"content": f"<think>\n{message['thought']}\n</think>\n\n{message['content']}"}
        case _:
            return plain


def fitting(conversation: dict[str, Any], name: str) -> dict[str, Any]:
    """The conversation as far as a family has words for it.

    It is without tools, or has fewer calls at once, and has thoughts where the template reads them.
    """
    family = FAMILY[name]
    messages: list[dict[str, Any]] = []
    for whole in conversation["messages"]:
        message = thinking(whole, name, follows_question=bool(messages) and messages[-1]["role"] == "user")
        if message["role"] == "tool":
            place = int(message["tool_call_id"][4:])
            if place < family["calls"]:
                messages.append(message)
        elif "tool_calls" in message:
            calls = message["tool_calls"][: family["calls"]]
            if name == "deepseek_r1":
                calls = [
                    each | {"function": each["function"] | {"arguments": json.dumps(each["function"]["arguments"], ensure_ascii=False)}}
                    for each in calls
                ]
            if calls:
                messages.append(message | {"tool_calls": calls})
        else:
            messages.append(message)
    return {"messages": messages, "tools": conversation["tools"] if family["calls"] else None}


def digest(text: str) -> str:
    """FNV-1a of 64 bits over the text in UTF-8."""
    state = 0xCBF29CE484222325
    for byte in text.encode():
        state = (state ^ byte) * 0x100000001B3 % 2**64
    return f"{state:016x}"


def renderings() -> dict[str, list[str]]:
    """The digest of every conversation's text by the template of every family."""
    every = conversations()
    found = {}
    for name, family in FAMILY.items():
        template = (FAMILIES / f"{name}.jinja").read_text(encoding="utf-8")
        names = {key: family[key] for key in ("bos_token", "eos_token") if family[key]}
        reference = load(tokenizer(family), {**names, "chat_template": template})
        texts = []
        for conversation in every:
            fits = fitting(conversation, name)
            texts.append(reference.apply_chat_template(fits["messages"], tools=fits["tools"], tokenize=False, add_generation_prompt=True))
        found[name] = [digest(text) for text in texts]
    return found


def files() -> dict[Path, str]:
    """Every file that this script writes, with its content."""

    def lines(values: list[Any]) -> str:
        return "[\n" + ",\n".join(json.dumps(value, ensure_ascii=False) for value in values) + "\n]\n"

    return {
        FAMILIES / "base.json": json.dumps(trained(), ensure_ascii=False) + "\n",
        FAMILIES / "families.json": json.dumps(FAMILY, ensure_ascii=False, indent=1) + "\n",
        FAMILIES / "conversations.json": lines(conversations()),
        FAMILIES / "renderings.json": json.dumps(renderings(), indent=0) + "\n",
    }


if __name__ == "__main__":
    FAMILIES.mkdir(exist_ok=True)
    (FAMILIES / "base.json").write_text(json.dumps(trained(), ensure_ascii=False) + "\n", encoding="utf-8")
    for path, content in files().items():
        path.write_text(content, encoding="utf-8")
