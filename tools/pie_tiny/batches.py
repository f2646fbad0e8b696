"""Batches of tokens from the stream of conversations."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from random import Random
from typing import NamedTuple

import torch
from tokenizers import Tokenizer

from .conversation import Conversation
from .draw import Split
from .lexicon.pools import HELD_OUT
from .mix import conversations
from .render import render
from .tokenizer import END_OF_TEXT, TURN_END, TURN_START, token_id

_LONGEST = 2048
_WIDTH_STEP = 16
_READ_SHARE = 0.03
_DRILL_SHARE = 0.09
_SPELT_SHARE = 0.6
_MOST_SPELT = 8
_LONGEST_COPY = 80


class Source(NamedTuple):
    """Where batches come from.

    `shard_conversations` are drawn and sorted by length together; `batch_tokens` bounds a
    batch, padding counted.
    """

    seed: int
    batch_tokens: int = 6144
    shard_conversations: int = 4096


class Batch(NamedTuple):
    """One step's input.

    `tokens`: [B, T] int64, padded at the right. `positions`: [N] int64, indices into the
    flattened tokens after which the next token counts: all that the model must produce and
    a random few of what it only reads. `targets`: [N] int64, those next tokens.
    `n_tokens`: tokens without padding.
    """

    tokens: torch.Tensor
    positions: torch.Tensor
    targets: torch.Tensor
    n_tokens: int

    def rows(self, first: int, step: int) -> Batch:
        """Every `step`-th row from `first` on; `n_tokens` stays that of the whole."""
        width = self.tokens.shape[1]
        row, column = self.positions // width, self.positions % width
        chosen = row % step == first
        tokens = self.tokens[first::step]
        return Batch(tokens, (row[chosen] // step) * width + column[chosen], self.targets[chosen], self.n_tokens)


class _Document(NamedTuple):
    tokens: list[int]
    learnt: list[bool]


def load_tokenizer(folder: Path) -> Tokenizer:
    """The tokenizer of a released model directory."""
    return Tokenizer.from_file(str(folder / "tokenizer.json"))


def _encode(tokenizer: Tokenizer, documents: list[Conversation]) -> list[_Document]:
    pieces = [render(document) for document in documents]
    flat = tokenizer.encode_batch_fast([piece.text for document in pieces for piece in document], add_special_tokens=False)
    encoded, at = [], 0
    for document in pieces:
        tokens: list[int] = []
        learnt: list[bool] = []
        for piece in document:
            ids = flat[at].ids
            at += 1
            tokens += ids
            learnt += [piece.learnt] * len(ids)
        encoded.append(_Document(tokens[:_LONGEST], learnt[:_LONGEST]))
    return encoded


def made_word(rng: Random, beginnings: Sequence[str], endings: Sequence[str]) -> str:
    """One of the beginnings and up to two endings; none that a lexicon holds out."""
    while True:
        word = rng.choice(beginnings) + "".join(rng.choices(endings, k=rng.choice((0, 0, 1, 2))))
        if word.lower() not in HELD_OUT:
            return word


def _drills(tokenizer: Tokenizer, rng: Random, count: int) -> list[_Document]:
    """Any tokens said back, or words made of them spelt, so that what text seldom holds can be copied and spelt as well."""

    def ids(text: str) -> list[int]:
        return tokenizer.encode(text, add_special_tokens=False).ids

    asked, said = f"{TURN_START}user\n", ids(f"{TURN_END}\n{TURN_START}assistant\n")
    end = token_id(tokenizer, TURN_END)
    tokens = {i: tokenizer.id_to_token(i) or "" for i in range(tokenizer.get_vocab_size())}
    any_letters = [i for i, text in tokens.items() if re.fullmatch("Ġ?[A-Za-z]+", text)]
    beginnings = [text[1:] for text in tokens.values() if re.fullmatch("Ġ[A-Za-z][a-z]+", text)]
    endings = [text for text in tokens.values() if re.fullmatch("[a-z]+", text)]
    documents = []
    for _ in range(count):
        if rng.random() < _SPELT_SHARE:
            words = [made_word(rng, beginnings, endings) for _ in range(rng.randint(1, _MOST_SPELT))]
            read = ids(f"{asked}Spell these words: {' '.join(words)}")
            answer = ids("\n".join(f"{word}: {'-'.join(word)}" for word in words))
        else:
            answer = rng.choices(any_letters, k=rng.randint(2, _LONGEST_COPY))
            read = [*ids(f"{asked}Repeat:"), *answer]
        read += said
        documents.append(_Document([*read, *answer, end], [False] * len(read) + [True] * (len(answer) + 1)))
    return documents


def _pad(documents: list[_Document], rng: Random, pad_id: int) -> Batch:
    longest = max(len(document.tokens) for document in documents) - 1
    width = -(-longest // _WIDTH_STEP) * _WIDTH_STEP
    tokens = torch.full((len(documents), width), pad_id, dtype=torch.int64)
    positions: list[int] = []
    targets: list[int] = []
    for row, document in enumerate(documents):
        ids = document.tokens
        tokens[row, : len(ids) - 1] = torch.tensor(ids[:-1])
        for i in range(1, len(ids)):
            # A share of the positions at full weight has the expectation of all of them at that
            # share, and needs that share of the output layer.
            if document.learnt[i] or rng.random() < _READ_SHARE:
                positions.append(row * width + i - 1)
                targets.append(ids[i])
    n_tokens = sum(len(document.tokens) for document in documents)
    return Batch(tokens, torch.tensor(positions), torch.tensor(targets), n_tokens)


def shard(tokenizer: Tokenizer, split: Split, source: Source, number: int) -> list[Batch]:
    """The batches of one shard, of at most `batch_tokens` tokens with padding unless one document is longer, in random order."""
    seed = source.seed * 1_000_003 + number
    rng = Random(f"batches/{split}/{seed}")
    documents = _encode(tokenizer, list(islice(conversations(seed, split), source.shard_conversations)))
    if split == "train":
        documents += _drills(tokenizer, rng, round(_DRILL_SHARE * len(documents)))
    documents.sort(key=lambda document: len(document.tokens))
    batches: list[Batch] = []
    pad_id = token_id(tokenizer, END_OF_TEXT)
    group: list[_Document] = []
    for document in documents:
        width = -(-len(document.tokens) // _WIDTH_STEP) * _WIDTH_STEP
        if group and (len(group) + 1) * width > source.batch_tokens:
            batches.append(_pad(group, rng, pad_id))
            group = []
        group.append(document)
    batches.append(_pad(group, rng, pad_id))
    rng.shuffle(batches)
    return batches


def stream(tokenizer: Tokenizer, source: Source, position: tuple[int, int] = (0, 0)) -> Iterator[tuple[tuple[int, int], Batch]]:
    """Endless training batches from `position`, each with the position of the one after it.

    A position is the number of a shard and the index of a batch in it.
    """
    number, start = position
    while True:
        batches = shard(tokenizer, "train", source, number)
        for index in range(start, len(batches)):
            yield (number, index + 1), batches[index]
        number, start = number + 1, 0
