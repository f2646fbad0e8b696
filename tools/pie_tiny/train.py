"""The training loop: Muon for the matrices, AdamW for the rest.

The learning rate warms up, stays, and is ended by a linear decay, so that training can
go on from any state of the stable part and a release can be made of any.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path

import torch
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from safetensors.torch import load_file
from torch.nn import functional
from transformers import Qwen3ForCausalLM

from . import workers
from .batches import Batch, Source, load_tokenizer, shard, stream
from .checkpoint import Checkpoint
from .model import TINY, Shape, configuration, fresh_model
from .muon import Muon
from .tokenizer import END_OF_TEXT, TURN_END, token_id

_WARM_UP_STEPS = 100
_AVERAGE_DECAY = 0.98
_LOG_EVERY = 50
_VALIDATE_EVERY = 400
_SAVE_EVERY_S = 180.0
_GRADIENT_NORM = 1.0
_LONGEST_PLAIN = 288
"""Up to this many positions plain products in bfloat16 beat `sdpa`, whose backward pass is slow there, on processors:
with AMX, a batch of 128 positions takes 0.39 s instead of 0.61 s, one of 250 0.46 s, and one of 400 no longer less.
"""


@dataclass(frozen=True)
class Plan:
    """What one run of training does.

    It ends after `steps` or `minutes` of wall clock (0: no bound), whichever comes first.
    `decay`: over the run the learning rate goes linearly to zero. `source` is the checkpoint
    to go on from, `target` the one to write. Where there is no `source`, training begins with
    the weights of the released directory (`warm`), or anew.
    """

    steps: int
    decay: bool
    source: Path
    target: Path
    release: Path
    data: Source
    shape: Shape = TINY
    matrix_rate: float = 0.02
    other_rate: float = 0.004
    n_threads: int = 2
    niceness: int = 15
    compiled: bool = True
    validation_conversations: int = 512
    minutes: float = 0.0
    warm: bool = False
    rate: float = 1.0


def _summed_cross_entropy(hidden: torch.Tensor, output: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """[N, width], [vocabulary, width], [N] -> the sum in nats."""
    return functional.cross_entropy(functional.linear(hidden, output).float(), targets, reduction="sum")


class Trainer:
    """The model in training, its optimizers and where it stands."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        # Processors without instructions for bfloat16 emulate them, several times slower than float32.
        self.halved = self.device == "cuda" or torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
        self.tokenizer = load_tokenizer(plan.release)
        config = configuration(
            end_of_text_id=token_id(self.tokenizer, END_OF_TEXT),
            turn_end_id=token_id(self.tokenizer, TURN_END),
            shape=plan.shape,
        )
        self.model: Qwen3ForCausalLM = fresh_model(config, plan.data.seed)
        self.state = self._load()
        self.model.load_state_dict(self.state.weights, strict=False)
        torch.nn.Module.to(self.model, self.device)
        self.model.train()
        self.average = {k: v.to(self.device) for k, v in self.state.average.items()}
        self.optimizers = self._optimizers()
        self.cross_entropy = _summed_cross_entropy
        if plan.compiled:
            self.cross_entropy = torch.compile(_summed_cross_entropy, dynamic=True)
            # Layer by layer: one graph serves all, and few shapes make it compile again.
            for layer in self.model.model.layers:
                layer.compile(dynamic=True)

    def _load(self) -> Checkpoint:
        if self.plan.source.exists():
            return Checkpoint.load(self.plan.source)
        if self.plan.warm:
            # `lm_head.weight` is the embedding, tied.
            self.model.load_state_dict({n: t.float() for n, t in load_file(self.plan.release / "model.safetensors").items()}, strict=False)
        weights = {name: p.detach().clone() for name, p in self.model.named_parameters()}
        average = {name: p.clone() for name, p in weights.items()}
        return Checkpoint(0, 0, 0.0, (0, 0), self.plan.data.seed, weights, average, [])

    def _optimizers(self) -> list[torch.optim.Optimizer]:
        matrices: list[torch.nn.Parameter] = []
        others: list[torch.nn.Parameter] = []
        for name, parameter in self.model.named_parameters():
            (matrices if name.endswith("proj.weight") else others).append(parameter)
        optimizers: list[torch.optim.Optimizer] = [
            Muon(matrices, lr=self.plan.matrix_rate, weight_decay=0.01, halved=self.halved),
            torch.optim.AdamW(others, lr=self.plan.other_rate, betas=(0.9, 0.95), weight_decay=0.0),
        ]
        for optimizer, saved in zip(optimizers, self.state.optimizers, strict=False):
            optimizer.load_state_dict(saved)
        return optimizers

    def loss(self, batch: Batch) -> torch.Tensor:
        """The sum of the cross entropy of the batch's targets, in nats."""
        tokens = batch.tokens.to(self.device)
        plain = self.device == "cpu" and self.halved and tokens.shape[1] <= _LONGEST_PLAIN
        self.model.set_attn_implementation("eager" if plain else "sdpa")
        with torch.autocast(self.device, torch.bfloat16, enabled=self.halved):
            hidden = self.model.model(input_ids=tokens, use_cache=False).last_hidden_state
            chosen = hidden.flatten(0, 1)[batch.positions.to(self.device)]
            return self.cross_entropy(chosen, self.model.lm_head.weight, batch.targets.to(self.device))

    def gradients(self, batch: Batch) -> float:
        """Leaves the gradients of the mean loss of the whole batch in every worker, and returns that loss."""
        part = batch.rows(workers.rank(), workers.n_workers())
        loss = self.loss(part) / len(batch.targets) if len(part.targets) else torch.zeros(())
        if loss.requires_grad:
            torch.autograd.backward(loss)
        if workers.n_workers() == 1:
            return float(loss.detach())
        parameters = list(self.model.parameters())
        flat = torch.cat([loss.detach().view(1), *(torch.zeros(p.numel()) if p.grad is None else p.grad.view(-1) for p in parameters)])
        workers.add_up(flat)
        for parameter, gradient in zip(parameters, torch.split(flat[1:], [p.numel() for p in parameters]), strict=True):
            parameter.grad = gradient.view_as(parameter)
        return float(flat[0])

    def step(self, batch: Batch, rate: float) -> float:
        """One update at `rate` times the base rates; returns the loss before it."""
        loss = self.gradients(batch)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), _GRADIENT_NORM)
        bases = (self.plan.matrix_rate, self.plan.other_rate)
        for optimizer, base in zip(self.optimizers, bases, strict=True):
            optimizer.param_groups[0]["lr"] = base * rate
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        self.state.step += 1
        self.state.n_tokens += batch.n_tokens
        decay = min(_AVERAGE_DECAY, self.state.step / (self.state.step + 10))
        with torch.no_grad():
            for name, parameter in self.model.named_parameters():
                self.average[name].lerp_(parameter, 1 - decay)
        return loss

    def validate(self, batches: list[Batch]) -> float:
        """The mean loss of the weights in training over held-out batches."""
        with torch.no_grad():
            losses = [float(self.loss(batch)) / len(batch.targets) for batch in batches]
        return sum(losses) / len(losses)

    def save(self) -> None:
        """Writes the target checkpoint."""
        state = self.state
        state.weights = {n: p.detach().cpu() for n, p in self.model.named_parameters()}
        state.average = {n: p.cpu() for n, p in self.average.items()}
        state.optimizers = [o.state_dict() for o in self.optimizers]
        state.save(self.plan.target)


