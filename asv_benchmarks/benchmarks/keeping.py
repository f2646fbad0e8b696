"""P28: snapshots on disk."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from benchmarks.engines import PATIENCE_S, NullDriver
from benchmarks.harness import BUILD, ROOT, SEED, Figure, Goal, Row, in_turns, save, show
from pie import _engine
from pie.compiler import COMMAND
from pie.config import EMBEDDED_FOLDER
from pie.events import Event
from pie.launch import Launch
from pie.programs import RUNTIMES
from pie.runner import drive

N_TOKENS = 8_192
N_ROUNDS = 15
SAVE = "save of 8,192 tokens"
OPEN = "opening of 8,192 tokens"
GOALS = {SAVE: [Goal("ratio", 1.2)], OPEN: [Goal("ratio", 1.2)], f"{OPEN}, beside computing them": [Goal("ratio", 1.0)]}
NOTES = {
    SAVE: "beside one write and fsync of as many bytes, in the same folder",
    OPEN: "beside one read of as many bytes, from the page cache as well",
    f"{OPEN}, beside computing them": "on a driver that computes nothing: the least that computing takes",
}
PROGRAM = ROOT / "asv_benchmarks/programs/keeping.py"

ROW = Row(
    name="P28-snapshots",
    title="Snapshots on disk",
    driver="null (computes nothing)",
    path="a call of a Python program -> engine -> file, durable -> the program",
    peer="the same bytes written or read by Python; the tokens computed",
)


@contextmanager
def keeping(data: Path) -> Iterator[Callable[[str], float]]:
    """A program in an engine that keeps snapshots in a folder; it is asked for the milliseconds of a call."""
    cache = BUILD / "cache"
    cache.mkdir(mode=0o700, parents=True, exist_ok=True)
    engine = _engine.Engine(
        cache_dir=str(cache),
        runtimes_dir=str(RUNTIMES),
        compiler=COMMAND,
        snapshots={"durability": "disk", "folder": str(data), "free_bytes": 0},
    )
    driver = NullDriver(4096, n_pages=4096, max_batch_tokens=512)
    model = engine.add_model("default", str(EMBEDDED_FOLDER), {"max_batch_tokens": 512}, vars(driver.capabilities))
    loop = threading.Thread(target=drive, args=(model, driver))
    loop.start()
    try:
        source = ("python", {PROGRAM.name: PROGRAM.read_bytes()}, PROGRAM.name)
        process = engine.launch(source, Launch(f'{{"tokens": {N_TOKENS}}}', seed=SEED))

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


def measure() -> Iterator[Figure]:
    """Milliseconds of saving and opening, beside the bytes alone and beside computing."""
    with tempfile.TemporaryDirectory(dir=BUILD) as folder:
        data = Path(folder)
        with keeping(data) as ask:
            for what in ("save", "open", "compute"):
                ask(what)
            kept = max((path for path in (data / "default").glob("*.snap")), key=lambda path: path.stat().st_size)
            raw = kept.read_bytes()
            figures = [
                (SAVE, in_turns(lambda: ask("save"), lambda: written(data / "plain", raw), N_ROUNDS)),
                (OPEN, in_turns(lambda: ask("open"), lambda: read(kept), N_ROUNDS)),
                (f"{OPEN}, beside computing them", in_turns(lambda: ask("open"), lambda: ask("compute"), N_ROUNDS)),
            ]
    for case, samples in figures:
        figure = Figure(case, "ms", *samples, GOALS[case], f"{NOTES[case]}; {len(raw):,} bytes")
        show(f"P28 {case}: {figure.median('ours'):.3f} ms, {figure.median('ratio'):.2f} of the peer's")
        yield figure


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
