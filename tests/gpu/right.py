"""The parts that ask whether what the GPU computes is right."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch

from gpu.place import SMALL, Place, Row, judged
from oracle.sampler import Sampler
from pie.backends.cuda.calls import Calls, fastest_linear
from pie.backends.cuda.drawing import Drawing
from pie.backends.cuda.machine import ThisMachine, check_machine
from pie.backends.cuda.rows import check_rows
from pie.backends.cuda.sampling import TorchArithmetic
from pie.backends.cuda.signatures import VERSIONS
from pie.backends.cuda.staging import Staging
from pie.models.loader import read_config
from support.arenas import Draw, Feed, batch
from support.conformance import RowsOf
from support.launching import ROOT
from support.random_rows import random_rows

PAGE_SIZE = 16
AT_RANDOM, FILTERED = Sampler(temperature=1.0), Sampler(temperature=0.8, top_k=40, top_p=0.9)
FOLLOWED = {"the greatest": [Sampler()], "at random": [AT_RANDOM, Sampler()], "by top-k and top-p too": [AT_RANDOM, FILTERED]}
"""How the sequences draw, in turns."""


def machine(place: Place) -> Iterator[Row]:
    """What there is, and whether the back end finds all that it needs."""
    here = ThisMachine()
    yield ("torch", f"{torch.__version__}, CUDA {here.toolkit()}, driver {here.driver()}", "")
    for package in VERSIONS:
        yield (package, str(here.version(package)), "")
    if place.is_gpu:
        check_machine(here, place.device, read_config(place.model("small", SMALL)), "bfloat16")
        properties = torch.cuda.get_device_properties(place.device)
        yield (properties.name, f"{properties.total_memory >> 30} GiB, {properties.multi_processor_count} processors", "yes")


def kernels(place: Place) -> Iterator[Row]:
    """Linears against doubles, against themselves in other batches, and against cuBLAS; weights and random bits."""
    calls, device = place.calls(), torch.device(place.device)
    torch.manual_seed(0)
    for n_inputs, n_outputs in ((1024, 2048), (3072, 1024), (1024, 16384)) if place.is_gpu else ((96, 64),):
        x = torch.randn(300, n_inputs, device=device).bfloat16()
        weight = (torch.randn(n_outputs, n_inputs, device=device) * n_inputs**-0.5).bfloat16()
        whole = calls.linear(x, weight, None, torch.float32)
        worst = float((whole.double() - x.double() @ weight.double().T).abs().max())
        yield judged(f"linear {n_inputs} to {n_outputs}: largest error", f"{worst:.1e}", is_right=worst < 1e-3)
        parts = [(0, 1), (299, 300), (17, 50), (100, 228)]
        n_other = sum(not torch.equal(calls.linear(x[a:b], weight, None, torch.float32), whole[a:b]) for a, b in parts)
        yield judged(f"linear {n_inputs} to {n_outputs}: parts with other bits", f"{n_other} of {len(parts)}", is_right=n_other == 0)
        if place.is_gpu:
            yield from measured_linear(calls, weight)
    logits = torch.randn(64, 5000, device=device) * 8
    arguments = (logits, logits.amax(dim=1), torch.rand(64, device=device) + 0.1)
    expected = TorchArithmetic().weights(*(argument.cpu() for argument in arguments))
    n_other = int((calls.arithmetic.weights(*arguments).cpu() != expected).sum())
    yield judged("weights that differ from torch's on the CPU", f"{n_other} of {expected.numel()}", is_right=n_other == 0)
    keys = torch.randint(0, 1 << 32, (5000, 5))
    n_other = int((calls.arithmetic.random_bits(keys.to(device)).cpu() != TorchArithmetic().random_bits(keys)).sum())
    yield judged("random words that differ", f"{n_other} of 10000", is_right=n_other == 0)


def measured_linear(calls: Calls, weight: torch.Tensor) -> Iterator[Row]:
    """Which tile is chosen, that it changes no bit, and its time against cuBLAS."""
    from pie.backends.cuda.kernels import Linears, by_rule, device_seconds

    (n_outputs, n_inputs), usual, chosen = weight.shape, Linears(()), Linears()
    chosen.choose([weight])
    tile = chosen.chosen[n_outputs, n_inputs]
    what = f"linear {n_inputs} to {n_outputs}"
    yield (f"{what}: tile", f"{tuple(tile)}, by the rule {tuple(by_rule(n_outputs))}", "")
    for n in (1, 64, 256):
        x = torch.randn(n, n_inputs, device=weight.device).bfloat16()
        is_same = torch.equal(chosen(x, weight, None, torch.float32), usual(x, weight, None, torch.float32))
        times = [device_seconds(partial(linear, x, weight, None, torch.bfloat16)) for linear in (chosen, fastest_linear)]
        yield judged(f"{what}, {n} tokens, against cuBLAS", " / ".join(f"{1e6 * time:.0f} us" for time in times), is_right=is_same)


def drawing(place: Place) -> Iterator[Row]:
    """Random rows are drawn from as by the engine."""
    calls, device = place.calls(), place.torch_device()
    n_wrong = n_tokens = 0
    for seed in range(200 if place.is_gpu else 2):
        rows = random_rows(seed, 500 if place.is_gpu else 50, [33, 160, 1000, 4096][seed % 4])
        asked, vocab_size = rows.arena(), rows.logits.shape[1]
        with torch.inference_mode(), device.computing():
            logits = torch.from_numpy(rows.logits).to(device.name)
            drawn = Drawing(calls, Staging(device, 64), vocab_size).draw(asked, check_rows(asked, vocab_size), logits)
            found = drawn.tokens.tolist()
        expected = rows.expected()
        n_wrong, n_tokens = n_wrong + sum(a != b for a, b in zip(found, expected, strict=True)), n_tokens + len(expected)
    yield judged("tokens that differ from the engine's", f"{n_wrong} of {n_tokens}", is_right=n_wrong == 0)


def conformance(place: Place) -> Iterator[Row]:
    """The test that every driver is asked by: in bfloat16 by FlashInfer and graphs, in float32 without either."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/backends/test_conformance.py"]
    chosen = [] if place.is_gpu else ["-k", "declares or follow"]
    for how in ("", "_in_float32"):
        opening = f"gpu.opening:{'on_gpu' if place.is_gpu else 'on_cpu'}{how}"
        done = subprocess.run([*command, "--driver", opening, *chosen], cwd=ROOT, capture_output=True, text=True, check=False)
        print(done.stdout[-20_000:], done.stderr[-5000:])
        what = f"the conformance test{how.replace('_', ' ')}"
        yield judged(what, done.stdout.strip().splitlines()[-1], is_right=done.returncode == 0)


