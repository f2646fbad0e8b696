"""In which order the device is called, and what befalls a driver whose device fails."""

from __future__ import annotations

import json
import math
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from pie.backends.base import Drawn, DriverError, DriverLostError, FailedSequencesError
from pie.backends.cuda import CudaDriver, CudaOptions, decoding
from pie.backends.cuda.calls import standin_calls
from pie.backends.cuda.device import CudaDevice
from pie.backends.cuda.graphs import Budget, Graphs, sizes
from pie.backends.cuda.share import Parts
from pie.errors import PieError
from pie.models.loader import load_checkpoint
from support.arenas import Draw, Feed, batch
from support.checkpoints import write_checkpoint
from support.recording import RecordingDevice, RecordingGraphs

PAGE_SIZE, N_PAGES = 8, 24


@pytest.fixture(autouse=True)
def _few_threads() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("model"), dtype="F32")


@pytest.fixture
def device() -> RecordingDevice:
    return RecordingDevice()


def opened(folder: Path, device: RecordingDevice, graphs: RecordingGraphs | None = None, **more: object) -> CudaDriver:
    options = CudaOptions(**{"device": "cpu", "page_size": PAGE_SIZE, "n_pages": N_PAGES, "max_batch_tokens": 64, "graph_seqs": 4} | more)
    driver = CudaDriver(load_checkpoint(folder), options, parts=Parts(device, standin_calls(), graphs))
    device.calls.clear()
    return driver


def prompts(n: int, batch_id: int = 1, **copies: object):
    return batch([Feed([5, 6, 7], [seq], rows=[2]) for seq in range(n)], page_size=PAGE_SIZE, batch_id=batch_id, **copies)


def followers(n: int, batch_id: int, **copies: object):
    feeds = [Feed([0], [seq], start=batch_id + 1, rows=[0], follows=seq) for seq in range(n)]
    return batch(feeds, page_size=PAGE_SIZE, batch_id=batch_id, before=batch_id - 1, **copies)


def test_a_step_waits_for_nothing_and_its_end_is_waited_for_once(folder: Path, device: RecordingDevice) -> None:
    driver = opened(folder, device, RecordingGraphs(device))
    first, second = driver.launch(prompts(3)), driver.launch(followers(3, 2))
    answers = [first()]
    third = driver.launch(followers(3, 3))
    answers += [second(), third()]
    kept = [call for call in device.calls if not call.startswith("pinned")]
    print("\n".join(kept))
    # A plan is marked, and is waited for before the next one of its kind; a graph needs none. The mark of an end is
    # waited for by whoever wants the answer.
    plan, *ends = [int(call.split()[1]) for call in kept if call.startswith("mark")]
    before = int(kept[1].split()[-1])
    assert before < plan - 1, "the last plan before is one of a graph"
    assert kept == [
        *("compute:", f"host waits for {before}", f"mark {plan} in compute", f"mark {ends[0]} in compute"),
        *("compute:", "replay", f"mark {ends[1]} in compute"),
        f"host waits for {ends[0]}",
        *("compute:", "replay", f"mark {ends[2]} in compute"),
        f"host waits for {ends[1]}",
        f"host waits for {ends[2]}",
    ]
    assert all(isinstance(answer, Drawn) and len(answer.logits) == 0 and len(answer.tokens) == 3 for answer in answers)


def test_the_same_tokens_come_where_each_batch_is_waited_for(folder: Path) -> None:
    """Followers on a driver with graphs, and the same tokens given by the host to one without."""
    launching, telling = opened(folder, RecordingDevice(), RecordingGraphs()), opened(folder, RecordingDevice())
    answers = [launching.launch(prompts(4)), launching.launch(followers(4, 2))]
    found = []
    for batch_id in range(3, 5):
        found.append(answers.pop(0)().tokens.tolist())
        answers.append(launching.launch(followers(4, batch_id)))
    found += [answer().tokens.tolist() for answer in answers]
    expected = [telling.run(prompts(4)).tokens.tolist()]
    for step in range(3):
        feeds = [Feed([token], [seq], start=3 + step, rows=[0]) for seq, token in enumerate(expected[-1])]
        expected.append(telling.run(batch(feeds, page_size=PAGE_SIZE)).tokens.tolist())
    assert found == expected


def test_copies_wait_for_the_batch_before_only_where_it_touches_their_pages(folder: Path, device: RecordingDevice) -> None:
    driver = opened(folder, device)
    before = driver.launch(prompts(2))
    apart, touching = followers(2, 2, swap_outs=[(9, 0)]), followers(2, 3, swap_outs=[(1, 1)], swap_ins=[(0, 10)])
    for launched, is_waiting in ((apart, False), (touching, True)):
        device.calls.clear()
        answer = driver.launch(launched)
        before()
        before = answer
        calls = [call for call in device.calls if call.startswith(("copies", "compute waits"))]
        assert [call for call in calls if call.startswith("copies waits")] == calls[1 : 1 + is_waiting]
        assert calls[-1].startswith("compute waits for")
    before()
    device.calls.clear()
    driver.run(followers(2, 4, swap_outs=[(1, 2)]))
    assert not [call for call in device.calls if call.startswith("copies waits")], "what was answered is waited for"


