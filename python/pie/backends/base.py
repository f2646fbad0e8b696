"""The boundary that every driver keeps; `docs/reference/driver.md` is the contract."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

from pie.batch import Batch


class DriverError(Exception):
    """A driver could not run a batch; every request in it fails with this message, and nothing was committed."""


class DriverLostError(Exception):
    """The process of a driver is gone, with everything that the driver held; every request of its batches fails.

    The message says how: `it was killed by SIGKILL`. Programs are told it, so that it names no path of the machine.
    """


class UnsupportedError(Exception):
    """A driver does not serve a command at all; whoever asked for it gets the error `unsupported` with this message."""


class RefusedAdapterError(Exception):
    """An adapter cannot be taken: it does not fit the model, or there is no room for it. Nothing has changed.

    Whoever asked gets the error of that code. The message names no folder.
    """

    def __init__(self, code: Literal["invalid-adapter", "limit-adapters"], message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, eq=False)
class Drawn:
    """What a driver drew by itself, in place of all rows."""

    tokens: npt.NDArray[np.uint32]
    """Of one row after the other as many as `row_draws` says, uint32 [D]; NOT_FINITE where a logit of the row is not
    finite.
    """
    logits: npt.NDArray[np.float32]
    """The rows whose `row_keep` is not 0, in their order, float32 [K, V], C-contiguous."""


NOT_FINITE = 0xFFFFFFFF
"""In place of a token: a logit of its row is not finite."""

Answer: TypeAlias = npt.NDArray[np.float32] | Drawn
"""What a driver answers a batch with: the logits, float32 [R, V], C-contiguous, or what it drew from them."""


class FailedSequencesError(Exception):
    """Some sequences of a batch could not be computed, and all the others were: those fail alone."""

    def __init__(self, answer: Answer, reasons: Mapping[int, str]) -> None:
        """`answer` is that of the whole batch; of the sequences that failed, rows and tokens may be anything.

        `reasons` says for each sequence that failed, by index, why.
        """
        super().__init__("; ".join(f"sequence {seq_idx}: {reason}" for seq_idx, reason in reasons.items()))
        self.answer = answer
        self.reasons = reasons


@dataclass(frozen=True)
class AdapterName:
    """What sequences name in `seq_adapter` and `seq_adapter_version`."""

    id: int
    version: int


@dataclass(frozen=True)
class LoadAdapter:
    """Read an adapter; one that has the name already is replaced."""

    adapter: AdapterName
    path: str
    """A file or a folder, as the driver's process sees it."""


@dataclass(frozen=True)
class CreateAdapter:
    """Make an adapter that changes nothing yet, write it to a folder, and load it.

    Its matrices A are noise of the seed 0 with the deviation 1 / sqrt(3 * inputs), and its matrices B are 0.
    """

    adapter: AdapterName
    path: str
    """A folder that is not there yet."""
    rank: int
    alpha: float
    sigma: float
    """By how much it is perturbed where a sequence has a `zo_seed`."""


@dataclass(frozen=True)
class ChangeAdapter:
    """Add noise to the weights of an adapter that is loaded, write the sum to a folder, and load it by another name.

    Its source stays as it is.
    """

    source: AdapterName
    adapter: AdapterName
    path: str
    """A folder that is not there yet."""
    sigma: float | None
    """By how much it is perturbed where a sequence has a `zo_seed`; as its source if not given."""
    changes: tuple[tuple[int, float], ...]
    """Seeds of 64 bits, each with the factor of its noise; added in this order."""


@dataclass(frozen=True)
class CopyAdapter:
    """Copy an adapter that is loaded; one that has the name of the copy already is replaced."""

    source: AdapterName
    copy: AdapterName


@dataclass(frozen=True)
class DropAdapter:
    """Forget an adapter that is loaded."""

    adapter: AdapterName


@dataclass(frozen=True)
class ExportPages:
    """Write pages of the pool to a file, which is there and long enough."""

    pages: tuple[tuple[int, int], ...]
    """The place of each in the file, counted in pages of `page_bytes`, and its index in the pool."""
    path: str
    """The file, as the driver's process sees it. It lies in memory: no disk is waited for."""


@dataclass(frozen=True)
class ImportPages:
    """Read pages from such a file into the pool; each then has the bits that were written."""

    pages: tuple[tuple[int, int], ...]
    """The place of each in the file, counted in pages of `page_bytes`, and its index in the pool."""
    path: str
    """The file, as the driver's process sees it."""