def parity(place: Place) -> Iterator[Row]:
    """Families in bfloat16 and float16 against transformers: no farther from float32 than that, but for a quarter."""
    import transformers

    from support.families import MODELS, save_random

    prompt = np.random.default_rng(3).integers(0, 160, 48).tolist()
    for name in MODELS if place.is_gpu else list(MODELS)[:1]:
        for dtype in (torch.bfloat16, torch.float16):
            folder = place.folder / f"{name} {dtype}".replace(",", "").replace(" ", "-")
            save_random(folder, name, dtype=dtype, hidden_size=256, head_dim=64)
            peers = [transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=kind).eval() for kind in (dtype, torch.float32)]
            with torch.no_grad():
                theirs, exact = (peer(torch.tensor([prompt])).logits[0].float().numpy() for peer in peers)
            driver = RowsOf(place.driver(folder, n_pages=8))
            ours = driver.run(batch([Feed(prompt, range(8), rows=range(len(prompt)))], page_size=PAGE_SIZE)).copy()
            # A prompt in chunks, of which the first wants no row.
            driver.run(batch([Feed(prompt[:20], range(4, 8))], page_size=PAGE_SIZE))
            rest = driver.run(batch([Feed(prompt[20:], range(4, 8), start=20, rows=range(28))], page_size=PAGE_SIZE))
            n_other = int((rest != ours[20:]).any(axis=1).sum())
            yield judged(f"{name}, {dtype}: rows behind a chunk without any with other bits", f"{n_other} of 28", is_right=n_other == 0)
            mine, yours = (float(np.abs(rows - exact).mean() / exact.std()) for rows in (ours, theirs))
            driver.close()
            found = f"{mine:.1e} of the spread, transformers {yours:.1e}"
            yield judged(f"{name}, {dtype}: mean distance from float32", found, is_right=mine < 1.25 * yours + 1e-3)


