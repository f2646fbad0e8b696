"""`python -m tools.pie_tiny`: makes the embedded model, or one step of it.

python -m tools.pie_tiny tokenizer              train and write the tokenizer
python -m tools.pie_tiny train --steps 3000     train, or go on training
python -m tools.pie_tiny decay --steps 300      a short decay from the last state
python -m tools.pie_tiny export                 write the released weights, score them, write the card
python -m tools.pie_tiny all                    all of these, from nothing or on from where it was ended
python -m tools.pie_tiny data --count 3         print some of the data
python -m tools.pie_tiny score                  the score card of the released weights on the sealed set
python -m tools.pie_tiny score --validation 20  a card on fresh validation questions, 20 of each skill
python -m tools.pie_tiny curve                  draw the loss of a checkpoint as a picture
python -m tools.pie_tiny acceptance             how much of what the released model says the draft model guesses
python -m tools.pie_tiny transcripts            write conversations with the released model into the guide
"""

from __future__ import annotations

import argparse
import math
import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path
from pickle import UnpicklingError

from .acceptance import acceptance
from .batches import Source
from .card import Origin
from .checkpoint import Checkpoint
from .curve import draw_curve
from .evaluation import make_items, sealed_items
from .export import export, write_card
from .mix import conversations
from .model import DRAFT, MAX_POSITIONS, TINY
from .render import full_text
from .score import answer_all, score_card
from .tokenizer import save_tokenizer, train_tokenizer
from .train import Plan, train
from .transcripts import transcripts

_ROOT = Path(__file__).parents[2]
_RELEASE = _ROOT / "python" / "pie" / "pie_tiny"
_WORK = _ROOT / "build" / "pie_tiny"
_TOKENIZER_CONVERSATIONS = 60_000
_NEEDED = {
    **dict.fromkeys(("train", "decay", "export"), "tokenizer.json"),
    **dict.fromkeys(("score", "acceptance"), "model.safetensors"),
}
"""What a command must find in the released directory."""


