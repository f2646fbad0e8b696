"""`make gpu`: runs the parts, each in a process of its own and within eight minutes, and writes docs/benchmarks-gpu.md.

`python -m gpu [PART ...]` in the folder `tests` runs some of them. Each leaves its log and its rows in build/gpu, so
that a part can be run again by itself, and the page holds what every part said last. `--device cpu` runs all of it
without a GPU, at small sizes, and writes no page.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]

import torch  # noqa: E402

from gpu import hosting, right, shared, speed  # noqa: E402
from gpu.place import Place, Row, is_all_right  # noqa: E402

PARTS: dict[str, Callable[[Place], Iterator[Row]]] = {
    "machine": right.machine,
    "kernels": right.kernels,
    "drawing": right.drawing,
    "conformance": right.conformance,
    "parity": right.parity,
    "invariance": right.invariance,
    "following": right.following,
    "speed": speed.speed,
    "prompts": speed.prompts,
    "idle": speed.idle,
    "shared": shared.shared,
    "host": hosting.host,
    "waiting": hosting.waiting,
}
LIMIT_S = 480
_LAST_WORDS_S = 20
RESULTS = ROOT / "build" / "gpu"
PAGE = ROOT / "docs" / "benchmarks-gpu.md"
INTRODUCTION = """# The cuda back end on a GPU

Written by `make gpu` (`tests/gpu`), which says of each part what it asks. A row whose last column is `no` is not as it
should be; `build/gpu/PART.log` has what the part printed.
"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m gpu", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=[])
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the folder of logs, rows and models")
    parser.add_argument("--here", action="store_true", help="runs one part in this process")
    asked = parser.parse_args()
    asked.results.mkdir(parents=True, exist_ok=True)
    place = Place(asked.device, asked.results / "models")
    if asked.here:
        return run(asked.parts[0], place, asked.results)
    codes = [launch(part, asked.device, asked.results) for part in asked.parts or PARTS]
    if place.is_gpu:
        PAGE.write_text(page(asked.results), encoding="utf-8")
        print(f"wrote {PAGE.relative_to(ROOT)}")
    return max(codes)


def run(part: str, place: Place, results: Path) -> int:
    """Runs a part, and writes its rows one by one: what it found before it failed is not lost."""
    rows: list[Row] = []
    print(f"{time.strftime('%H:%M:%S')} {part} on {place.device}, torch {torch.__version__}, Python {sys.version.split()[0]}", flush=True)
    # One that hangs says where, before it is ended.
    faulthandler.dump_traceback_later(LIMIT_S - _LAST_WORDS_S)
    try:
        for row in PARTS[part](place):
            rows.append(row)
            print(f"{time.strftime('%H:%M:%S')} {' | '.join(row)}", flush=True)
    except Exception as error:
        traceback.print_exc()
        rows.append((part, f"{type(error).__name__}: {error}".partition("\n")[0], "no"))
    finally:
        faulthandler.cancel_dump_traceback_later()
    (results / f"{part}.json").write_text(json.dumps(rows), encoding="utf-8")
    return 0 if is_all_right(rows) else 1


def launch(part: str, device: str, results: Path) -> int:
    """Runs a part in a process of its own, with its log; whatever ends it, the others run."""
    log = results / f"{part}.log"
    (results / f"{part}.json").unlink(missing_ok=True)
    command = [sys.executable, str(Path(__file__)), part, "--here", "--device", device, "--results", str(results)]
    with log.open("w", encoding="utf-8") as output:
        try:
            code = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, timeout=LIMIT_S, check=False).returncode
            ended = f"ended with exit code {code}"
        except subprocess.TimeoutExpired:
            code, ended = 1, f"did not end within {LIMIT_S} s"
    if not (results / f"{part}.json").exists():
        (results / f"{part}.json").write_text(json.dumps([[part, ended, "no"]]), encoding="utf-8")
    print(f"{part}: {'all as it should be' if code == 0 else f'see {log}'}", flush=True)
    return 1 if code else 0


def page(results: Path) -> str:
    """The page, of every part that was run."""
    parts = [INTRODUCTION]
    for part, asks in PARTS.items():
        path = results / f"{part}.json"
        rows = json.loads(path.read_text(encoding="utf-8")) if path.exists() else [[part, "not run", "not run"]]
        table = "\n".join(f"| {' | '.join(str(cell).replace('|', '/') for cell in row)} |" for row in rows)
        what = (asks.__doc__ or "").partition("\n")[0]
        parts.append(f"## {part.capitalize()}\n\n{what}\n\n| what | found | as it should be |\n|---|---|---|\n{table}\n")
    return "\n".join(parts)


if __name__ == "__main__":
    sys.exit(main())
