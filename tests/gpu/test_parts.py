"""The parts of `make gpu` run on torch's CPU too, at small sizes, so that on a GPU they fail for its sake alone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from gpu import __main__ as gpu
from gpu import hosting, speed
from gpu.place import SMALL, Place, Row, is_all_right
from support.launching import ROOT


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    torch.set_num_threads(1)
    return Place("cpu", tmp_path_factory.mktemp("models"))


@pytest.mark.parametrize(
    "part", ["machine", "kernels", "drawing", "parity", "invariance", "following", "speed", "prompts", "idle", "shared"]
)
def test_a_part_finds_all_as_it_should_be(place: Place, part: str) -> None:
    rows = list(gpu.PARTS[part](place))
    print("\n".join(" | ".join(row) for row in rows))
    assert rows
    assert is_all_right(rows)


def test_steps_of_the_host_are_timed_by_graphs_on_a_clock(place: Place) -> None:
    """The figures say nothing here; that they are those of plain steps does not depend on the machine."""
    clock = hosting.Clock()
    driver, graphs = hosting.opened(place.model("small", SMALL), 2, 4, clock)
    clock.started_s, clock.ended_s = [], []
    speed.run_steps(driver, speed.decode_steps(2, 4))
    assert graphs.n_replays == 4
    assert len(clock.ended_s) == 4
    assert all(begin >= end for begin, end in zip(clock.started_s[1:], clock.ended_s[:-1], strict=True))
    driver.close()


def test_steps_of_the_host_are_timed_where_a_prompt_is_shared(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The figure says nothing here; that each step has a graph is asserted by the part."""
    for name, value in {"WIDTHS": (2, 4), "N_STEPS": 20, "ROUNDS": 2}.items():
        monkeypatch.setattr(hosting, name, value)
    [(what, _, verdict)] = hosting.sharing_host(place.model("small", SMALL))
    assert what == "a step of 4 sequences that share a prompt, free bits"
    assert verdict in {"yes", "no"}


def test_a_part_that_fails_keeps_what_it_found(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(_: Place) -> Iterator[Row]:
        """Asks something."""
        yield ("first", "1", "yes")
        raise RuntimeError("CUDA error: an illegal instruction\nmore")

    monkeypatch.setattr(gpu, "PARTS", {"failing": failing, "idle": gpu.PARTS["idle"]})
    assert gpu.run("failing", place, tmp_path) == 1
    assert gpu.run("idle", place, tmp_path) == 0
    page = gpu.page(tmp_path)
    assert "## Failing\n\nAsks something." in page
    assert "| first | 1 | yes |\n| failing | RuntimeError: CUDA error: an illegal instruction | no |\n" in page


def test_a_part_has_a_process_of_its_own_with_its_log(tmp_path: Path) -> None:
    assert gpu.launch("idle", "cpu", tmp_path) == 0
    assert "idle between steps" in (tmp_path / "idle.log").read_text()
    assert "| idle between steps | there is no device | not run |" in gpu.page(tmp_path)


def test_a_part_that_hangs_says_where_in_its_log(tmp_path: Path) -> None:
    """In a process of its own, whose limit is a moment: what is waited for here never comes."""
    hanging = (
        "import sys, threading; from pathlib import Path; from gpu import __main__ as gpu; gpu.LIMIT_S = gpu._LAST_WORDS_S + 1\n"
        "def forever(place):\n    thread = threading.Thread(target=threading.Event().wait, daemon=True)\n    thread.start()\n"
        "    thread.join()\n    yield\n"
        f"gpu.PARTS = {{'forever': forever}}; gpu.run('forever', gpu.Place('cpu', Path('.')), Path({str(tmp_path)!r}))\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", hanging], cwd=ROOT / "tests", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        said = []
        for line in process.stderr:
            said.append(line)
            if " in forever" in line:
                break
        process.kill()
    assert "Timeout" in said[0]


def test_the_makefile_names_a_part_that_there_is() -> None:
    text = (ROOT / "Makefile").read_text()
    assert set(text.split('PARTS="')[1].split('"')[0].split()) <= set(gpu.PARTS)
