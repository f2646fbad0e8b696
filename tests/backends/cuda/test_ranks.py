"""A model over two processes gives the tokens of one; a rank that ends is told, and nothing is waited for for ever."""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from multiprocessing import Pipe
from pathlib import Path

import numpy as np
import pytest
import torch

from oracle.sampler import Sampler
from pie.backends import open_driver
from pie.backends.base import DriverLostError
from pie.backends.cuda import CudaDriver, CudaOptions, ranks
from pie.backends.cuda.group import Alone, summed
from pie.backends.cuda.layout import Share
from pie.backends.cuda.ranks import Others
from pie.backends.cuda.share import Plan
from pie.config import EMBEDDED_FOLDER, Flags, load
from pie.engine import Engine
from pie.errors import PieError
from pie.isolation.driver import IsolatedDriver
from pie.models.loader import load_checkpoint
from support import isolated
from support.arenas import Draw, Feed, batch
from support.checkpoints import write_checkpoint, write_shallow_copy
from support.conformance import RowsOf
from support.engines import started
from support.families import MODELS, save_random
from support.isolated import STEPPING
from support.launching import finish

N_PROMPT, N_NEW = 24, 8
PROMPT = np.random.default_rng(3).integers(0, 160, N_PROMPT).tolist()
OPTIONS = CudaOptions(device="cpu", n_pages=16, dtype="float32", swap_bytes=0)
SAMPLERS = [Sampler(), Sampler(temperature=1.0), Sampler(temperature=0.9, top_p=0.9)]


@pytest.fixture(autouse=True)
def _few_threads() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("model"), dtype="F32")


@pytest.fixture
def two(folder: Path) -> Iterator[CudaDriver]:
    driver = CudaDriver(load_checkpoint(folder), replace(OPTIONS, tensor_parallel=2))
    yield driver
    driver.close()


def tokens(driver: CudaDriver) -> list[list[int]]:
    """What three sequences draw, each in its way, from prompts in two chunks and steps that follow each other."""
    pages = [range(4 * seq, 4 * seq + 4) for seq in range(3)]
    draws = [[Draw(sampler, seed=11 * seq)] for seq, sampler in enumerate(SAMPLERS)]
    first = batch([Feed(PROMPT[:9], pages[seq]) for seq in range(3)], page_size=16, batch_id=1)
    rest = [Feed([*PROMPT[9:], seq], pages[seq], start=9, rows=[N_PROMPT - 9], draws=draws[seq]) for seq in range(3)]
    asked = [first, batch(rest, page_size=16, batch_id=2)]
    for step in range(N_NEW):
        feeds = [Feed([0], pages[seq], start=N_PROMPT + 1 + step, rows=[0], draws=draws[seq], follows=seq) for seq in range(3)]
        asked.append(batch(feeds, page_size=16, batch_id=step + 3, before=step + 2))
    answers, found = [], []
    for one in asked:
        answers.append(driver.launch(one))
        if len(answers) == 2:
            found.append(answers.pop(0)().tokens.tolist())
    return [*found, answers.pop()().tokens.tolist()][1:]


@pytest.mark.parametrize("name", ["grouped, llama3", "tied, one kv head, yarn", "biases everywhere, yarn with all fields", "qwen2"])
def test_two_processes_give_the_tokens_of_one(tmp_path: Path, name: str) -> None:
    """Of one the heads of keys and values are fewer than the ranks."""
    save_random(tmp_path, name, max_shard_size="60KB")
    checkpoint, found = load_checkpoint(tmp_path), []
    for n_ranks in (1, 2):
        driver = CudaDriver(checkpoint, replace(OPTIONS, tensor_parallel=n_ranks))
        found.append(tokens(driver))
        driver.close()
    print(f"{name} ({checkpoint.spec.family}): {found[1]}")
    assert found[0] == found[1]


