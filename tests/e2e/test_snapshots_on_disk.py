"""Snapshots that outlive the engine: saved in one, opened in the next, by programs of any language."""

from __future__ import annotations

import hashlib
import json
import shutil
import struct
import subprocess
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pytest

from pie import _engine, snapshots
from pie.config import EngineConfig, ModelConfig, SnapshotConfig
from pie.engine import Engine
from pie.errors import PieError
from pie.isolation.driver import IsolatedDriver
from support import isolated
from support.command import environment, pie, squeezed
from support.engines import started
from support.launching import LANGUAGES, ROOT, finish, load_interpreter, python_source, run

Op = dict[str, Any]

PROMPT: list[Op] = [
    {"op": "context", "as": "c"},
    {"op": "system", "ctx": "c", "text": "Be brief. " * 400},
    {"op": "flush", "ctx": "c"},
]
QUESTION: list[Op] = [
    {"op": "user", "ctx": "c", "text": "Hello!"},
    {"op": "generate", "ctx": "c", "as": "g", "sampler": {"kind": "argmax"}, "max_tokens": 8},
    {"op": "collect_tokens", "gen": "g"},
]


MADE_UP = python_source(
    "from inferlet import Context, Model\nasync def main():\n    return Context.open(Model.load('default'), 'kept').snapshot()\n"
)


@contextmanager
def engine(data: Path, model: ModelConfig | None = None, **settings: Any) -> Iterator[Engine]:
    """An engine that keeps its snapshots below a folder of the test."""
    defaults: dict[str, Any] = {"durability": "disk", "free_bytes": 0}
    opened = Engine(EngineConfig(data_dir=data), snapshots=SnapshotConfig(**defaults | settings))
    opened.add_model(options=model or ModelConfig(driver="dummy"))
    with started(opened):
        yield opened


def transcript(engine: Engine, language: str, ops: list[Op], *, seed: int = 7, username: str | None = None) -> list[Any]:
    """What the operations answer in a program of its own."""
    outcome = finish(engine.launch(load_interpreter(language), input={"ops": ops}, seed=seed, username=username))
    assert outcome.code is None, outcome.message
    value: list[Any] = outcome.value
    return value


PAGES_OF_RUN = snapshots.RUN_TOKENS // 16


def counted(engine: Engine, what: str) -> int:
    """What the engine has counted of its only model."""
    (model,) = engine.models
    stats: dict[str, Any] = dict(model.stats())
    value: int = stats[what]
    return value


def saved(name: str) -> Op:
    return {"op": "save", "ctx": "c", "name": name}


def opened(name: str, take: bool = False) -> Op:
    return {"op": "take" if take else "open", "name": name, "as": "c"}


def folder(data: Path) -> Path:
    """Where the snapshots of the only model lie."""
    (of_model,) = (path for path in (data / "snapshots").iterdir() if path.is_dir())
    return of_model


@pytest.mark.rows("RS-041")
@pytest.mark.parametrize(("saver", "opener"), list(zip(LANGUAGES, LANGUAGES[1:] + LANGUAGES[:1], strict=True)))
def test_the_next_engine_goes_on_with_the_tokens_that_there_would_have_been(tmp_path: Path, saver: str, opener: str) -> None:
    with engine(tmp_path / "other") as first:
        expected = transcript(first, opener, [*PROMPT, *QUESTION])[-1]
    with engine(tmp_path) as first:
        transcript(first, saver, [*PROMPT, saved("prompt")])
    with engine(tmp_path) as second:
        assert transcript(second, opener, [{"op": "snapshots"}, opened("prompt"), *QUESTION]) == [["prompt"], True, None, None, expected]
        assert transcript(second, opener, [opened("prompt"), *QUESTION])[-1] == expected


def test_an_engine_with_pages_of_another_size_goes_on_with_the_same_tokens(tmp_path: Path) -> None:
    with engine(tmp_path) as first:
        expected = transcript(first, "python", [*PROMPT, saved("prompt"), *QUESTION])[-1]
    for page_size in (4, 32):
        with engine(tmp_path, ModelConfig(driver="dummy", page_size=page_size)) as second:
            assert transcript(second, "rust", [opened("prompt"), *QUESTION])[-1] == expected