def _rates(plan: Plan, first_step: int, begun: float) -> Iterator[float]:
    """The factor on the learning rates for each step of the run; ends with the run."""
    bound_s = plan.minutes * 60 if plan.minutes > 0 else math.inf
    for step in range(plan.steps):
        progress = max(step / plan.steps, (time.monotonic() - begun) / bound_s)
        if progress >= 1:
            return
        warm = min(1.0, (first_step + step + 1) / _WARM_UP_STEPS)
        yield min(warm, 1 - progress) if plan.decay else warm


def train(plan: Plan) -> None:
    """Runs the plan; the last state is in `plan.target`."""
    os.nice(max(0, plan.niceness - os.nice(0)))
    if torch.cuda.is_available() or plan.n_threads == 1:
        torch.set_num_threads(plan.n_threads)
        _run(plan)
    else:
        workers.run(partial(_run, plan), plan.n_threads)


def _run(plan: Plan) -> None:
    trainer = Trainer(plan)
    first = workers.rank() == 0
    state = trainer.state
    validation = shard(trainer.tokenizer, "validation", plan.data._replace(seed=0, shard_conversations=plan.validation_conversations), 0)
    batches = stream(trainer.tokenizer, plan.data, state.position)
    seconds_before = state.seconds
    begun = saved = time.monotonic()
    smooth = 0.0
    columns = (
        *(TextColumn("step {task.completed}/{task.total}"), BarColumn(), TimeElapsedColumn()),
        *(TimeRemainingColumn(), TextColumn("{task.description}")),
    )
    rates = _rates(plan, state.step, begun)
    with Progress(*columns, refresh_per_second=1, disable=not first) as progress:
        task = progress.add_task("", total=plan.steps)
        # The first worker's clock says when the run ends.
        for done in count(1):
            rate = workers.from_first(next(rates, -1.0))
            if rate < 0:
                break
            state.position, batch = next(batches)
            loss = trainer.step(batch, rate * plan.rate)
            if not first:
                continue
            smooth = loss if done == 1 else 0.98 * smooth + 0.02 * loss
            elapsed = time.monotonic() - begun
            state.seconds = seconds_before + elapsed
            text = f"loss {smooth:.3f}, {state.n_tokens / 1e6:.2f} M tokens"
            progress.update(task, completed=done, description=text)
            if done % _LOG_EVERY == 0:
                progress.log(f"step {state.step}: {text}, rate {rate * plan.rate:.2f}, {elapsed:.0f} s")
                held_out = trainer.validate(validation) if done % _VALIDATE_EVERY == 0 else 0.0
                state.losses.append((state.step, smooth, held_out))
                if held_out:
                    progress.log(f"step {state.step}: validation loss {held_out:.3f}")
            if time.monotonic() - saved > _SAVE_EVERY_S:
                trainer.save()
                saved = time.monotonic()
        if first:
            trainer.save()
