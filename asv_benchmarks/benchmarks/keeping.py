"""P28: snapshots on disk."""

from __future__ import annotations

import json
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

import numpy as np

from benchmarks.adapters import CONFIG, write_tensors
from benchmarks.engines import PATIENCE_S, NullDriver
from benchmarks.harness import BUILD, ROOT, SEED, Figure, Goal, Row, in_turns, save, show
from pie import _engine
from pie.backends.base import Driver
from pie.backends.cpu import CpuOptions, open_driver
from pie.compiler import COMMAND
from pie.config import EMBEDDED_FOLDER
from pie.events import Event
from pie.launch import Launch
from pie.models.loader import read_config
from pie.programs import RUNTIMES
from pie.runner import drive

N_TOKENS = 8_192
N_ROUNDS = 15
N_ENGINES = 5
"""Engines whose first pass is measured: each opens the snapshot anew."""
SAVE = "save of 8,192 tokens"
OPEN = "opening of 8,192 tokens"
PAGES = "first pass behind 8,192 tokens that were opened, with their pages"
GOALS = {
    SAVE: [Goal("ratio", 1.2)],
    OPEN: [Goal("ratio", 1.2)],
    f"{OPEN}, beside computing them": [Goal("ratio", 1.0)],
    PAGES: [Goal("ratio", 1.2)],
    f"{PAGES}, beside computing them": [Goal("ratio", 1.0)],
}
NOTES = {
    SAVE: "beside one write and fsync of as many bytes, in the same folder",
    OPEN: "beside one read of as many bytes, from the page cache as well",
    f"{OPEN}, beside computing them": "on a driver that computes nothing: the least that computing takes",
    PAGES: "in a new engine, on the cpu back end with one layer of the shape of Qwen3-0.6B; beside one read of the files of pages",
    f"{PAGES}, beside computing them": "the same, beside computing as many other tokens",
}
SHAPE = CONFIG | {"vocab_size": 4096, "num_hidden_layers": 1, "max_position_embeddings": 2 * N_TOKENS}
PROGRAM = ROOT / "asv_benchmarks/programs/keeping.py"

ROW = Row(
    name="P28-snapshots",
    title="Snapshots on disk",
    driver="null (computes nothing), and cpu where pages are kept",
    path="a call of a Python program -> engine -> file, durable -> the program",
    peer="the same bytes written or read by Python; the tokens computed",
)


@contextmanager
def keeping(data: Path, driver: Driver, *, saves: bool = True) -> Iterator[Callable[[str], float]]:
    """A program in an engine that keeps snapshots in a folder; it is asked for the milliseconds of a call.

    It begins by saving a context, or goes on with the one that is there.
    """
    cache = BUILD / "cache"
    cache.mkdir(mode=0o700, parents=True, exist_ok=True)
    engine = _engine.Engine(
        cache_dir=str(cache),
        runtimes_dir=str(RUNTIMES),
        compiler=COMMAND,
        snapshots={"durability": "disk", "folder": str(data), "free_bytes": 0},
    )
    model = engine.add_model("default", str(EMBEDDED_FOLDER), {"max_batch_tokens": 512}, vars(driver.capabilities))
    loop = threading.Thread(target=drive, args=(model, driver))
    loop.start()
    try:
        source = ("python", {PROGRAM.name: PROGRAM.read_bytes()}, PROGRAM.name)
        process = engine.launch(source, Launch(json.dumps({"tokens": N_TOKENS, "saves": saves}), seed=SEED))

        def ask(what: str) -> float:
            process.send(what)
            event = process.next_event(PATIENCE_S)
            if not isinstance(event, Event.Stdout):
                raise RuntimeError(f"the program ended otherwise than asked: {event}")
            return float(event.text)

        yield ask
        process.send("end")
    finally:
        engine.stop()
        loop.join()
        driver.close()


def measure() -> Iterator[Figure]:
    """Milliseconds of saving and opening, beside the bytes alone and beside computing."""
    with tempfile.TemporaryDirectory(dir=BUILD) as folder:
        data = Path(folder)
        with keeping(data, NullDriver(4096, n_pages=4096, max_batch_tokens=512)) as ask:
            for what in ("save", "open", "compute"):
                ask(what)
            kept = max((path for path in (data / "default").glob("*.snap")), key=lambda path: path.stat().st_size)
            raw = kept.read_bytes()
            figures = [
                (SAVE, in_turns(lambda: ask("save"), lambda: written(data / "plain", raw), N_ROUNDS)),
                (OPEN, in_turns(lambda: ask("open"), lambda: read(kept), N_ROUNDS)),
                (f"{OPEN}, beside computing them", in_turns(lambda: ask("open"), lambda: ask("compute"), N_ROUNDS)),
            ]
        sizes = dict.fromkeys(dict(figures), len(raw))
        for case, samples, n_bytes in with_pages(data):
            figures.append((case, samples))
            sizes[case] = n_bytes
    for case, samples in figures:
        figure = Figure(case, "ms", *samples, GOALS[case], f"{NOTES[case]}; {sizes[case]:,} bytes")
        show(f"P28 {case}: {figure.median('ours'):.3f} ms, {figure.median('ratio'):.2f} of the peer's")
        yield figure


def with_pages(data: Path) -> Iterator[tuple[str, tuple[list[float], list[float]], int]]:
    """What a first pass takes whose pages lie on disk, beside reading those and beside computing."""
    folder = data / "shape"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(SHAPE), encoding="utf-8")
    write_tensors(folder / "model.safetensors", dict(read_config(folder).shapes()), np.random.default_rng(SEED))
    options = CpuOptions(n_pages=4096, swap_bytes=0, max_batch_tokens=512)
    snapshots = data / "of pages"
    with keeping(snapshots, open_driver(folder, options)) as ask:
        ask("open")
    kept = sorted((snapshots / "default").glob("*.kv"))
    first: list[float] = []
    reads: list[float] = []
    computed: list[float] = []
    for _ in range(N_ENGINES):
        with keeping(snapshots, open_driver(folder, options), saves=False) as ask:
            reads.append(sum(map(read, kept)))
            first.append(ask("go on"))
            computed.append(ask("compute"))
    n_bytes = sum(path.stat().st_size for path in kept)
    yield PAGES, (first, reads), n_bytes
    yield f"{PAGES}, beside computing them", (first, computed), n_bytes


def written(path: Path, raw: bytes) -> float:
    """Milliseconds of one write of a new file and its fsync."""
    path.unlink(missing_ok=True)
    start_s = time.perf_counter()
    opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(opened, raw)
        os.fsync(opened)
    finally:
        os.close(opened)
    return 1e3 * (time.perf_counter() - start_s)


def read(path: Path) -> float:
    """Milliseconds of reading a file whole."""
    start_s = time.perf_counter()
    path.read_bytes()
    return 1e3 * (time.perf_counter() - start_s)


class SnapshotsOnDisk:
    """Time of a save and of an opening, as a part of what their bytes take."""

    params: ClassVar[list[str]] = list(GOALS)
    param_names: ClassVar[list[str]] = ["case"]
    timeout = 300

    def setup_cache(self) -> dict[str, Figure]:
        """Measures all cases once."""
        return save(ROW, measure())

    def track_ratio(self, figures: dict[str, Figure], case: str) -> float:
        """Median of the ratios by round."""
        return figures[case].median("ratio")