def test_rows_are_those_of_one_but_for_rounding_and_the_same_in_every_batch(folder: Path, two: CudaDriver) -> None:
    one, rows = RowsOf(CudaDriver(load_checkpoint(folder), OPTIONS)), RowsOf(two)
    whole = batch([Feed(PROMPT, range(4), rows=range(N_PROMPT))], page_size=16)
    expected, found = one.run(whole).copy(), rows.run(whole).copy()
    assert np.abs(found - expected).max() < 1e-4 * expected.std()
    chunks = [
        rows.run(batch([Feed(PROMPT[a:b], range(4, 8), start=a, rows=range(b - a)), Feed([7], [9])], page_size=16)).copy()
        for a, b in ((0, 1), (1, 10), (10, N_PROMPT))
    ]
    assert np.array_equal(np.concatenate(chunks), found)


def test_pages_are_swapped_and_copied_on_every_rank(folder: Path) -> None:
    driver = CudaDriver(load_checkpoint(folder), replace(OPTIONS, tensor_parallel=2, swap_bytes=1 << 20))
    rows = RowsOf(driver)
    expected = rows.run(batch([Feed(PROMPT[:16], [3]), Feed([9], [4], start=0)], page_size=16))
    expected = rows.run(batch([Feed([7], [3, 5], start=16, rows=[0])], page_size=16)).copy()
    moved = batch([Feed([7], [8, 6], start=16, rows=[0])], page_size=16, swap_outs=[(3, 1)], swap_ins=[], copies=[(3, 8)])
    assert np.array_equal(rows.run(moved), expected)
    back = batch([Feed([7], [10, 6], start=16, rows=[0])], page_size=16, swap_ins=[(1, 10)])
    assert np.array_equal(rows.run(back), expected)
    driver.close()


class Given(Alone):
    """Ranks whose parts are known."""

    def __init__(self, parts: list[float]) -> None:
        self._parts = torch.tensor(parts)
        self.size = len(parts)

    def gather(self, x: torch.Tensor) -> torch.Tensor:
        return self._parts[:, None]


@pytest.mark.parametrize(("parts", "expected"), [([1e8, 1.0, -1e8], 0.0), ([1e8, -1e8, 1.0], 1.0), ([1.0, 1e8, -1e8], 0.0)])
def test_parts_are_added_in_the_order_of_ranks(parts: list[float], expected: float) -> None:
    assert summed(Given(parts), torch.zeros(1)).tolist() == [expected]


def test_a_batch_that_is_refused_reaches_no_rank(two: CudaDriver) -> None:
    expected = tokens(two)
    with pytest.raises(Exception, match="page index 99 is not below 16"):
        two.run(batch([Feed([1], [99], rows=[0])], page_size=16))
    assert tokens(two) == expected


def children(pid: int) -> list[int]:
    """The processes that a process started."""
    return [int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()]


def test_a_rank_that_dies_fails_its_batch_and_all_others(folder: Path) -> None:
    before = set(children(os.getpid()))
    driver = CudaDriver(load_checkpoint(folder), replace(OPTIONS, tensor_parallel=2))
    tokens(driver)
    [rank] = set(children(os.getpid())) - before
    os.kill(rank, signal.SIGKILL)
    for _ in range(2):
        with pytest.raises(DriverLostError) as caught:
            driver.run(batch([Feed([1, 2], [0], rows=[1])], page_size=16))
        assert str(caught.value) == "rank 1 of 2 was killed by SIGKILL, and no rank has the whole model"
    print(caught.value)
    driver.close()
    assert set(children(os.getpid())) == before


def test_why_a_rank_could_not_go_on_is_told(two: CudaDriver) -> None:
    """Not only with which code it ended. What the error says may name paths, and stands in the log of that process."""
    [rank] = two._others._ranks
    rank.connection.send_bytes(b"no batch")
    rank.process.wait()
    told = r"rank 1 of 2 ended with exit code 75 \(ValueError\), and no rank has the whole model"
    for _ in range(2):
        with pytest.raises(DriverLostError, match=told) as caught:
            two.run(batch([Feed([1, 2], [0], rows=[1])], page_size=16))
    print(caught.value)


