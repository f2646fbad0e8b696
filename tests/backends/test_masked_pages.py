"""The kernels read no page of which a mask hides every slot: here those pages are memory that must not be touched."""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pie.backends.cpu import CpuOptions
from pie.backends.cpu.driver import CpuDriver, open_driver
from support import arenas
from support.arenas import Feed
from support.checkpoints import write_checkpoint

PAGE_SIZE = 256
N_PAGES = 4
HIDDEN = [1, 2]
"""The pages in the middle of the sequence."""
TOKENS = np.random.default_rng(0).integers(0, 160, N_PAGES * PAGE_SIZE).tolist()


def step(folder: Path, library: Path, masked: bool, isa: str) -> None:
    """Writes a sequence of four pages, takes away two of them, and computes its last token again."""
    options = CpuOptions(
        page_size=PAGE_SIZE, n_pages=N_PAGES, swap_bytes=0, max_batch_tokens=len(TOKENS), n_threads=2, isa=isa, library=library
    )
    driver = open_driver(folder, options)
    memory = pool(driver)
    pages = range(N_PAGES)
    driver.run(arenas.batch([Feed(TOKENS, pages)], page_size=PAGE_SIZE))
    # One hidden slot of a page that is seen, too: what is left of it counts as ever.
    runs = [5, PAGE_SIZE - 5, len(HIDDEN) * PAGE_SIZE, PAGE_SIZE]
    last = Feed(TOKENS[-1:], pages, start=len(TOKENS) - 1, rows=[0], reread=True, masks={0: runs} if masked else {})
    batch = arenas.batch([last], page_size=PAGE_SIZE)
    before = driver.run(batch)
    for page in HIDDEN:
        protect(memory[page])
    assert np.array_equal(driver.run(batch), before)


def pool(driver: CpuDriver) -> np.ndarray:
    """The keys and values of the driver by page, where they lie."""
    shape, buffer = driver.plan.options.kv_shape, driver.plan._library.ffi.buffer
    n_bytes = 4 * int(np.prod(shape))
    found = [kept for kept in map(buffer, driver.plan._kept) if len(kept) == n_bytes]
    assert len(found) == 1
    return np.frombuffer(found[0], np.float32).reshape(shape)


def protect(array: np.ndarray) -> None:
    """Makes the pages of memory that lie within an array a fault to whoever touches them."""
    start = -(-array.ctypes.data // mmap.PAGESIZE) * mmap.PAGESIZE
    end = (array.ctypes.data + array.nbytes) // mmap.PAGESIZE * mmap.PAGESIZE
    assert end - start > array.nbytes // 2, "the page is too small to be protected"
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.mprotect(ctypes.c_void_p(start), ctypes.c_size_t(end - start), 0) == 0


@pytest.mark.parametrize("isa", ["auto", "portable"])
def test_pages_that_a_mask_hides_are_not_touched(tmp_path: Path, library: Path, isa: str) -> None:
    folder = write_checkpoint(tmp_path / "model", dtype="F32", max_position_embeddings=2048)
    codes, environment = {}, os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    for how in ("masked", "causal"):
        command = [sys.executable, __file__, str(folder), str(library), how, isa]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=environment)
        codes[how] = done.returncode
        assert done.returncode in (0, -signal.SIGSEGV), done.stderr
    assert codes == {"masked": 0, "causal": -signal.SIGSEGV}


if __name__ == "__main__":
    step(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3] == "masked", sys.argv[4])