def _count(text: str) -> int:
    """The value of an option that counts something."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is less than 1")
    return value


def _amount(text: str) -> float:
    """The value of an option that is a time or a factor."""
    value = float(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is not above 0 and finite")
    return value


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.pie_tiny", epilog="The options of all commands stand before the command.")
    parser.add_argument("--release", type=Path, default=_RELEASE, help="the model directory")
    parser.add_argument("--work", type=Path, default=_WORK, help="where checkpoints go")
    parser.add_argument("--seed", type=int, default=1, help="of the data and of the first weights (1)")
    commands = parser.add_subparsers(dest="command", required=True)
    data = commands.add_parser("data", help="print conversations")
    data.add_argument("--count", type=_count, default=5)
    data.add_argument("--split", choices=("train", "validation"), default="train")
    commands.add_parser("tokenizer", help="train the tokenizer")
    for name, steps, what in (
        ("train", 6000, "train at the full rate, or go on"),
        ("decay", 400, "go on from a checkpoint while the rate falls to zero"),
        ("all", 8000, "tokenizer, training, decay and export, from nothing or on from where they were ended"),
    ):
        command = commands.add_parser(name, help=what)
        command.add_argument("--steps", type=_count, default=steps, help=f"a bound on the steps ({steps})")
        command.add_argument("--threads", type=_count, default=2, help="on processors without an accelerator, as many processes")
        command.set_defaults(draft=False, minutes=0.0)
        if name != "all":
            command.add_argument("--minutes", type=_amount, help="a bound on the time")
            command.add_argument("--draft", action="store_true", help="the draft model")
        command.add_argument("--no-compile", action="store_true", help="begin at once, with slower steps")
        command.add_argument("--warm", action="store_true", help="begin with the released weights")
        command.add_argument("--rate", type=_amount, default=1.0, help="a factor on the learning rates")
    exporting = commands.add_parser("export", help="write the released weights")
    exporting.add_argument("--checkpoint", type=Path, help="default: decayed, else trunk")
    for name, value in Origin()._asdict().items():
        exporting.add_argument(f"--made-{name}", default=value, help="for the model card")
    scoring = commands.add_parser("score", help="score a model directory")
    scoring.add_argument(
        "--validation", type=_count, default=0, metavar="N", help="N validation questions of each skill instead of the sealed set"
    )
    scoring.add_argument("--mistakes", action="store_true", help="print wrong answers to validation questions")
    drawing = commands.add_parser("curve", help="draw the loss of a checkpoint")
    drawing.add_argument("--checkpoint", type=Path, help="default: decayed, else trunk")
    drawing.add_argument("--picture", type=Path, default=_ROOT / "docs" / "pie-tiny-loss.svg")
    guessing = commands.add_parser("acceptance", help="measure the draft model on the prompts of the sealed set")
    guessing.add_argument("--checkpoint", type=Path, help="default: draft-decayed")
    talking = commands.add_parser("transcripts", help="write conversations with the released model")
    talking.add_argument("--page", type=Path, default=_ROOT / "docs" / "guide" / "pie-tiny.md")
    return parser


def _print_data(arguments: argparse.Namespace) -> None:
    stream = conversations(arguments.seed, arguments.split)
    for conversation in islice(stream, arguments.count):
        sys.stdout.write(full_text(conversation) + "\n")


def _make_tokenizer(arguments: argparse.Namespace) -> None:
    tokenizer = train_tokenizer(_TOKENIZER_CONVERSATIONS, arguments.seed)
    save_tokenizer(tokenizer, arguments.release, MAX_POSITIONS)


def _checkpoints(work: Path, *, draft: bool = False) -> tuple[Path, Path]:
    """The states of the stable part and of the decay."""
    start = "draft-" if draft else ""
    return work / f"{start}trunk.pt", work / f"{start}decayed.pt"


def _last_checkpoint(work: Path) -> Path:
    """The state of the decay, where there is one, else that of the stable part."""
    trunk, decayed = _checkpoints(work)
    return decayed if decayed.exists() else trunk


def _loaded(path: Path, option: str = "") -> Checkpoint:
    if not path.is_file():
        how = f"(`train{option}`, then `decay{option}`)"
        raise SystemExit(f"there is no checkpoint {path}: train first {how}, or name another with --checkpoint")
    try:
        return Checkpoint.load(path)
    except (EOFError, KeyError, RuntimeError, TypeError, UnpicklingError) as error:
        raise SystemExit(f"{path} is not a checkpoint of this program: name another") from error


def _plan(arguments: argparse.Namespace, *, decay: bool) -> Plan:
    trunk, decayed = _checkpoints(arguments.work, draft=arguments.draft)
    if arguments.draft and arguments.warm:
        raise SystemExit("--warm begins with the released weights, and the draft model has another shape: leave one of the two out")
    return Plan(
        steps=arguments.steps,
        decay=decay,
        source=trunk,
        target=decayed if decay else trunk,
        release=arguments.release,
        data=Source(seed=arguments.seed),
        n_threads=arguments.threads,
        compiled=not arguments.no_compile,
        minutes=arguments.minutes,
        warm=arguments.warm,
        rate=arguments.rate,
        shape=DRAFT if arguments.draft else TINY,
    )


def _make_all(arguments: argparse.Namespace) -> None:
    """An eighth of the steps at the full rate and a decay over the rest.

    Both begin where a run with the same options was ended.
    """
    trunk, decayed = _checkpoints(arguments.work)
    stable = arguments.steps // 8
    found = {path: _loaded(path) for path in (trunk, decayed) if path.exists()}
    done = max((checkpoint.step for checkpoint in found.values()), default=0)
    right = trunk in found and found[trunk].step == min(done, stable) and done <= arguments.steps
    if found and not (right and all(checkpoint.seed == arguments.seed for checkpoint in found.values())):
        raise SystemExit(
            f"{arguments.work} holds the training of a run with other options: repeat those, or name an empty folder with --work"
        )
    if not found:
        _make_tokenizer(arguments)
    _need(arguments.release, "tokenizer.json")
    if done < stable:
        train(replace(_plan(arguments, decay=False), steps=stable - done))
        done = stable
    if done < arguments.steps:
        left = arguments.steps - done
        # Every run begins its decay at `rate`: at this one it goes on along the line on which it was ended.
        rate = arguments.rate * left / (arguments.steps - stable)
        train(replace(_plan(arguments, decay=True), steps=left, source=_last_checkpoint(arguments.work), rate=rate))
    _export(arguments, None, Origin())


def _need(release: Path, name: str) -> None:
    if not (release / name).is_file():
        raise SystemExit(f"{release} has no {name}: name the folder of a released model with --release")


def _need_folder(file: Path) -> None:
    if not file.parent.is_dir():
        raise SystemExit(f"there is no folder {file.parent} to write {file.name} into")


def _export(arguments: argparse.Namespace, source: Path | None, origin: Origin) -> None:
    path = source or _last_checkpoint(arguments.work)
    checkpoint = _loaded(path)
    digest = export(checkpoint, arguments.release)
    sys.stdout.write(f"{path.name}: step {checkpoint.step}, {checkpoint.n_tokens} tokens, {checkpoint.seconds:.0f} s, sha256 {digest}\n")
    write_card(checkpoint, arguments.release, score_card(answer_all(arguments.release, sealed_items())), origin)


def _score(arguments: argparse.Namespace) -> None:
    if arguments.mistakes and not arguments.validation:
        raise SystemExit("--mistakes prints validation questions, never those of the sealed set: add --validation N")
    items = list(make_items(str(arguments.seed), "validation", arguments.validation)) if arguments.validation else sealed_items()
    answered = answer_all(arguments.release, items)
    card = score_card(answered)
    sys.stdout.write("\n".join([*card.lines(), f"\n{card.n_items} questions"]) + "\n")
    if arguments.mistakes:
        for one in answered:
            if not one.right:
                asked = one.item.messages[-1]["content"][-200:]
                sys.stdout.write(f"{one.item.skill}: {asked!r}\n  expected {one.item.expected!r}\n  got      {one.answer!r}\n")


def _curve(arguments: argparse.Namespace) -> None:
    path = arguments.checkpoint or _last_checkpoint(arguments.work)
    losses = _loaded(path).losses
    _need_folder(arguments.picture)
    try:
        draw_curve(losses, arguments.picture)
    except ValueError as error:
        raise SystemExit(f"{path}: {error}") from error


def _acceptance(arguments: argparse.Namespace) -> None:
    checkpoint = _loaded(arguments.checkpoint or _checkpoints(arguments.work, draft=True)[1], " --draft")
    found = acceptance(checkpoint, arguments.release, sealed_items())
    sys.stdout.write(
        f"step {checkpoint.step}, {checkpoint.n_tokens} tokens, {checkpoint.seconds:.0f} s: {100 * found.single:.1f} % of single tokens "
        f"and {100 * found.of_four:.1f} % of drafts of four accepted, {found.n_tokens} tokens\n"
    )


def main() -> None:
    """Runs the command that the arguments name."""
    arguments = _parser().parse_args()
    needed = "model.safetensors" if getattr(arguments, "warm", False) else _NEEDED.get(arguments.command)
    if needed is not None:
        _need(arguments.release, needed)
    match arguments.command:
        case "data":
            _print_data(arguments)
        case "tokenizer":
            _make_tokenizer(arguments)
        case "train":
            train(_plan(arguments, decay=False))
        case "decay":
            plan = _plan(arguments, decay=True)
            if not (plan.warm or plan.source.exists()):
                raise SystemExit(
                    f"there is no checkpoint {plan.source} to go on from: train first, or begin with the released weights (--warm)"
                )
            train(plan)
        case "export":
            _export(arguments, arguments.checkpoint, Origin(arguments.made_machine, arguments.made_before, arguments.made_command))
        case "score":
            _score(arguments)
        case "curve":
            _curve(arguments)
        case "acceptance":
            _acceptance(arguments)
        case "transcripts":
            _need_folder(arguments.page)
            arguments.page.write_text(transcripts(), encoding="utf-8")
        case _:
            _make_all(arguments)


if __name__ == "__main__":
    main()
