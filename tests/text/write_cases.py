"""Writes what `rust/text` is compared with: small tokenizers, and what `transformers` makes of conversations and texts
with them.

Run it from anywhere, with `transformers` installed: `python tests/text/write_cases.py`. `test_parity.py` checks that
the files are in step.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DATA = Path(__file__).resolve().parents[2] / "rust" / "text" / "tests" / "data"
TEMPLATES = DATA / "templates"

Message = dict[str, str]

CONTROL = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|begin_of_text|>",
    "<|start_header_id|>",
    "<|end_header_id|>",
    "<|eot_id|>",
    "<bos>",
    "<start_of_turn>",
    "<end_of_turn>",
    "<s>",
    "</s>",
)
"""The control tokens of several families, so that one tokenizer serves every template."""

MARKERS = ("<think>", "</think>", "[INST]", "[/INST]", "<|turn|>")
"""Added tokens that are not special."""

SPECIAL = {
    "chatml": {"bos_token": "<|endoftext|>", "eos_token": "<|im_end|>"},
    "chatml_default_system": {"bos_token": "<|endoftext|>", "eos_token": "<|im_end|>"},
    "chatml_thinking": {"bos_token": "<|endoftext|>", "eos_token": "<|im_end|>"},
    "llama3": {"bos_token": "<|begin_of_text|>", "eos_token": "<|eot_id|>"},
    "gemma": {"bos_token": "<bos>", "eos_token": "<end_of_turn>"},
    "mistral": {"bos_token": "<s>", "eos_token": "</s>"},
}
"""The special tokens that each template is given."""

MERGES = (
    *(("e", "r"), ("Ċ", "Ċ"), ("Ġ", "Ġ"), ("u", "s"), ("us", "er"), ("Ġ", "a"), ("h", "e"), ("Ġ", "t"), ("Ġt", "he"), ("l", "l")),
    *((":", "Ċ"), ("o", "Ġ"), ("s", "s"), ("Ã", "©"), ("ð", "Ł"), ("ðŁ", "ĺ"), (".", "Ċ"), ("i", "n"), ("l", "o"), ("he", "lo")),
)
"""Merges that tempt: across words, line breaks, and the bytes of a character."""

SPLIT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"

TEXTS = (
    "",
    "Hello, world!",
    "hello world",
    "user\n\n  two lines\n",
    "Ça va? Déjà vu, e\u0301t\u00e9.",
    "漢字 and 😀😀 emoji 👩‍👩‍👧",
    "<|im_start|>user\nhi<|im_end|>\n",
    "a<s>b</s> c <think>d</think>",
    "it's 12345 :\n\n.\n",
    "\t tabs\tand\x00control\x7f",
    "<|im_start<|im_end|>|>",
    "   leading and trailing   ",
)

CONVERSATIONS: tuple[tuple[Message, ...], ...] = (
    ({"role": "user", "content": "Hello!"},),
    ({"role": "system", "content": "Be brief."}, {"role": "user", "content": "hello world"}),
    ({"role": "user", "content": "  spaces around \n"}, {"role": "assistant", "content": "Sure:"}, {"role": "user", "content": ":\n\n"}),
    (
        {"role": "system", "content": "Antworte auf Deutsch: äöü ß € 🦊."},
        {"role": "user", "content": "Eins, zwei?\n\nUnd 345?"},
        {"role": "assistant", "content": "Drei.\n"},
        {"role": "user", "content": "\n"},
        {"role": "assistant", "content": ""},
        {"role": "user", "content": "us"},
    ),
    (
        {"role": "user", "content": "1+1?"},
        {"role": "assistant", "content": "<think>\neasy\n</think>\n\n2"},
        {"role": "user", "content": "Sure?"},
    ),
)


def byte_alphabet() -> list[str]:
    """The characters that stand for the bytes 0 to 255."""
    alphabet = [chr(byte) if 0x21 <= byte <= 0x7E or 0xA1 <= byte <= 0xAC or byte >= 0xAE else "" for byte in range(256)]
    others = iter(range(0x100, 0x200))
    return [character or chr(next(others)) for character in alphabet]


def added_token(token_id: int, content: str, *, special: bool) -> dict[str, Any]:
    """One entry of `added_tokens`."""
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": token_id, "content": content, **flags, "special": special}


def byte_level() -> dict[str, Any]:
    """A byte-level tokenizer: 256 bytes, a few merges, control tokens and markers."""
    tokens = byte_alphabet() + [left + right for left, right in MERGES]
    added = [(content, content in CONTROL) for content in CONTROL + MARKERS]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    split = {"type": "Split", "pattern": {"Regex": SPLIT}, "behavior": "Isolated", "invert": False}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [added_token(len(tokens) + place, content, special=special) for place, (content, special) in enumerate(added)],
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, byte_level]},
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": bpe(tokens, MERGES, unk_token=None, byte_fallback=False),
    }


def metaspace() -> dict[str, Any]:
    """A sentencepiece-like tokenizer: a character for the space, and bytes for what is not in the vocabulary."""
    special = ("<unk>", "<s>", "</s>")
    merges = (("▁", "h"), ("▁", "w"), ("e", "l"), ("l", "o"))
    tokens = [*special, *(f"<0x{byte:02X}>" for byte in range(256)), *list("▁helowrd<s>/"), *(left + right for left, right in merges)]
    replace = {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}
    strip = {"type": "Strip", "content": " ", "start": 1, "stop": 0}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [added_token(token_id, content, special=True) for token_id, content in enumerate(special)],
        "normalizer": None,
        "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": False},
        "post_processor": None,
        "decoder": {"type": "Sequence", "decoders": [replace, {"type": "ByteFallback"}, {"type": "Fuse"}, strip]},
        "model": bpe(tokens, merges, unk_token="<unk>", byte_fallback=True),
    }


def bpe(tokens: list[str], merges: tuple[tuple[str, str], ...], *, unk_token: str | None, byte_fallback: bool) -> dict[str, Any]:
    """The model of a tokenizer."""
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": unk_token,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": unk_token is not None,
        "byte_fallback": byte_fallback,
        "ignore_merges": False,
        "vocab": {token: token_id for token_id, token in enumerate(tokens)},
        "merges": [list(merge) for merge in merges],
    }


def load(tokenizer: dict[str, Any], config: dict[str, Any]) -> Any:
    """The tokenizer as `transformers` loads it from a model directory."""
    from transformers import AutoTokenizer

    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        (folder / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
        (folder / "tokenizer_config.json").write_text(
            json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", **config}), encoding="utf-8"
        )
        return AutoTokenizer.from_pretrained(folder)


def conversation_cases() -> Iterator[dict[str, Any]]:
    """Every conversation by every template that only appends to it."""
    for name, special in SPECIAL.items():
        reference = load(byte_level(), {**special, "chat_template": (TEMPLATES / f"{name}.jinja").read_text(encoding="utf-8")})
        for conversation in CONVERSATIONS:
            merges_system = name in ("gemma", "mistral") and conversation[0]["role"] == "system"
            if merges_system:
                continue
            text = reference.apply_chat_template(list(conversation), tokenize=False, add_generation_prompt=True)
            ids = reference.apply_chat_template(list(conversation), tokenize=True, add_generation_prompt=True, return_dict=False)
            yield {"template": name, "messages": list(conversation), "text": text, "ids": ids}


def text_cases() -> Iterator[dict[str, Any]]:
    """Every text by every tokenizer."""
    for name, tokenizer in (("byte_level", byte_level()), ("metaspace", metaspace())):
        reference = load(tokenizer, {"clean_up_tokenization_spaces": False})
        for text in TEXTS:
            ids = reference.encode(text, add_special_tokens=False)
            yield {"tokenizer": name, "text": text, "ids": ids, "decoded": reference.decode(ids)}


def expression_cases() -> Iterator[dict[str, Any]]:
    """What templates print and compute with, beside one message."""
    from transformers.utils.chat_template_utils import render_jinja_template

    expressions = (
        "true",
        "none",
        "missing",
        "[1, 'a', 2.5, none, true]",
        "{'a': [true], \"it's\": 'x\\n'}",
        "1e16",
        "0.00001",
        "123456.75",
        "7 // 2",
        "7 / 2",
        "-7 % 3",
        "{'b': 'é<>&\\'', 'a': [1, 2.0, none]} | tojson",
        "{'b': {'c': []}, 'a': [1, {}]} | tojson(indent=2)",
        "{'b': 1, 'a': [1, 2]} | tojson(separators=(',', ':'))",
        "{'b': 1, 'a': 2} | tojson(sort_keys=true)",
        "'é😀' | tojson(ensure_ascii=true)",
        "'  x '.strip() ~ 1 ~ 'a,b'.split(',')[-1].upper()",
        "messages[0].get('name', 'nobody')",
        "messages[::-1][0]['role'].startswith('us')",
        "messages[1:] | length",
        "'name' in messages[0]",
        "messages[0].content is string and messages[0] is mapping and messages is iterable",
        "'-'.join(['a', 'b']) | replace('-', '+') | upper",
        "2.0",
        "'a\\n\\t\\u0001' | tojson",
        "{'a': 1}.items() | list | length",
        "bos_token is defined",
        "[3, 1, 2] | sort | first",
        "messages | selectattr('role', 'equalto', 'user') | list | length",
        "namespace(a=1).a",
        "'yes' if messages else 'no'",
        "range(3) | list",
        "'%s-%d' | format('a', 3)",
        "'abc'[1:] + 'abc'[-1]",
        "'x' * 3",
        "'a\\nb' | indent(2)",
        "tools is none and documents is none",
    )
    for expression in expressions:
        texts, _ = render_jinja_template(conversations=[[{"role": "user", "content": "x"}]], chat_template="{{ " + expression + " }}")
        yield {"expression": expression, "text": texts[0]}


def files() -> dict[Path, str]:
    """Every file that this script writes, with its content."""

    def lines(cases: Iterator[dict[str, Any]]) -> str:
        return "[\n" + ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases) + "\n]\n"

    return {
        DATA / "byte_level.json": json.dumps(byte_level(), ensure_ascii=False) + "\n",
        DATA / "metaspace.json": json.dumps(metaspace(), ensure_ascii=False) + "\n",
        DATA / "conversations.json": lines(conversation_cases()),
        DATA / "texts.json": lines(text_cases()),
        DATA / "expressions.json": lines(expression_cases()),
    }


if __name__ == "__main__":
    for path, content in files().items():
        path.write_text(content, encoding="utf-8")
