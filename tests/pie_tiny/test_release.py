"""The released directory of pie-tiny: files, tokenizer and what the model says."""

from __future__ import annotations

import hashlib
import json
import re
import struct
from itertools import islice
from pathlib import Path

import pytest

from tools.pie_tiny.conversation import LETTER_JOINT, by_letters
from tools.pie_tiny.mix import conversations
from tools.pie_tiny.render import full_text, render
from tools.pie_tiny.sample import PROMPTS, Speaker

RELEASE = Path(__file__).parents[2] / "python" / "pie" / "pie_tiny"


@pytest.fixture(scope="module")
def speaker() -> Speaker:
    return Speaker(RELEASE)


def test_weights_are_bf16_and_small() -> None:
    data = (RELEASE / "model.safetensors").read_bytes()
    assert len(data) <= 16_000_000
    header = json.loads(data[8 : 8 + struct.unpack("<Q", data[:8])[0]])
    tensors = {name: entry for name, entry in header.items() if name != "__metadata__"}
    assert {entry["dtype"] for entry in tensors.values()} == {"BF16"}
    n_parameters = sum(entry["data_offsets"][1] - entry["data_offsets"][0] for entry in tensors.values()) // 2
    assert 3_000_000 <= n_parameters <= 8_000_000


def test_the_card_names_the_weights_that_ship() -> None:
    digest = hashlib.sha256((RELEASE / "model.safetensors").read_bytes()).hexdigest()
    card = (RELEASE / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert re.findall(r"\b[0-9a-f]{64}\b", card) == [digest]


def test_configuration_and_tokenizer_agree(speaker) -> None:
    config, tokenizer = speaker.model.config, speaker.tokenizer
    assert config.vocab_size == len(tokenizer) == 4096
    assert config.max_position_embeddings == tokenizer.model_max_length == 2048
    assert tokenizer.convert_tokens_to_ids("<|im_end|>") == config.eos_token_id
    ends = tokenizer.convert_tokens_to_ids(["<|im_end|>", "<|endoftext|>"])
    assert speaker.model.generation_config.eos_token_id == ends


@pytest.mark.parametrize(
    "text", ["Hello!", "  two  spaces\n\n\ttab", "naïve café — 東京 🦊", "a1b22c333", "it's I'LL", "x = {'k': [1, 2]}"]
)
def test_text_survives_the_tokenizer(speaker, text) -> None:
    assert speaker.tokenizer.decode(speaker.tokenizer(text).input_ids) == text


def test_digits_are_single_tokens(speaker) -> None:
    assert speaker.tokenizer.tokenize("987 + 65") == ["9", "8", "7", "Ġ+", "Ġ", "6", "5"]


@pytest.mark.parametrize("token", ["<|im_start|>", "<|im_end|>", "<|endoftext|>", "<think>", "</think>", "<tool_call>", "</tool_response>"])
def test_control_tokens_are_one_token(speaker, token) -> None:
    assert speaker.tokenizer.tokenize(f"a{token}b") == ["a", token, "b"]


def test_pieces_encode_as_the_whole_text_does(speaker) -> None:
    for conversation in islice(conversations(5, "train"), 100):
        if any(LETTER_JOINT in message.content for message in conversation.messages):
            continue
        whole = speaker.tokenizer(full_text(conversation)).input_ids
        parts = [speaker.tokenizer(piece.text).input_ids for piece in render(conversation)]
        assert [token for part in parts for token in part] == whole


def test_a_word_by_letters_has_a_token_for_each_letter(speaker) -> None:
    parts = [part for part in f"It is{by_letters('elppa')}.".split(LETTER_JOINT) if part]
    tokens = [speaker.tokenizer(part, add_special_tokens=False).input_ids for part in parts]
    assert [len(ids) for ids in tokens[1:-1]] == [1] * 5
    assert speaker.tokenizer.decode([token for ids in tokens for token in ids]) == "It is elppa."


@pytest.mark.parametrize("prompt", PROMPTS[:6])
def test_it_stops_by_itself(speaker, prompt) -> None:
    for temperature in (0.0, 0.8):
        text, stopped = speaker.answer([{"role": "user", "content": prompt}], temperature=temperature)
        assert stopped
        assert text.strip()


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("What is the capital of France?", "Paris"),
        ("What is the opposite of hot?", "cold"),
        ("Who are you?", "pie-tiny"),
        ("Tell me a short story about a fox.", "fox"),
    ],
)
def test_it_answers_what_was_asked(speaker, prompt, expected) -> None:
    text, _ = speaker.answer([{"role": "user", "content": prompt}])
    assert expected in text


def test_it_remembers_a_name(speaker) -> None:
    text, _ = speaker.answer(
        [
            {"role": "user", "content": "My name is Clara."},
            {"role": "assistant", "content": "Nice to meet you, Clara!"},
            {"role": "user", "content": "What is my name?"},
        ]
    )
    assert "Clara" in text