def test_a_model_with_weights_goes_on_with_the_same_tokens(tmp_path: Path) -> None:
    model = ModelConfig()
    with engine(tmp_path, model) as first:
        expected = transcript(first, "python", [*PROMPT, saved("prompt"), *QUESTION])[-1]
    with engine(tmp_path, model) as second:
        assert transcript(second, "rust", [opened("prompt"), *QUESTION])[-1] == expected


def test_another_machine_with_the_same_model_goes_on_with_the_same_tokens(tmp_path: Path) -> None:
    """The folder of snapshots is copied without what binds it to a machine. There the model lies elsewhere, and the CPU
    has other instructions: pages are read all the same, since their bits depend on none.
    """

    def machine(name: str, isa: Literal["auto", "portable"]) -> tuple[Path, ModelConfig]:
        weights = tmp_path / name / f"weights-of-{name}"
        shutil.copytree(ModelConfig().folder, weights)
        return tmp_path / name / "data", ModelConfig(name="shared", path=str(weights), isa=isa)

    data, model = machine("one", "portable")
    with engine(data, model, pages="always") as first:
        expected = transcript(first, "python", [*PROMPT, saved("prompt"), *QUESTION])[-1]
    other, model = machine("other", "auto")
    shutil.copytree(data / "snapshots", other / "snapshots", ignore=shutil.ignore_patterns(".*"))
    with engine(other, model, pages="always") as second:
        ops = [{"op": "snapshots"}, opened("prompt"), *QUESTION]
        names, is_there, *_, tokens = transcript(second, "rust", ops)
        assert (names, is_there, tokens) == (["prompt"], True, expected)
        assert counted(second, "n_pages_imported") == PAGES_OF_RUN
    with engine(tmp_path / "anew", model, pages="always") as third:
        assert transcript(third, "python", [*PROMPT, saved("prompt"), *QUESTION])[-1] == expected
        assert counted(third, "n_pages_exported") == PAGES_OF_RUN
    written = [pages_of_the_only_snapshot(place).read_bytes() for place in (data, tmp_path / "anew")]
    assert written[0] == written[1]


def pages_of_the_only_snapshot(data: Path) -> Path:
    """The file with the pages of its only run."""
    (kept,) = snapshots.kept_in(folder(data))
    (pages,) = snapshots.read_pages(kept)
    assert (pages.damaged, pages.problem) == ((), None)
    return pages.path


@pytest.mark.parametrize("model", [ModelConfig(), ModelConfig(isolate=True), ModelConfig(driver="dummy")])
def test_the_first_pass_of_the_next_engine_reads_pages_in_place_of_computing_them(tmp_path: Path, model: ModelConfig) -> None:
    with engine(tmp_path, model, pages="always") as first:
        expected = transcript(first, "python", [*PROMPT, saved("prompt"), *QUESTION])[-1]
        assert counted(first, "n_pages_exported") == PAGES_OF_RUN
        n_prompt = counted(first, "n_tokens")
    (kept,) = snapshots.kept_in(folder(tmp_path))
    (pages,) = snapshots.read_pages(kept)
    assert (pages.run, pages.page_size, pages.damaged, pages.problem) == (0, 16, (), None)
    with engine(tmp_path, model, pages="always") as second:
        assert transcript(second, "rust", [opened("prompt")]) == [True]
        assert counted(second, "n_pages_imported") == 0
        assert transcript(second, "rust", [opened("prompt"), *QUESTION])[-1] == expected
        assert counted(second, "n_pages_imported") == PAGES_OF_RUN
        assert counted(second, "n_tokens") < n_prompt - 1000


def test_a_driver_that_ends_while_it_takes_pages_costs_time_alone(tmp_path: Path) -> None:
    """The first of the drivers of the second engine ends at its first command, which is to import pages."""
    tokens = []
    for opening in (isolated.dummy, partial(isolated.ends_at_a_command, tmp_path / "flag")):
        settings = SnapshotConfig(durability="disk", free_bytes=0, pages="always")
        opened_engine = Engine(EngineConfig(data_dir=tmp_path), snapshots=settings)
        driver = IsolatedDriver(opening, isolated.VOCAB_SIZE)
        opened_engine.add_model(driver=driver, options=ModelConfig(restarts_per_minute=1000))
        with started(opened_engine):
            ops = [opened("prompt")] if tokens else [*PROMPT, saved("prompt")]
            tokens.append(transcript(opened_engine, "python", [*ops, *QUESTION])[-1])
            counts = [counted(opened_engine, what) for what in ("n_device_losses", "n_pages_exported", "n_pages_imported")]
            assert counts == ([1, 0, 0] if len(tokens) > 1 else [0, PAGES_OF_RUN, 0])
    assert tokens[0] == tokens[1]


