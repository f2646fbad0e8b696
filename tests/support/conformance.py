"""What the conformance test asks of a driver, and the drivers that it asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from oracle.dummy import Write, append
from oracle.dummy import logits as dummy_row
from oracle.dummy import state as dummy_state
from pie.backends import open_driver
from pie.backends.base import Answer, Drawn, Driver, DriverOptions, FailedSequencesError, FollowingDriver
from pie.backends.cpu import CpuOptions
from pie.backends.dummy import DummyDriver
from pie.batch import Batch
from pie.errors import PieError
from pie.isolation.driver import IsolatedDriver
from pie.models.loader import load_checkpoint
from support.arenas import Feed
from support.decoder import Decoder

ISOLATED = "isolated "
"""What the name of a driver begins with that has a process of its own."""
PAGE_SIZE = 8
N_PAGES = 24
N_HOST_PAGES = 6
VOCAB_SIZE = 160
MAX_TOKENS = 128
MAX_POSITIONS = 512

OPTIONS: dict[str, Any] = {"page_size": PAGE_SIZE, "n_pages": N_PAGES, "max_batch_tokens": MAX_TOKENS}


@dataclass(frozen=True)
class Expectations:
    """The model and the tolerance that a driver is tested with."""

    model: Mapping[str, Any] = field(default_factory=lambda: {"dtype": "F32"})
    """What `write_checkpoint` writes: the dtype of the weights, and fields of the config."""
    element_bytes: int = 4
    """Bytes of a number among the keys and values."""
    spread: float = 1e-4
    """How far a row may be from the truth, in standard deviations of its logits."""


def expects(expectations: Expectations) -> Callable[[Callable[..., Driver]], Callable[..., Driver]]:
    """Decorates a function that opens a driver, one that cannot compute in float32, say: another model tests it."""

    def mark(opens: Callable[..., Driver]) -> Callable[..., Driver]:
        vars(opens)["expectations"] = expectations
        return opens

    return mark


def expectations_of(name: str) -> Expectations:
    """Those of the driver of that name."""
    module, _, function = name.removeprefix(ISOLATED).partition(":")
    found: Expectations = getattr(getattr(import_module(module), function), "expectations", Expectations()) if function else Expectations()
    return found


@dataclass(frozen=True)
class Text:
    """Tokens in the slots from 0 on, and how they are written."""

    tokens: Sequence[int]
    positions: Sequence[int] | None = None
    """By default the slots."""
    masks: Mapping[int, Sequence[int]] = field(default_factory=dict)
    """Run lengths, by slot; none: causality alone. Those of a slot cover no later one."""

    def feed(self, pages: Sequence[int], start: int, end: int, *, rows: Sequence[int] | None = None, **more: Any) -> Feed:
        """The tokens of the slots from `start` to `end`; every row is wanted unless `rows` says which."""
        return Feed(
            tokens=list(self.tokens[start:end]),
            pages=pages,
            start=start,
            rows=range(end - start) if rows is None else rows,
            masks={slot - start: runs for slot, runs in self.masks.items() if start <= slot < end},
            positions=None if self.positions is None else list(self.positions[start:end]),
            **more,
        )

    def visible(self) -> np.ndarray:
        """Which slot each token sees [T, T], bool."""
        n = len(self.tokens)
        visible = np.tri(n, dtype=bool)
        for slot, runs in self.masks.items():
            allowed = np.zeros(n, dtype=bool)
            ends = np.cumsum([0, *runs])
            for start, end in zip(ends[1::2], ends[2::2], strict=False):
                allowed[start:end] = True
            visible[slot] &= allowed
        return visible


@dataclass(frozen=True)
class Subject:
    """A driver under test."""

    name: str
    open: Callable[[], Driver]
    """A fresh driver of the sizes above, of a model of `VOCAB_SIZE` tokens."""
    truth: Callable[[Text], np.ndarray]
    """All rows of a text [T, V], computed without the driver."""
    states: Callable[[Text], np.ndarray]
    """All hidden states of a text [T, H], computed without the driver."""
    is_true: Callable[[np.ndarray, np.ndarray], bool]
    """Whether rows are those of `truth`, within what the driver's arithmetic allows."""
    bit_exact: bool
    """Whether a row has the same bits in any company and chunking."""
    failing: Feed
    """A sequence on pages 20 and 21 that fails alone."""

    def rows(self) -> Driver:
        """The driver, opened, of which every row is wanted: one that draws answers with them too."""
        return self.rows_of(self.open())

    def rows_of(self, opened: Driver) -> Driver:
        """A driver of which every row is wanted."""
        return RowsOf(opened) if opened.capabilities.follows else opened

    def same(self, found: np.ndarray, expected: np.ndarray) -> bool:
        """Whether rows that the driver computed in two ways are the same."""
        return np.array_equal(found, expected) if self.bit_exact else close(found, expected)


