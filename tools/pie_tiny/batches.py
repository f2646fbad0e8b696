"""Batches of tokens from the stream of conversations."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from random import Random
from typing import NamedTuple

import torch
from tokenizers import Tokenizer

from .conversation import Conversation
from .draw import Draw, Split
from .drills import Vocabulary, drill, learnt_pieces
from .mix import conversations
from .render import render
from .splitter import Splitter
from .tokenizer import END_OF_TEXT, TURN_END, TURN_START, token_id

_LONGEST = 2048
_WIDTH_STEP = 16
_READ_SHARE = 0.03
_DRILL_SHARE = 0.2
_SPLIT_SHARES = (0.0, 0.0, 0.0, 0.1)
"""How much of what a document only reads stands in other tokens than the tokenizer's: one of these."""


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


class _Run(NamedTuple):
    """Tokens that the model must all produce or all only read."""

    ids: list[int]
    learnt: bool


class _Document(NamedTuple):
    tokens: list[int]
    learnt: list[bool]


def load_tokenizer(folder: Path) -> Tokenizer:
    """The tokenizer of a released model directory."""
    return Tokenizer.from_file(str(folder / "tokenizer.json"))


def _encode(tokenizer: Tokenizer, documents: list[Conversation]) -> list[list[_Run]]:
    pieces = [render(document) for document in documents]
    flat = iter(tokenizer.encode_batch_fast([piece.text for document in pieces for piece in document], add_special_tokens=False))
    return [[_Run(next(flat).ids, piece.learnt) for piece in document] for document in pieces]


def _drills(tokenizer: Tokenizer, splitter: Splitter, rng: Draw, count: int) -> list[list[_Run]]:
    def ids(text: str) -> list[int]:
        return tokenizer.encode(text, add_special_tokens=False).ids

    opening, closing = ids(f"{TURN_START}user\n"), ids(f"{TURN_END}\n{TURN_START}assistant\n")
    end = token_id(tokenizer, TURN_END)
    vocabulary = Vocabulary(tokenizer)
    made = []
    for _ in range(count):
        read, answer, given = drill(rng, vocabulary)
        if isinstance(answer, str):
            said = [_Run(ids(text), learnt) for text, learnt in learnt_pieces(answer, given)]
            made.append(_split(splitter, rng, [_Run(opening + ids(read) + closing, learnt=False), *said, _Run([end], learnt=True)]))
        else:
            # Said back token by token, so in the very tokens that were read.
            made.append([_Run([*opening, *ids(read), *answer, *closing], learnt=False), _Run([*answer, end], learnt=True)])
    return made


def _joined(runs: list[_Run]) -> _Document:
    tokens = [number for run in runs for number in run.ids]
    learnt = [run.learnt for run in runs for _ in run.ids]
    return _Document(tokens[:_LONGEST], learnt[:_LONGEST])


def _split(splitter: Splitter, rng: Random, runs: list[_Run]) -> list[_Run]:
    """The runs, with what is only read in other tokens for one document in four.

    A document that would become too long is left as it is.
    """
    share = rng.choice(_SPLIT_SHARES)
    split = [run if run.learnt or not share else _Run(splitter.split(rng, run.ids, share), learnt=False) for run in runs]
    return split if sum(len(run.ids) for run in split) <= _LONGEST else runs


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
    """The batches of one shard, in random order.

    A batch has at most `batch_tokens` tokens with padding, unless one document is longer.
    """
    seed = source.seed * 1_000_003 + number
    rng = Draw(f"batches/{split}/{seed}")
    runs = _encode(tokenizer, list(islice(conversations(seed, split), source.shard_conversations)))
    if split == "train":
        splitter = Splitter(tokenizer)
        n_drills = round(_DRILL_SHARE * len(runs))
        runs = [_split(splitter, rng, document) for document in runs] + _drills(tokenizer, splitter, rng, n_drills)
    documents = [_joined(document) for document in runs]
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