def test_a_batch_that_does_not_fit_into_memory_fails_alone(folder: Path, device: RecordingDevice) -> None:
    driver = opened(folder, device)
    expected = driver.run(prompts(2)).tokens.tolist()
    device.fails.append(torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.\nMore"))
    answers = [driver.launch(prompts(2)), driver.launch(followers(2, 2))]
    with pytest.raises(DriverError) as caught:
        answers[0]()
    print(caught.value)
    assert str(caught.value) == (
        "the device has too little memory for this batch (CUDA out of memory. Tried to allocate 2.00 GiB.); "
        "lower max_batch_tokens, kv_bytes or graph_bytes"
    )
    assert "give back" in device.calls
    answers[1]()
    assert driver.run(prompts(2)).tokens.tolist() == expected


def test_what_follows_a_batch_that_failed_fails_alone(folder: Path, device: RecordingDevice) -> None:
    """In the launch itself: the planning of attention raises."""
    driver = opened(folder, device)
    driver.run(prompts(1))
    device.fails_launching.append(torch.OutOfMemoryError("CUDA out of memory."))
    device.calls.clear()
    answers = [driver.launch(prompts(2))]
    # Nothing of it goes on where the pages that it writes are swapped in for others.
    assert device.calls[-2:] == ["host waits for all", "give back"]
    answers.append(driver.launch(followers(2, 2)))
    with pytest.raises(DriverError, match="too little memory"):
        answers[0]()
    with pytest.raises(FailedSequencesError) as caught:
        answers[1]()
    assert set(caught.value.reasons) == {0, 1}
    assert "batch 1 is not the one launched last, or failed" in caught.value.reasons[0]


def test_a_device_that_is_lost_fails_every_batch(folder: Path, device: RecordingDevice) -> None:
    driver = opened(folder, device)
    device.fails.append(torch.AcceleratorError("CUDA error: an illegal memory access was encountered\nCUDA kernel errors"))
    answers = [driver.launch(prompts(2)), driver.launch(followers(2, 2))]
    for answer in (*answers, driver.launch(prompts(2))):
        with pytest.raises(DriverLostError) as caught:
            answer()
        assert str(caught.value) == "the device does not work any more (CUDA error: an illegal memory access was encountered)"
    print(caught.value)
    driver.close()


def test_a_device_that_is_lost_behind_the_words_of_a_library_is_lost(folder: Path) -> None:
    """FlashInfer says in its own words what is wrong, and the device says it again when it is waited for."""

    class Broken(RecordingDevice):
        is_broken = False

        def finish(self) -> None:
            if self.is_broken:
                raise torch.AcceleratorError("CUDA error: an illegal memory access was encountered\nCUDA kernel errors")

    device = Broken()
    driver = opened(folder, device)
    device.is_broken = True
    device.fails_launching.append(RuntimeError("BatchPrefillWithPagedKVCache failed with error an illegal memory access"))
    for _ in range(2):
        with pytest.raises(DriverLostError) as caught:
            driver.run(prompts(1))
    print(caught.value)
    assert str(caught.value) == (
        "the device does not work any more (CUDA error: an illegal memory access was encountered; before that: "
        "BatchPrefillWithPagedKVCache failed with error an illegal memory access)"
    )
    driver.close()


def test_another_mistake_is_told_as_it_is(folder: Path, device: RecordingDevice) -> None:
    driver = opened(folder, device)
    for failures in (device.fails, device.fails_launching):
        driver.run(prompts(1))
        failures.append(RuntimeError("shape mismatch"))
        with pytest.raises(RuntimeError, match="shape mismatch"):
            driver.run(prompts(1))
    assert len(driver.run(prompts(1)).tokens) == 1


def test_a_model_that_does_not_fit_when_it_is_loaded_is_a_mistake_of_the_options(folder: Path) -> None:
    class Full(RecordingDevice):
        def pinned(self, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 9.00 GiB.")

    with pytest.raises(PieError) as caught:
        opened(folder, Full())
    print(caught.value.message)
    assert (caught.value.code, caught.value.details) == ("invalid-argument", {"option": "n_pages"})


def test_host_memory_that_there_is_not_is_a_mistake_of_swap_bytes(folder: Path) -> None:
    class Small(RecordingDevice):
        def locked(self, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
            raise RuntimeError("cudaHostRegister of 1048576 bytes gives the error 2")

    with pytest.raises(PieError) as caught:
        opened(folder, Small(), swap_bytes=1 << 20)
    print(caught.value.message)
    assert (caught.value.code, caught.value.details) == ("invalid-argument", {"option": "swap_bytes"})
    assert "lower swap_bytes, or raise what may be locked (ulimit -l)" in caught.value.message


def test_what_is_swapped_to_is_locked_as_large_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch would take a power of two for it."""
    calls: list[tuple[object, ...]] = []
    codes = iter([0, 2])
    runtime = SimpleNamespace(
        cudaHostRegister=lambda *asked: calls.append(("register", *asked)) or next(codes),
        cudaHostUnregister=lambda *asked: calls.append(("unregister", *asked)),
    )
    monkeypatch.setattr(torch.cuda, "cudart", lambda: runtime)
    device = object.__new__(CudaDevice)
    assert device.locked((0, 5), torch.float32).shape == (0, 5)
    memory = device.locked((3, 1000), torch.float32)
    place = memory.data_ptr()
    assert calls == [("register", place, 12_000, 0)]
    del memory
    assert calls[1:] == [("unregister", place)]
    with pytest.raises(RuntimeError, match="cudaHostRegister of 8 bytes gives the error 2"):
        device.locked((2,), torch.float32)


def test_what_torch_pins_is_as_large_as_it_takes(folder: Path) -> None:
    device = RecordingDevice()
    driver = opened(folder, device)
    driver.run(prompts(3))
    pinned = [math.prod(json.loads(call.split(" ", 1)[1].rpartition(" ")[0])) for call in device.calls if call.startswith("pinned")]
    assert pinned
    assert all(n & (n - 1) == 0 for n in pinned)


def test_sizes_of_graphs_grow_by_a_part() -> None:
    assert list(sizes(0)) == []
    assert list(sizes(1)) == [1]
    assert list(sizes(20)) == [1, 2, 3, 4, 8, 12, 16, 20]
    found = list(sizes(512))
    assert found[-1] == 512
    assert all(after <= max(2 * before, before + 8, before * 9 // 8) for before, after in pairwise(found))


@pytest.mark.parametrize(
    ("n_bytes", "time_s", "expected"), [(100 << 20, 9.0, [1, 2, 3]), (1 << 30, 3.5, [1, 2, 3]), (1 << 30, 99.0, [1, 2, 3, 4])]
)
def test_capturing_ends_with_its_time_and_memory(device: RecordingDevice, n_bytes: int, time_s: float, expected: list[int]) -> None:
    now = iter(range(100))
    budget = Budget(device, n_bytes=n_bytes, time_s=time_s, clock=lambda: float(next(now)))
    graphs = Graphs(RecordingGraphs(device, bytes_each=50 << 20), budget)
    graphs.capture(list(sizes(4)), lambda size: lambda: (torch.full((size,), size),))
    assert graphs.captured == expected
    assert [graphs.size_for(n) for n in (1, 3, 4)] == [1, 3, 4 if 4 in expected else None]
    assert graphs.left == [size for size in (1, 2, 3, 4) if size not in expected]
    print(graphs.told("decode batches"))
    why = "graph_bytes allows 100 MiB, and 150 MiB are taken" if n_bytes < 1 << 30 else "graph_s allows 3.5 s, and 4.0 s are over"
    of_four = f"decode batches of 4 sequences have no CUDA graph and are launched kernel by kernel: {why}"
    assert graphs.told("decode batches") == (of_four if 4 not in expected else None)


@pytest.mark.parametrize("error", [torch.OutOfMemoryError("CUDA out of memory."), torch.AcceleratorError("CUDA error: out of memory")])
def test_capturing_ends_where_memory_does(device: RecordingDevice, error: RuntimeError) -> None:
    """Also where CUDA itself finds none, for a graph that is made ready."""

    def prepare(size: int):
        if size == 3:
            raise error
        return lambda: (torch.full((size,), size),)

    graphs = Graphs(RecordingGraphs(device), Budget(device, n_bytes=1, time_s=99.0))
    graphs.capture(list(sizes(4)), prepare)
    assert graphs.captured == [1, 2]
    assert device.calls[-1] == "give back"
    assert graphs.left == [3, 4]
    assert graphs.why_left == f"the device has no memory left for them ({error})"
    # A rank that stops would leave the others waiting in the layers.
    graphs = Graphs(RecordingGraphs(device), Budget(device, n_bytes=1, time_s=99.0, agreed=lambda is_spent: is_spent))
    with pytest.raises(type(error)):
        graphs.capture(list(sizes(4)), prepare)


def test_memory_that_ends_within_a_capture_is_told_behind_the_failure_of_the_capture(device: RecordingDevice) -> None:
    """As torch does: what a graph is captured in fails at its end, for what happened inside."""

    class Failing(RecordingGraphs):
        def record(self, body):
            try:
                raise torch.OutOfMemoryError("CUDA out of memory.")
            finally:
                raise torch.AcceleratorError("CUDA error: operation failed due to a previous error during capture")

    graphs = Graphs(Failing(device), Budget(device, n_bytes=1, time_s=99.0))
    graphs.capture([1, 2], lambda size: lambda: (torch.zeros(size),))
    assert (graphs.captured, graphs.left) == ([], [1, 2])


def test_another_error_of_a_capture_is_told(device: RecordingDevice) -> None:
    def prepare(_: int):
        raise RuntimeError("shape mismatch")

    graphs = Graphs(RecordingGraphs(device), Budget(device, n_bytes=1, time_s=99.0))
    with pytest.raises(RuntimeError, match="shape mismatch"):
        graphs.capture(list(sizes(4)), prepare)


def test_graphs_are_captured_at_the_start_behind_a_warm_up(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    device = RecordingDevice()

    class Clock(Budget):
        def __init__(self, *arguments: Any, **named: Any) -> None:
            device.calls.append("the clock begins")
            super().__init__(*arguments, **named)

    monkeypatch.setattr(decoding, "Budget", Clock)
    options = CudaOptions(device="cpu", page_size=PAGE_SIZE, n_pages=N_PAGES, graph_seqs=2, swap_bytes=0)
    driver = CudaDriver(load_checkpoint(folder), options, parts=Parts(device, standin_calls(), RecordingGraphs(device)))
    kept = [call for call in device.calls if call in {"replay", "host waits for all", "the clock begins"} or call.startswith("capture")]
    print(kept)
    wait = "host waits for all"
    sizes_in_order = [call for size in (1, 2) for call in (wait, f"capture {size}")]
    # What runs kernel by kernel is run once, and so is what graphs are made of, before the clock begins. Then, of two
    # sizes, the forward, the draws, and the draws with filters; then copies of pages are timed.
    assert kept == [wait, wait, "the clock begins", *sizes_in_order * 3, wait]
    # Whatever is loaded is loaded in the stream that uses it.
    assert device.calls[0] == "compute:"
    assert driver.graph_sizes == [1, 2]


def test_sizes_that_have_no_graph_are_told_with_the_reason(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    device = RecordingDevice()
    opened(folder, device, RecordingGraphs(device, bytes_each=1 << 20), graph_bytes=1 << 20).close()
    told = capfd.readouterr().err
    print(told)
    # The first two take more than is allowed; then nothing is left for draws.
    why = "graph_bytes allows 1 MiB, and 2 MiB are taken"
    what = ("decode batches of 3, 4", "draws from decode batches of 1, 2", "draws with top-k or top-p from decode batches of 1, 2")
    assert told.splitlines() == [f"cuda: {sizes} sequences have no CUDA graph and are launched kernel by kernel: {why}" for sizes in what]
    opened(folder, device, RecordingGraphs(device)).close()
    assert not capfd.readouterr().err


def test_a_batch_that_wants_no_row_is_computed_up_to_its_last_keys(folder: Path, device: RecordingDevice) -> None:
    """A flush, and every chunk of a prompt but the last: no kernel is launched without rows, which CUDA refuses."""
    chunked, whole = opened(folder, device), opened(folder, RecordingDevice())
    answer = chunked.run(batch([Feed([5, 6, 7, 8], [0])], page_size=PAGE_SIZE))
    assert (len(answer.tokens), answer.logits.shape) == (0, (0, 160))
    last = batch([Feed([9], [0], start=4, rows=[0])], page_size=PAGE_SIZE)
    expected = whole.run(batch([Feed([5, 6, 7, 8, 9], [0], rows=[4])], page_size=PAGE_SIZE))
    assert chunked.run(last).tokens.tolist() == expected.tokens.tolist()


def test_a_batch_draws_as_many_tokens_as_are_asked_for(folder: Path, device: RecordingDevice) -> None:
    """Rows that are kept and not drawn from, rows with many draws, rows that nothing can be drawn from."""
    driver = opened(folder, device)
    feed = Feed([5, 6, 7], [0], rows=[0, 1, 2, 2], draws=[Draw(), Draw(seed=3), Draw(slot=1), Draw(mask=[3, 1])])
    asked = batch([feed], page_size=PAGE_SIZE)
    asked.words.setflags(write=True)
    asked.row_draws[:] = [0, 3, 1, 1]
    asked.row_keep[:] = [1, 0, 0, 1]
    answer = driver.run(asked)
    assert len(answer.tokens) == 5
    assert len(answer.logits) == 2
    assert answer.tokens[:3].tolist() == [int(answer.tokens[0])] * 3
    assert answer.tokens[4] == 3
    assert np.argmax(answer.logits[1]) == answer.tokens[3]