Command: TypeAlias = LoadAdapter | CreateAdapter | ChangeAdapter | CopyAdapter | DropAdapter | ExportPages | ImportPages
"""What a driver does beside running batches, in order with them."""


@dataclass(frozen=True)
class DriverOptions:
    """How a model is run; every driver takes these. A back end that has options of its own extends it."""

    page_size: int = 16
    """Tokens of a page."""
    n_pages: int | None = None
    """Pages of the pool; as many as `kv_bytes` hold if not given."""
    kv_bytes: int = 256 << 20
    """Memory for keys and values."""
    swap_bytes: int | None = None
    """Host memory that pages are swapped out to, taken when it is needed; as large as the pool and at most 2 GiB if not
    given.
    """
    max_batch_tokens: int = 512
    """Most tokens of a batch."""
    adapter_bytes: int = 128 << 20
    """Memory for adapters, taken as they are loaded."""
    dtype: str | None = None
    """`bfloat16` or `float32`: of weights, inputs of linears, keys and values. That of the checkpoint if not given."""


@dataclass(frozen=True)
class Capabilities:
    """What a driver serves, and its limits."""

    backend: str
    vocab_size: int
    max_positions: int
    """Positions are below this."""
    page_size: int
    """Tokens of a page."""
    n_pages: int
    """Pages of the pool of keys and values."""
    max_batch_tokens: int
    """Most tokens, and most rows of logits, of a batch."""
    host_pages: int = 0
    """Pages that the host memory holds; 0: it cannot swap."""
    copy_page_ns: int = 0
    """What copying a page to host memory or back costs, measured when the driver was opened; 0 where it was not."""
    masks: bool = False
    """Whether attention masks are honoured."""
    positions: bool = False
    """Whether positions may repeat, jump and reorder."""
    adapters: bool = False
    """Whether sequences may have adapters; where not, one that has fails alone."""
    media: bool = False
    """Whether sequences may have media; where not, one that has fails alone."""
    embeddings: int = 0
    """Values of the hidden state behind a token, which it answers where that is asked for; 0: it does not."""
    follows: bool = False
    """Whether it draws by itself and feeds its next batch, which it is given while one runs; it has `launch` then."""
    page_bytes: int = 0
    """Bytes of a page as `ExportPages` writes it, all its layers one behind the other; 0: it moves no pages, and those
    of snapshots on disk are computed again.
    """
    pages_made_by: str = ""
    """What the bits of its pages depend on besides the weights, the tokens and `page_size`: other pages are not
    imported.
    """


class Driver(Protocol):
    """Runs batches, one at a time."""

    @property
    def capabilities(self) -> Capabilities:
        """What this driver serves."""

    def run(self, batch: Batch) -> Answer:
        """Makes the copies of a batch, computes it, and stores its keys and values.

        It returns the logits, or what it drew from them.
        The logits are float32 [R, V], C-contiguous.

        Raises DriverError where it cannot; the batch is then as if it had never been. Raises FailedSequencesError where
        all but some sequences were computed.
        """

    def close(self) -> None:
        """Gives threads and memory back; a second call does nothing, `run` afterwards is a DriverError."""


@runtime_checkable
class FollowingDriver(Driver, Protocol):
    """A driver whose capabilities declare `follows`: its device runs one batch while the host plans the next."""

    def launch(self, batch: Batch) -> Callable[[], Answer]:
        """Begins a batch and returns before it is done.

        The function that it returns waits, and returns or raises what `run` would.

        Batches run in the order in which they were launched, two at the most; each is waited for once, in that order,
        also before `close`. The arena stays until that function has returned, and the rows that it answered have to
        stay until that of the next batch is called. A sequence of which `seq_follows` is 1 + r takes the token that
        `row_sampler`, `row_slot` and the token mask of row r of the batch launched before say, which is the one that
        the engine draws. Where nothing can be drawn, or that batch failed, the sequence fails.
        """


@runtime_checkable
class CommandedDriver(Driver, Protocol):
    """A driver that takes commands. Others have no adapters, and move no pages."""

    def command(self, command: Command) -> None:
        """Carries a command out. No batch runs meanwhile.

        Raises DriverError where it cannot, RefusedAdapterError for an adapter that it cannot take, and UnsupportedError
        where it serves no such commands; nothing has changed then.
        """


@runtime_checkable
class WritingDriver(Driver, Protocol):
    """A driver that writes its rows where they are wanted, so that they need not be copied."""

    def run_into(self, batch: Batch, logits: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Does what `run` does with the rows in `logits`, float32 [R, V], C-contiguous, and returns that."""