class RowsOf:
    """A driver that draws, of which every row is wanted itself."""

    def __init__(self, driver: Driver) -> None:
        assert isinstance(driver, FollowingDriver)
        self._driver = driver
        self.capabilities = driver.capabilities

    def run(self, batch: Batch) -> np.ndarray:
        """All rows."""
        return self.launch(batch)()

    def launch(self, batch: Batch) -> Callable[[], np.ndarray]:
        """Begins a batch."""
        answer = self._driver.launch(_wanted(batch))

        def rows() -> np.ndarray:
            try:
                return _rows(answer())
            except FailedSequencesError as failed:
                raise FailedSequencesError(_rows(failed.answer), failed.reasons) from None

        return rows

    def close(self) -> None:
        """Closes the driver."""
        self._driver.close()


def _wanted(batch: Batch) -> Batch:
    """A batch whose rows are wanted themselves; one that is no batch stays as it is."""
    try:
        words = batch.words.copy()
        Batch(words).row_keep[:] = 1
    except PieError:
        return batch
    return Batch(words)


def _rows(answer: Answer) -> np.ndarray:
    return answer.logits if isinstance(answer, Drawn) else answer


def close(found: np.ndarray, expected: np.ndarray, spread: float = Expectations().spread) -> bool:
    """Whether rows are equal but for rounding."""
    return found.shape == expected.shape and bool(np.abs(found - expected).max() < spread * expected.std())


def subject(name: str, folder: Path, library: Path) -> Subject:
    """The driver of that name: `cpu`, `cuda` (on torch's CPU), `reference`, `dummy`, or `module:function`, where the
    function opens a driver of one's own.

    It is called with the folder of a model and `DriverOptions`. Behind `ISOLATED` the driver has a process of its own.
    """
    if name.startswith(ISOLATED):
        inside = subject(name.removeprefix(ISOLATED), folder, library)
        return replace(inside, name=name, open=partial(IsolatedDriver, inside.open, VOCAB_SIZE))
    if name == "dummy":
        sizes = {"vocab_size": VOCAB_SIZE, "n_pages": N_PAGES, "page_size": PAGE_SIZE, "host_pages": N_HOST_PAGES, "follows": True}
        unwritten = Feed([1, 2], [20, 21], start=9, rows=[0])
        states = partial(_dummy_values, dummy_state)
        return Subject(name, partial(DummyDriver, "m", **sizes), _dummy_truth, states, np.array_equal, bit_exact=True, failing=unwritten)
    expected = expectations_of(name)
    options: dict[str, Any] = OPTIONS | {"swap_bytes": N_HOST_PAGES * page_bytes(folder) * expected.element_bytes // 4}
    if name == "cpu":
        opens: Callable[[], Driver] = partial(open_driver, "cpu", folder, CpuOptions(**options, n_threads=2, library=library))
    elif name == "cuda":
        import_module("torch").set_num_threads(1)  # small models gain nothing by more
        cuda_options = import_module("pie.backends.cuda").CudaOptions
        opens = partial(open_driver, "cuda", folder, cuda_options(**options, device="cpu"))
    elif name == "reference":
        import_module("torch").set_num_threads(1)  # small models gain nothing by more
        opens = partial(open_driver, "reference", folder, DriverOptions(**options))
    else:
        module, _, function = name.partition(":")
        opens = partial(getattr(import_module(module), function), folder, DriverOptions(**options))
    decoder = Decoder(load_checkpoint(folder))
    adapted = Feed([1, 2], [20, 21], rows=[1], adapter=5)
    return Subject(
        name,
        opens,
        partial(_decoder_truth, decoder),
        partial(_decoder_states, decoder),
        partial(close, spread=expected.spread),
        bit_exact=name != "reference",
        failing=adapted,
    )


def page_bytes(folder: Path) -> int:
    """Bytes of the keys and values of a page, in float32."""
    spec = load_checkpoint(folder).spec
    return 4 * 2 * spec.n_layers * spec.attention.n_kv_heads * spec.attention.head_dim * PAGE_SIZE


def _dummy_truth(text: Text) -> np.ndarray:
    return _dummy_values(dummy_row, text)


def _dummy_values(values: Callable[[str, int, int], np.ndarray], text: Text) -> np.ndarray:
    hashes: list[int] = []
    positions = range(len(text.tokens)) if text.positions is None else text.positions
    for slot, (token, position) in enumerate(zip(text.tokens, positions, strict=True)):
        append(hashes, Write(token, position, text.masks.get(slot, ())))
    return np.array([values("m", VOCAB_SIZE, last) for last in hashes])


def _decoder_states(decoder: Decoder, text: Text) -> np.ndarray:
    positions = None if text.positions is None else list(text.positions)
    return decoder.logits(list(text.tokens), visible=text.visible(), positions=positions)[1].final


def _decoder_truth(decoder: Decoder, text: Text) -> np.ndarray:
    positions = None if text.positions is None else list(text.positions)
    return decoder.logits(list(text.tokens), visible=text.visible(), positions=positions)[0]
