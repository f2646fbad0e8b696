"""The tokenizer: byte-level BPE trained on generated conversations, in Qwen's manner."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, trainers
from tokenizers.pre_tokenizers import ByteLevel, Sequence, Split

from .mix import conversations
from .render import CHAT_TEMPLATE, render

VOCABULARY_SIZE = 4096
"""Entries with the control tokens: a multiple of 64, so that kernels need no edge case."""

END_OF_TEXT, TURN_START, TURN_END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
SPECIAL_TOKENS = (END_OF_TEXT, TURN_START, TURN_END)
"""Tokens that decoding may skip."""
MARKERS = (
    *("<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>"),
    *("</tool_response>", "<tools>", "</tools>"),
)
"""Tokens of their own that decoding shows."""

# The split of Qwen's tokenizers: contractions, words, single digits, punctuation, space.
_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def token_id(tokenizer: Tokenizer, token: str) -> int:
    """The id of a token; `KeyError` where the tokenizer has none such."""
    found = tokenizer.token_to_id(token)
    if found is None:
        raise KeyError(f"the tokenizer has no token {token!r}")
    return int(found)


def _plain_pieces(n_conversations: int, seed: int) -> Iterator[str]:
    control = (*SPECIAL_TOKENS, *MARKERS)
    for conversation in islice(conversations(seed, "train"), n_conversations):
        for piece in render(conversation):
            text = piece.text
            for token in control:
                text = text.replace(token, "\n")
            yield text


def train_tokenizer(n_conversations: int, seed: int) -> Tokenizer:
    """A tokenizer with exactly `VOCABULARY_SIZE` entries, control tokens last."""
    n_control = len(SPECIAL_TOKENS) + len(MARKERS)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = Sequence([Split(Regex(_SPLIT), "isolated"), ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY_SIZE - n_control,
        initial_alphabet=ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_plain_pieces(n_conversations, seed), trainer)
    tokenizer.add_special_tokens([AddedToken(t, normalized=False) for t in SPECIAL_TOKENS])
    tokenizer.add_tokens([AddedToken(t, normalized=False, special=False) for t in MARKERS])
    if tokenizer.get_vocab_size() != VOCABULARY_SIZE:
        raise ValueError(
            f"the tokenizer has {tokenizer.get_vocab_size()} entries instead of "
            f"{VOCABULARY_SIZE}: train it on more than {n_conversations} conversations"
        )
    return tokenizer


def save_tokenizer(tokenizer: Tokenizer, folder: Path, max_length: int) -> None:
    """Writes tokenizer.json and tokenizer_config.json, the chat template inside the latter."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": max_length,
        "bos_token": None,
        "eos_token": TURN_END,
        "pad_token": END_OF_TEXT,
        "unk_token": None,
        "clean_up_tokenization_spaces": False,
        "added_tokens_decoder": {
            str(tokenizer.token_to_id(token)): {
                "content": token,
                "lstrip": False,
                "normalized": False,
                "rstrip": False,
                "single_word": False,
                "special": token in SPECIAL_TOKENS,
            }
            for token in (*SPECIAL_TOKENS, *MARKERS)
        },
        "chat_template": CHAT_TEMPLATE,
    }
    text = json.dumps(config, indent=2, ensure_ascii=False) + "\n"
    (folder / "tokenizer_config.json").write_text(text, encoding="utf-8")