@pytest.mark.parametrize("spoil", ["page", "header", "size", "maker"])
def test_pages_that_are_of_no_use_are_computed_with_the_same_tokens(tmp_path: Path, spoil: str) -> None:
    model = ModelConfig(driver="dummy")
    with engine(tmp_path, model, pages="always") as first:
        expected = transcript(first, "python", [*PROMPT, saved("prompt"), *QUESTION])[-1]
    (kept,) = snapshots.kept_in(folder(tmp_path))
    (pages,) = snapshots.read_pages(kept)
    raw, n_imported = bytearray(pages.path.read_bytes()), 0
    if spoil == "page":
        raw[-1 - 3 * pages.page_bytes] ^= 1
        n_imported = PAGES_OF_RUN - 4
    elif spoil == "header":
        raw[60] ^= 1
    elif spoil == "size":
        model = ModelConfig(driver="dummy", page_size=32)
    else:
        # As long as it was, and right.
        made_by = pages.made_by.encode()
        raw = raw.replace(made_by, made_by[:-1] + b"2")
        at = raw.index(made_by[:-1] + b"2") + len(made_by)
        raw[at : at + 4] = struct.pack("<I", zlib.crc32(raw[:at]))
    pages.path.write_bytes(raw)
    (found,) = snapshots.read_pages(kept)
    assert (found.damaged, found.problem is None) == ((n_imported,) if spoil == "page" else (), spoil != "header")
    assert kept.index is not None
    shown = json.loads(pie("snapshots", "show", kept.index["model"], "prompt", "--folder", str(tmp_path / "snapshots")).stdout)
    assert shown["pages"][0]["damaged"] == list(found.damaged)
    with engine(tmp_path, model, pages="always") as second:
        assert transcript(second, "rust", [opened("prompt"), *QUESTION, saved("again")])[-2] == expected
        assert counted(second, "n_pages_imported") == n_imported
        # Whoever saves the same tokens writes them anew.
        n_written = counted(second, "n_pages_exported")
    assert n_written == (PAGES_OF_RUN // 2 if spoil == "size" else PAGES_OF_RUN)
    with engine(tmp_path, model, pages="always") as third:
        assert transcript(third, "python", [opened("prompt"), *QUESTION])[-1] == expected
        assert counted(third, "n_pages_imported") == n_written


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_conversation_of_many_engines_is_that_of_one(tmp_path: Path, language: str) -> None:
    turns = ["Hello!", "And now?", "Good bye."]
    generated: list[Op] = [
        {"op": "generate", "ctx": "c", "as": "g", "sampler": {"kind": "argmax"}, "max_tokens": 6},
        {"op": "collect_tokens", "gen": "g"},
    ]
    spoken: list[list[Op]] = [[{"op": "user", "ctx": "c", "text": text}, *generated] for text in turns]
    with engine(tmp_path / "one") as only:
        whole = transcript(only, language, [*PROMPT, *(op for turn in spoken for op in turn)])
    expected = [answer for answer in whole if isinstance(answer, list)]
    with engine(tmp_path) as first:
        transcript(first, language, [*PROMPT, saved("session")])
    answers = []
    for turn in spoken:
        with engine(tmp_path) as another:
            answers.append(transcript(another, language, [opened("session"), *turn, saved("session")])[-2])
    assert answers == expected


def test_what_is_drawn_repeats_with_the_launch_seed_and_differs_by_opening(tmp_path: Path) -> None:
    warm = {"kind": "multinomial", "temperature": 1.0, "draws": 1}

    def drawn(name: str) -> list[Op]:
        generate = {"op": "generate", "ctx": name, "as": name, "sampler": warm, "max_tokens": 8}
        return [opened("prompt") | {"as": name}, generate, {"op": "collect_tokens", "gen": name}]

    with engine(tmp_path) as first:
        transcript(first, "python", [*PROMPT, saved("prompt")], seed=1)
        values = transcript(first, "python", [*drawn("a"), *drawn("b")], seed=2)
    assert values[2] != values[5]
    with engine(tmp_path) as second:
        assert transcript(second, "rust", [*drawn("a"), *drawn("b")], seed=2) == values
        assert transcript(second, "rust", [*drawn("a"), *drawn("b")], seed=3) != values


def test_what_was_taken_or_deleted_is_gone_in_the_next_engine_too(tmp_path: Path) -> None:
    with engine(tmp_path) as first:
        transcript(first, "python", [*PROMPT, saved("taken"), saved("deleted"), saved("kept")])
        _, names = transcript(first, "python", [opened("taken", take=True), {"op": "snapshots"}])
        assert names == ["deleted", "kept"]
        made_up = run(first, MADE_UP).value
        assert transcript(first, "python", [{"op": "snapshots"}, opened(made_up)]) == [sorted(["deleted", "kept", made_up]), True]
        transcript(first, "rust", [{"op": "delete", "name": "deleted"}])
        assert transcript(first, "rust", [{"op": "delete", "name": "deleted"}]) == [{"error": "snapshot-missing"}]
    with engine(tmp_path) as second:
        ops = [{"op": "snapshots"}, opened("taken"), opened("deleted", take=True), opened("kept", take=True), opened("kept")]
        assert transcript(second, "typescript", ops) == [["kept"], False, False, True, False]
    assert snapshots.kept_in(folder(tmp_path)) == []


def test_of_many_programs_that_take_a_snapshot_one_gets_it(tmp_path: Path) -> None:
    with engine(tmp_path) as opened_engine:
        transcript(opened_engine, "python", [*PROMPT, saved("one")])
        programs = [load_interpreter(language) for language in LANGUAGES] * 4
        processes = [opened_engine.launch(program, input={"ops": [opened("one", take=True)]}) for program in programs]
        assert sorted(finish(process).value for process in processes) == [[False]] * 11 + [[True]]


def test_each_user_has_his_own(tmp_path: Path) -> None:
    with engine(tmp_path) as first:
        transcript(first, "python", [*PROMPT, saved("mine")], username="ann")
    with engine(tmp_path) as second:
        ops = [{"op": "snapshots"}, opened("mine"), opened("mine", take=True), {"op": "delete", "name": "mine"}]
        assert transcript(second, "rust", ops, username="bob") == [[], False, False, {"error": "snapshot-missing"}]
        assert transcript(second, "python", [{"op": "snapshots"}, opened("mine")], username="ann") == [["mine"], True]


def test_tokens_of_an_adapter_are_opened_where_the_user_has_it(tmp_path: Path) -> None:
    trained: list[Op] = [
        {"op": "adapter", "as": "a", "name": "a", "rank": 4},
        {"op": "adapter_change", "adapter": "a", "changes": [[5, 0.5]]},
        {"op": "adapter_save", "adapter": "a", "path": "kept/a"},
    ]
    loaded: list[Op] = [{"op": "adapter", "as": "b", "name": "b"}, {"op": "adapter_load", "adapter": "b", "path": "kept/a"}]
    adapted: list[Op] = [op | {"adapter": "a"} if op["op"] == "generate" else op for op in QUESTION]
    with engine(tmp_path) as first:
        # The one that was trained, not the one that is loaded from its files: they are the same.
        ops = [*trained, *PROMPT, *adapted, saved("adapted"), *QUESTION]
        expected = transcript(first, "python", ops)[-1]
        assert transcript(first, "python", [*PROMPT, *QUESTION, *QUESTION])[-1] != expected
    (kept,) = snapshots.kept_in(folder(tmp_path))
    assert kept.index is not None
    assert list(kept.index["adapters"].values()) == ["a"]
    with engine(tmp_path) as second:
        program = python_source(
            "from inferlet import Context, Model\nasync def main():\n    Context.open(Model.load('default'), 'adapted')\n"
        )
        assert 'computed with the adapter that was called "a" when it was saved' in str(run(second, program).message)
        assert transcript(second, "rust", [opened("adapted", take=True)]) == [{"error": "snapshot-unusable"}]
        assert transcript(second, "rust", [*loaded, opened("adapted"), *QUESTION])[-1] == expected
        # Programs of others do not find it, and their adapters open nothing.
        assert transcript(second, "python", [opened("adapted")], username="bob") == [False]
        ends: list[Op] = [{"op": "adapter_open", "name": "b", "as": "b"}, {"op": "adapter_destroy", "adapter": "b", "name": "b"}]
        values = transcript(second, "typescript", [opened("adapted"), *ends, opened("adapted") | {"as": "d"}, *QUESTION])
        assert values[:4] == [True, True, None, {"error": "snapshot-unusable"}]
        assert values[-1] == expected


def test_a_damaged_snapshot_is_told_and_harms_no_other(tmp_path: Path) -> None:
    with engine(tmp_path) as first:
        # What both have in common lies in the file of the first.
        transcript(first, "python", [*PROMPT, saved("good"), saved("bad")])
    (bad,) = (kept for kept in snapshots.kept_in(folder(tmp_path)) if kept.name == "bad")
    raw = bytearray(bad.path.read_bytes())
    raw[-5] ^= 1
    bad.path.write_bytes(raw)
    with engine(tmp_path) as second:
        program = python_source("from inferlet import Context, Model\nasync def main():\n    Context.open(Model.load('default'), 'bad')\n")
        outcome = run(second, program)
        assert outcome.code == "snapshot-unusable"
        assert "delete the snapshot, and save it again" in (outcome.message or "")
        assert str(tmp_path) not in (outcome.message or "")
        assert transcript(second, "rust", [opened("good"), opened("bad", take=True)]) == [True, {"error": "snapshot-unusable"}]
        assert transcript(second, "rust", [{"op": "delete", "name": "bad"}, opened("bad")])[1] is False


def test_a_snapshot_of_another_model_is_told(tmp_path: Path) -> None:
    with engine(tmp_path) as first:
        transcript(first, "python", [*PROMPT, saved("prompt")])
    # The same name, and weights in place of the dummy driver.
    with engine(tmp_path, ModelConfig()) as second:
        assert transcript(second, "python", [opened("prompt")]) == [{"error": "snapshot-unusable"}]
        assert transcript(second, "python", [*PROMPT, saved("prompt"), opened("prompt")])[-1] is True


def test_quotas_are_told_and_what_was_there_stays(tmp_path: Path) -> None:
    with engine(tmp_path, user_snapshots=2) as opened_engine:
        ops = [*PROMPT, saved("a"), saved("b"), saved("c"), saved("a"), {"op": "snapshots"}]
        answers = transcript(opened_engine, "python", ops)
        assert answers[-3:] == [{"error": "limit-snapshots"}, None, ["a", "b"]]
        assert transcript(opened_engine, "rust", [*PROMPT, saved("c")], username="bob")[-1] is None
    with engine(tmp_path / "small", user_bytes=1000) as opened_engine:
        assert transcript(opened_engine, "python", [*PROMPT, saved("a"), {"op": "snapshots"}])[-2:] == [{"error": "limit-snapshots"}, []]


@pytest.mark.parametrize(("settings", "code"), [({"free_bytes": 1 << 50}, "disk-full"), ({"folder": "/dev/null"}, "disk-error")])
def test_a_disk_without_room_or_that_fails_is_told_and_the_program_goes_on(tmp_path: Path, settings: dict[str, Any], code: str) -> None:
    with engine(tmp_path, **settings) as opened_engine:
        answers = transcript(opened_engine, "python", [*PROMPT, saved("a"), *QUESTION])
        assert answers[-4] == {"error": code}
        assert len(answers[-1]) == 8


def test_a_second_engine_is_told_that_the_folder_is_used(tmp_path: Path) -> None:
    with engine(tmp_path) as first:
        transcript(first, "python", [*PROMPT, saved("a")])
        with engine(tmp_path) as second:
            assert transcript(second, "python", [opened("a")]) == [{"error": "invalid-config"}]
        assert transcript(first, "python", [opened("a")]) == [True]


def test_the_reader_in_python_reads_what_the_engine_wrote(tmp_path: Path) -> None:
    ops = [*PROMPT, *QUESTION, {"op": "append", "ctx": "c", "tokens": [5, 6, 7]}, {"op": "seq_len", "ctx": "c"}, saved("a"), saved("b")]
    with engine(tmp_path) as opened_engine:
        answers = transcript(opened_engine, "python", ops, username="ann")
        generated, n_tokens = answers[len(PROMPT) + 2], answers[-3]
        reused, other = snapshots.kept_in(folder(tmp_path))
        content = snapshots.read_content(reused)
        assert [*content.tokens, *content.pending][-len(generated) :] == generated
        assert len(content.tokens) + len(content.pending) == n_tokens
        assert content.buffer == [5, 6, 7]
        # What the two have in common is kept once.
        assert n_tokens > snapshots.RUN_TOKENS
        assert (reused.shares, other.shares) == ([], [reused.number])
        assert other.n_bytes < reused.n_bytes
        assert snapshots.read_content(other).tokens == content.tokens


def test_the_command_line_lists_shows_exports_and_deletes(tmp_path: Path) -> None:
    where = ("--folder", str(tmp_path / "snapshots"))
    with engine(tmp_path) as opened_engine:
        transcript(opened_engine, "python", [*PROMPT, saved("a"), saved("b")], username="ann")
        transcript(opened_engine, "python", [*PROMPT, saved("a")], username="bob")
        (model,) = (one.name for one in opened_engine.models)
        rows = json.loads(pie("snapshots", "list", *where, "--json").stdout)
        assert [(row["model"], row["user"], row["name"], row["problem"]) for row in rows] == [
            (model, "ann", "a", None),
            (model, "ann", "b", None),
            (model, "bob", "a", None),
        ]
        used = pie("snapshots", "delete", model, "b", *where)
        assert used.returncode == 1
        assert "an engine uses the snapshots" in used.stderr
        assert "pie snapshot delete MODEL NAME --server HOST:PORT" in used.stderr
    shown = json.loads(pie("snapshots", "show", model, "b", *where).stdout)
    assert (shown["owner"], shown["n_tokens"]) == ("ann", rows[1]["tokens"])
    exported = json.loads(pie("snapshots", "export", model, "b", *where).stdout)
    assert len(exported["tokens"]) + len(exported["pending"]) + len(exported["buffer"]) == rows[1]["tokens"]
    several = pie("snapshots", "show", model, "a", *where)
    assert several.returncode == 1
    assert "'ann', 'bob'" in several.stderr
    assert pie("snapshots", "delete", model, "a", "--of", "ann", *where).returncode == 0
    gone = pie("snapshots", "delete", model, "a", "--of", "ann", *where)
    assert "snapshot-missing" in gone.stderr
    with engine(tmp_path) as opened_engine:
        ops = [{"op": "snapshots"}, opened("b"), *QUESTION]
        names, is_there, *_, tokens = transcript(opened_engine, "rust", ops, username="ann")
        assert (names, is_there, len(tokens)) == (["b"], True, 8)


@pytest.mark.parametrize("part", ["state", "turns", "tail", "runs"])
def test_a_list_claims_no_more_than_it_has_read(tmp_path: Path, part: str) -> None:
    where = ("--folder", str(tmp_path / "snapshots"))
    with engine(tmp_path) as opened_engine:
        transcript(opened_engine, "python", [*PROMPT, saved("a")], username="ann")
        transcript(opened_engine, "python", [*PROMPT, saved("b")], username="bob")
    whole = pie("snapshots", "list", "--check", *where)
    assert (whole.returncode, whole.stdout.count("whole")) == (0, 2)
    (kept, _) = snapshots.kept_in(folder(tmp_path))
    offset, length, _ = kept.extents[part]
    raw = bytearray(kept.path.read_bytes())
    raw[offset + length // 2] ^= 1
    kept.path.write_bytes(raw)
    listed = pie("snapshots", "list", *where)
    assert (listed.returncode, listed.stdout.count("header ok"), "whole" in listed.stdout) == (0, 2, False)
    checked = pie("snapshots", "list", "--check", "--json", *where)
    damaged, other = json.loads(checked.stdout)
    assert (checked.returncode, damaged["checked"], other["problem"]) == (1, True, None)
    assert "is damaged" in damaged["problem"]


def test_damaged_pages_are_told_and_leave_a_snapshot_whole(tmp_path: Path) -> None:
    where = ("--folder", str(tmp_path / "snapshots"))
    with engine(tmp_path, pages="always") as opened_engine:
        transcript(opened_engine, "python", [*PROMPT, saved("a"), saved("b")])
    kept, _ = snapshots.kept_in(folder(tmp_path))
    (pages,) = snapshots.read_pages(kept)
    raw = bytearray(pages.path.read_bytes())
    raw[-1] ^= 1
    pages.path.write_bytes(raw)
    checked = pie("snapshots", "list", "--check", *where)
    # Both share the run, and so its pages.
    assert (checked.returncode, checked.stdout.count("whole; damaged pages are computed again")) == (0, 2)


def test_what_is_not_there_is_told_with_what_is_near_it(tmp_path: Path) -> None:
    where = ("--folder", str(tmp_path / "snapshots"))
    with engine(tmp_path) as opened_engine:
        transcript(opened_engine, "python", [*PROMPT, saved("greeting"), saved("other")], username="ann")
        (model,) = (one.name for one in opened_engine.models)

    def refused(*arguments: str) -> str:
        done = pie("snapshots", *arguments, *where)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith("error[snapshot-missing]")
        return done.stderr

    assert "did you mean 'greeting', of 'ann'?" in refused("show", model, "greetings")
    assert "'ann' is a user, who has 'greeting', 'other': give the name of one, and --of ann" in refused("show", model, "ann")
    assert "there is one of 'ann': name the user with --of USER" in refused("delete", model, "greeting", "--of", "bob")
    assert "there are 'greeting', 'other', which `pie snapshots list` shows with their users" in refused("show", model, "zzz")
    assert f"did you mean the model {model!r}?" in refused("show", model + "s", "greeting")
    assert f"there are those of {model!r}; `pie snapshots list` names them" in refused("show", "default", "greeting")
    half = pie("snapshots", "show", "default", *where)
    assert half.returncode == 2
    assert "Give MODEL and NAME, as `pie snapshots list` shows them" in squeezed(half.stderr)
    for command in (["list"], ["show", model, "greeting"]):
        absent = pie("snapshots", *command, "--folder", str(tmp_path / "nope"))
        assert (absent.returncode, absent.stdout) == (1, "")
        assert f"there is no folder {tmp_path / 'nope'}" in absent.stderr


def test_an_export_writes_over_no_file_unasked(tmp_path: Path) -> None:
    where = ("--folder", str(tmp_path / "snapshots"))
    with engine(tmp_path) as opened_engine:
        transcript(opened_engine, "python", [*PROMPT, saved("a")])
        (model,) = (one.name for one in opened_engine.models)
    target = tmp_path / "mine.json"
    target.write_text("mine")
    refused = pie("snapshots", "export", model, "a", str(target), *where)
    assert (refused.returncode, target.read_text()) == (1, "mine")
    assert "is there already; name another file, or write over it with --force" in refused.stderr
    assert pie("snapshots", "export", model, "a", str(target), "--force", *where).returncode == 0
    assert json.loads(target.read_text())["index"]["name"] == "a"


def file_of(*parts: bytes) -> bytes:
    """A file whose header and checksums are right, whatever its parts are."""
    offset, start = snapshots.HEADER_BYTES, struct.pack("<8sII", b"pie-snap", snapshots.VERSION, len(parts))
    for part in parts:
        start += struct.pack("<QQ32s", offset, len(part), hashlib.sha256(part).digest())
        offset += len(part)
    return start + hashlib.sha256(start).digest() + b"".join(parts)


INDEX: dict[str, Any] = {
    "owner": "ann",
    "name": "a",
    "model": "tiny",
    "model_digest": "",
    "tokenizer_digest": "",
    "engine": "0",
    "saved_unix_s": 0,
    "n_tokens": 0,
    "runs": [],
}
DAMAGED = [
    b"[]",
    b"{}",
    b"\xff",
    b"[" * 100_000,
    json.dumps(INDEX | {"owner": 1}).encode(),
    json.dumps(INDEX | {"owner": "\ud800"}).encode(),
    json.dumps(INDEX | {"name": "of another"}).encode(),
    json.dumps(INDEX | {"n_tokens": -1}).encode(),
    json.dumps(INDEX | {"runs": [1]}).encode(),
    json.dumps(INDEX | {"runs": [{"file": 1, "offset": -5, "n_bytes": 1, "key": ""}]}).encode(),
]


@pytest.mark.parametrize("index", DAMAGED, ids=range(len(DAMAGED)))
def test_the_reader_in_python_tells_what_is_wrong_with_any_file(tmp_path: Path, index: bytes) -> None:
    name = f"{1:016x}-{snapshots.name_key('ann', 'a')}"
    (tmp_path / f"{name}.snap").write_bytes(file_of(index, b"{}", b"{}", struct.pack("<4I", 0, 0, 0, 0), b""))
    (kept,) = snapshots.kept_in(tmp_path)
    assert kept.problem is not None
    with pytest.raises(PieError) as refused:
        snapshots.read_content(kept)
    assert refused.value.code == "snapshot-unusable"


def test_what_was_replaced_does_not_come_back_where_the_command_line_deletes(tmp_path: Path) -> None:
    with engine(tmp_path) as first:
        transcript(first, "python", [*PROMPT, saved("a"), *QUESTION, saved("a")], username="ann")
    of_model = folder(tmp_path)
    (kept,) = snapshots.kept_in(of_model)
    # As where an engine was killed before it removed the older one.
    (of_model / f"{0:016x}-{snapshots.name_key('ann', 'a')}.snap").write_bytes(kept.path.read_bytes())
    snapshots.delete(of_model, kept)
    assert snapshots.kept_in(of_model) == []
    with engine(tmp_path) as second:
        assert transcript(second, "rust", [{"op": "snapshots"}], username="ann") == [[]]
    assert list(of_model.glob("*-*")) == []


def test_what_a_crash_left_goes_at_the_start_of_the_next_engine_or_with_its_first_use(tmp_path: Path) -> None:
    def visible() -> set[str]:
        return {path.name for path in folder(tmp_path).iterdir() if path.name not in {".lock", ".binding"}}

    short: list[Op] = [{"op": "context", "as": "c"}, {"op": "append", "ctx": "c", "tokens": [1, 2, 3]}]
    with engine(tmp_path, pages="always") as first:
        transcript(first, "python", [*short, saved("a"), saved("b")], username="ann")
        older = {kept.name: kept.path for kept in snapshots.kept_in(folder(tmp_path))}
        contents = {name: path.read_bytes() for name, path in older.items()}
        ops = [*PROMPT, saved("a"), {"op": "delete", "name": "b"}, *QUESTION]
        expected = transcript(first, "python", ops, username="ann")[-1]
    whole = visible()
    # As where an engine was killed before it removed what was replaced, the last tokens that another one had shared,
    # pages whose file it had removed, and what it was writing.
    replaced, unneeded = older["a"], older["b"].with_suffix(".runs")
    orphaned, unfinished = replaced.with_name(f"{255:016x}-{1:032x}.kv"), replaced.with_name(f".new-{254:016x}")
    left = {replaced: contents["a"], unneeded: contents["b"], orphaned: b"pages", unfinished: b"half"}
    for path, content in left.items():
        assert not path.exists()
        path.write_bytes(content)
    with engine(tmp_path, pages="always") as second:
        assert not visible() & {orphaned.name, unfinished.name}
        names, is_there, *_, tokens = transcript(second, "rust", [{"op": "snapshots"}, opened("a"), *QUESTION], username="ann")
        assert (names, is_there, tokens) == (["a"], True, expected)
        assert visible() == whole


def test_engines_that_are_killed_leave_no_torn_snapshot() -> None:
    """A short run of what `kill_snapshots.py` does for long."""
    command = [sys.executable, str(ROOT / "tests/e2e/kill_snapshots.py"), "--kills", "5"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment())
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 wrong" in done.stdout


def test_a_folder_is_needed_where_snapshots_are_kept_on_disk(tmp_path: Path) -> None:
    with pytest.raises(PieError) as refused:
        _engine.Engine(cache_dir=str(tmp_path), snapshots={"durability": "disk"})
    assert refused.value.code == "invalid-config"
    assert "snapshots.folder" in refused.value.message