def test_programs_go_on_where_a_rank_of_their_driver_died(tmp_path: Path) -> None:
    """The process of the driver ends with its ranks, and is started again."""
    folder = write_shallow_copy(tmp_path, EMBEDDED_FOLDER, [0])
    opening = partial(open_driver, "cuda", folder, replace(OPTIONS, dtype=None, tensor_parallel=2))
    driver = IsolatedDriver(opening, isolated.VOCAB_SIZE)
    engine = Engine()
    engine.add_model(folder, driver=driver)
    assert driver.pid is not None
    first = driver.pid
    os.kill(children(first)[0], signal.SIGKILL)
    with started(engine):
        outcome = finish(engine.launch(STEPPING, input={"prompt": [5, 6, 7], "n": 6}))
        assert driver.pid not in {None, first}
    assert outcome.code is None, outcome.message
    found, codes = outcome.value
    assert len(found) == 6
    assert set(codes) == {"driver-lost"}


def test_what_a_rank_lacks_is_told_with_its_number(tmp_path: Path) -> None:
    others = Others(tmp_path / "nothing", replace(OPTIONS, tensor_parallel=3))
    with pytest.raises(PieError, match=r"rank [12] of 3: .*nothing") as caught:
        others.meet(torch.device("cpu"))
    print(caught.value.message)
    others.close(at_once=True)
    assert caught.value.code == "invalid-model"


def test_what_a_rank_lacks_is_told_by_whoever_waited_for_it_in_vain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It fails where others wait for it: what it says is why the model is not opened, not how they learn of it."""
    folder = write_checkpoint(tmp_path / "model", dtype="F32")

    def failing(plan: Plan, *_: object) -> None:
        # As a rank does that finds no room for its weights, once the others are on their way.
        [rank] = OTHERS[0]._ranks
        mine, theirs = Pipe()
        theirs.send_bytes(json.dumps(["error", "invalid-argument", "the model does not fit", {"option": "kv_bytes"}]).encode())
        rank.process.kill()
        rank.connection = mine
        raise RuntimeError("Connection closed by peer")

    meet = Others.meet
    monkeypatch.setattr(Others, "meet", lambda others, device: (OTHERS.append(others), meet(others, device))[1])
    monkeypatch.setattr(Plan, "open", failing)
    with pytest.raises(PieError, match="rank 1 of 2: the model does not fit") as caught:
        CudaDriver(load_checkpoint(folder), replace(OPTIONS, tensor_parallel=2))
    assert (caught.value.code, caught.value.details) == ("invalid-argument", {"option": "kv_bytes"})


OTHERS: list[Others] = []


def test_what_was_computed_without_a_rank_is_no_answer(two: CudaDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its connection has ended, and its process is not known to have: a device may be done with what is nothing."""
    [rank] = two._others._ranks
    monkeypatch.setattr(rank.process, "poll", lambda: rank.process.returncode)  # known where it is waited for alone
    answer = two.launch(batch([Feed([5, 6, 7], [0], rows=[2])], page_size=16))
    gone = select.poll()
    gone.register(rank.connection.fileno(), select.POLLRDHUP)
    os.kill(rank.process.pid, signal.SIGKILL)
    gone.poll()
    with pytest.raises(DriverLostError, match="rank 1 of 2 was killed by SIGKILL"):
        answer()


def test_folders_that_a_driver_left_are_removed_and_those_in_use_are_not(tmp_path: Path) -> None:
    """A driver that is killed leaves its folder, which the next one finds without a lock."""
    left, young, used, named = (tmp_path / name for name in ("pie-ranks-a", "pie-ranks-b", "pie-ranks-c", "others"))
    for path in (left, young, used, named):
        path.mkdir()
        (path / "meeting").write_text("")
    (tmp_path / "pie-ranks-d").symlink_to(named)
    for path in (left, used, named):
        os.utime(path, (0, 0))
    locked = os.open(used, os.O_RDONLY)
    fcntl.flock(locked, fcntl.LOCK_EX)
    ranks._sweep(tmp_path)
    os.close(locked)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["others", "pie-ranks-b", "pie-ranks-c", "pie-ranks-d"]
    assert (named / "meeting").exists()
    ranks._sweep(tmp_path)
    assert not used.exists()