def invariance(place: Place) -> Iterator[Row]:
    """Mixed sequences, chunked prompts, some with masks, with graphs and without: each row as in its own run."""
    n_seqs, length = (256, 80) if place.is_gpu else (6, 12)
    order, numbers = Random(1), np.random.default_rng(1)
    texts = [numbers.integers(0, 160, order.randint(2, length)).tolist() for _ in range(n_seqs)]
    masks = [
        {slot: [slot % 3, 2, 1, slot - 2 - slot % 3] for slot in range(5, len(text), 3)} if seq % 3 == 0 else {}
        for seq, text in enumerate(texts)
    ]
    n_each = -(-length // PAGE_SIZE)
    folder, sizes = place.model("small", SMALL), {"n_pages": n_seqs * n_each, "max_batch_tokens": 1024}
    yield hiding_nothing(place, folder)
    for graph_seqs in (0, 64):
        solo, mixed = (RowsOf(place.driver(folder, graph_seqs=graph_seqs, **sizes)) for _ in range(2))
        alone = [
            solo.run(batch([Feed(text, range(n_each), rows=range(len(text)), masks=mask)], page_size=PAGE_SIZE)).copy()
            for text, mask in zip(texts, masks, strict=True)
        ]
        solo.close()
        done, n_rows, n_other = [0] * n_seqs, 0, 0
        while unfinished := [seq for seq in range(n_seqs) if done[seq] < len(texts[seq])]:
            feeds: list[Any] = []
            wanted = []
            is_decode = order.random() < 0.5
            for seq in order.sample(unfinished, order.randint(1, min(len(unfinished), 100))):
                n = min(1 if is_decode or seq % 2 else order.randint(2, 9), len(texts[seq]) - done[seq])
                pages = range(n_each * seq, n_each * (seq + 1))
                first = done[seq]
                mine = {slot - first: runs for slot, runs in masks[seq].items() if first <= slot < first + n}
                feeds.append(Feed(texts[seq][first : first + n], pages, start=first, rows=range(n), masks=mine))
                wanted.append(alone[seq][first : first + n])
                done[seq] += n
            expected = np.concatenate(wanted)
            found = mixed.run(batch(feeds, page_size=PAGE_SIZE))
            n_rows, n_other = n_rows + len(expected), n_other + int((found != expected).any(axis=1).sum())
        mixed.close()
        what = f"rows of {n_seqs} mixed sequences with other bits than alone, graphs up to {graph_seqs}"
        yield judged(what, f"{n_other} of {n_rows}", is_right=n_other == 0)


def hiding_nothing(place: Place, folder: Path) -> Row:
    """Masks that hide nothing, alone and beside some that do."""
    driver, text, n = RowsOf(place.driver(folder, n_pages=4)), list(range(40)), 40
    answers = []
    for masks in ({}, {slot: [0, 1, 0, slot] for slot in range(1, n)}, {slot: [0, n] if slot % 3 else [1, slot] for slot in range(2, n)}):
        rows = driver.run(batch([Feed(text, range(4), rows=range(n), masks=masks)], page_size=PAGE_SIZE)).copy()
        answers.append(rows)
    driver.close()
    # Behind the first mask that hides something, all rows are others.
    n_other = int((answers[1] != answers[0]).any(axis=1).sum()) + int((answers[2][:3] != answers[0][:3]).any(axis=1).sum())
    return judged("rows with other bits under masks that hide nothing", f"{n_other} of {n + 3}", is_right=n_other == 0)


def following(place: Place) -> Iterator[Row]:
    """Batches that follow each other on the device give the tokens that come where the host tells each.

    All draws are the greatest token, or at random, or half of those with top-k and top-p; graphs draw each kind.
    Between those steps others run, whose memory a graph must not read from.
    """
    n_seqs, n_steps = 32, 40 if place.is_gpu else 4
    options = {"n_pages": 8 * n_seqs, "max_batch_tokens": 256}
    folder = place.model("small", SMALL)
    pages = [range(6 * seq, 6 * seq + 6) for seq in range(n_seqs)]
    other = Feed(list(range(100)), range(6 * n_seqs, 6 * n_seqs + 7), rows=[99])
    for kind, samplers in FOLLOWED.items():
        launching, telling = place.driver(folder, **options), place.driver(folder, **options)
        draws = [[Draw(samplers[seq % len(samplers)], seed=seq)] for seq in range(n_seqs)]
        first = [Feed([5, 6, seq], pages[seq], rows=[2], draws=draws[seq]) for seq in range(n_seqs)]
        prompts = batch(first, page_size=PAGE_SIZE, batch_id=1)
        answers, found, n_batches = [launching.launch(prompts)], [], 1
        for step in range(n_steps):
            feeds = [Feed([0], pages[seq], start=3 + step, rows=[0], follows=seq, draws=draws[seq]) for seq in range(n_seqs)]
            if step % 4 == 3:
                # A prompt in the middle: the batch is launched kernel by kernel.
                feeds.append(other)
            n_batches += 1
            answers.append(launching.launch(batch(feeds, page_size=PAGE_SIZE, batch_id=n_batches, before=n_batches - 1)))
            found.append(answers.pop(0)().tokens.tolist()[:n_seqs])
        found.append(answers.pop()().tokens.tolist()[:n_seqs])
        expected = [telling.run(prompts).tokens.tolist()]
        for step in range(n_steps):
            feeds = [Feed([token], pages[seq], start=3 + step, rows=[0], draws=draws[seq]) for seq, token in enumerate(expected[-1])]
            expected.append(telling.run(batch(feeds, page_size=PAGE_SIZE)).tokens.tolist())
        n_other = sum(a != b for mine, yours in zip(found, expected, strict=True) for a, b in zip(mine, yours, strict=True))
        what = f"tokens that differ where batches follow, {kind}"
        yield judged(what, f"{n_other} of {n_seqs * (n_steps + 1)}", is_right=n_other == 0)
        launching.close()
        telling.close()