def test_the_folder_of_a_driver_is_locked_while_it_is_open(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    others = Others(folder, CudaOptions(device="cpu", n_pages=8, tensor_parallel=2))
    [own] = tmp_path.iterdir()
    os.utime(own, (0, 0))
    ranks._sweep(tmp_path)
    assert own.exists()
    others.close(at_once=True)
    assert not own.exists()


def test_a_rank_ends_with_the_process_that_started_it(folder: Path) -> None:
    """Also where none of its threads gets a turn, as where one waits for a device and holds the interpreter."""
    driver = IsolatedDriver(partial(CudaDriver, load_checkpoint(folder), replace(OPTIONS, tensor_parallel=2)), 160)
    assert driver.pid is not None
    [rank] = children(driver.pid)
    assert Path(f"/proc/{rank}/oom_score_adj").read_text() == "500\n"
    ended = os.pidfd_open(rank)
    os.kill(rank, signal.SIGSTOP)
    os.kill(driver.pid, signal.SIGKILL)
    poll = select.poll()
    poll.register(ended, select.POLLIN)
    assert poll.poll(60_000)
    os.close(ended)
    driver.close()


def test_a_model_that_cannot_be_cut_is_told_with_what_can(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "model", num_attention_heads=12, num_key_value_heads=4, intermediate_size=80)
    for n_ranks in (3, 5, 8):
        with pytest.raises(PieError) as caught:
            CudaDriver(load_checkpoint(folder), replace(OPTIONS, dtype=None, tensor_parallel=n_ranks))
        assert (caught.value.code, caught.value.details) == ("invalid-argument", {"option": "tensor_parallel"})
        assert caught.value.message == (
            f"tensor_parallel is {n_ranks}, and a model of 12 heads, 4 of keys and values, and 80 units cannot be cut into as many; "
            "give one of 1, 2, 4"
        )
    print(caught.value.message)


def test_a_configuration_says_so_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('[model.pie-tiny]\ndriver = "cuda"\ndevice = "cpu"\ntensor_parallel = 7\n')
    with pytest.raises(PieError, match=r"config.toml:4: model.pie-tiny.tensor_parallel is not possible: tensor_parallel is 7, and"):
        Engine.from_config(load(Flags(file=path), variables={}))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("size", [2, 4])
def test_the_shares_of_a_model_are_all_of_it(tmp_path: Path, name: str, size: int) -> None:
    """Every part fits its rank; together they are each weight once, keys and values of few heads more often."""
    save_random(tmp_path, name)
    spec = load_checkpoint(tmp_path).spec
    if spec.attention.n_heads % size:
        return
    times: dict[str, np.ndarray] = {weight: np.zeros(shape, int) for weight, shape in spec.shapes().items()}
    for rank in range(size):
        share = Share(rank, size)
        share.check(spec)
        parts, shapes = share.parts(spec), share.shapes(spec)
        for weight, count in times.items():
            part = parts.get(weight)
            place = count if part is None else count[part.start : part.stop] if part.dim == 0 else count[:, part.start : part.stop]
            place += 1
            is_table = weight in {spec.names.embedding, spec.names.output}
            assert is_table or place.shape == shapes[weight]
    n_shared = max(1, size // spec.attention.n_kv_heads)
    for weight, count in times.items():
        is_key = any(mark in weight for mark in ("k_proj", "v_proj"))
        is_whole = "norm" in weight or any(f"{mark}.bias" in weight for mark in ("o_proj", "down_proj"))
        assert (count == (size if is_whole else n_shared if is_key else 1)).all(), weight
