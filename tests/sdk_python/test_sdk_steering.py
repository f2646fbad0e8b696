"""Constraints, speculators and probes of generators: when each is asked, and what crosses, on a faked engine."""

import contextlib
import dataclasses
import enum
import types as python_types
from itertools import count, repeat
from typing import Literal

import pytest
from componentize_py_types import Err
from wit_world.imports import chat, generation, sampling, types
from wit_world.imports import tools as raw_tools

from inferlet import (
    ArgumentTypeError,
    Constraint,
    Context,
    Entropy,
    GenerateOptions,
    Generator,
    GrammarConstraint,
    InvalidArgumentError,
    JsonCutError,
    Sampler,
    Schema,
    Speculator,
    spec,
)
from inferlet import _steering as steering
from inferlet._wait import EventLoop
from inferlet.adapter import Adapter
from inferlet.errors import InferletError
from inferlet.tools import schema_texts
from sdk_python.fakes import Clock


class FakedGenerator:
    """A generator of three steps, that logs every call."""

    def __init__(self, clock, log):
        self.clock, self.log, self.index, self.answers = clock, log, 0, iter(range(10, 20))
        self.fails_with, self.n_accepted, self.is_open = None, 0, False
        # The slots of the open step: the sampler, the probes of every step, its own.
        self.n_samplers, self.n_every, self.n_own = 1, 0, 0

    def __getattr__(self, name):
        def call(*arguments):
            self.log.append((name, *arguments))

        return call

    def next_step(self):
        return self.index if self.index < 3 else None

    def probe_each_step(self, *arguments):
        self.log.append(("probe_each_step", *arguments))
        self.n_every += 1
        return self.n_every

    def probe(self, *arguments):
        self.log.append(("probe", *arguments))
        self.n_own += 1
        return self.n_samplers + self.n_every + self.n_own - 1

    def clear_sampler(self):
        self.log.append(("clear_sampler",))
        self.n_samplers = 0

    def finish_reason(self):
        return generation.FinishReason.LENGTH if self.index == 3 else None

    def step(self):
        self.log.append(("step",))
        generator = self

        class Future:
            def __init__(self, ready):
                self.ready = ready

            def pollable(self):
                return self.ready.pollable()

            def get(self):
                generator.index += 1
                generator.n_samplers, generator.n_own = 1, 0
                return self.ready.get()

            def __exit__(self, *_):
                generator.log.append(("drop",))

        answer = generation.Output([next(self.answers)], None, self.slots(), sampling.Speculation(0, self.n_accepted))
        return Future(self.clock.future("step", value=answer))

    def slots(self):
        return []

    def accept(self, tokens):
        self.log.append(("accept", tokens))
        return tokens[:2]


class Asked:
    """A constraint that logs when it is asked and answers with masks in turn."""

    def __init__(self, log, *masks):
        self.log, self.masks = log, list(masks)

    def step(self, accepted):
        self.log.append(("asked", accepted))
        mask = self.masks.pop(0)
        if isinstance(mask, Exception):
            raise mask
        return mask


class Drafts:
    def __init__(self, log, *drafts):
        self.log, self.drafts = log, list(drafts)

    def draft(self):
        return self.drafts.pop(0)

    def accept(self, tokens):
        self.log.append(("accepted", tokens))

    def rollback(self, n):
        self.log.append(("rollback", n))

    def reset(self):
        self.log.append(("reset",))


@pytest.fixture
def engine(monkeypatch):
    """Makes generators, whose calls are in `log`."""
    log = []
    raw = FakedGenerator(Clock(monkeypatch), log)
    monkeypatch.setattr(generation.Generator, "create", classmethod(lambda cls, *given: log.append(("create", *given[1:])) or raw))
    monkeypatch.setattr(chat.Decoder, "create_for", classmethod(lambda cls, *given: object()))
    monkeypatch.setattr(steering._masks, "intersection", lambda masks, length: log.append(("and", masks, length)) or [9, 9])
    tokenizer = python_types.SimpleNamespace(vocab_size=lambda: 100)
    model = python_types.SimpleNamespace(tokenizer=lambda: tokenizer)
    owner = python_types.SimpleNamespace(model=model, _collecting=contextlib.nullcontext)
    return python_types.SimpleNamespace(
        log=log, raw=raw, model=model, generate=lambda **options: Generator._create(owner, None, Sampler.argmax(), options)
    )


def run(coroutine):
    loop = EventLoop()
    try:
        return loop.run_until_complete(coroutine)
    finally:
        loop.close()


async def steps(generator, n):
    return [await (await anext(generator)).execute() for _ in range(n)]


@pytest.mark.rows("PY-048 PY-060 PY-117")
def test_constraints_are_asked_once_a_step_while_it_runs(engine):
    log = engine.log
    g = engine.generate(constrain=Asked(log, [1, 2], None, [3]))
    assert isinstance(g._steering._constraints[0], Constraint)
    assert run(g.collect_tokens()) == [10, 11, 12]
    assert log[1:] == [
        ("ask_masks", True),
        *[("step",), ("asked", []), ("give_mask", [1, 2]), ("drop",)],
        *[("step",), ("asked", [10]), ("give_mask", []), ("drop",)],
        *[("step",), ("asked", [11]), ("give_mask", [3]), ("drop",)],
    ]


@pytest.mark.rows("PY-049")
def test_masks_of_several_are_composed_in_the_engine_which_has_that_of_the_options(engine):
    log = engine.log
    g = engine.generate(constrain=[Asked(log, [1])], logit_mask=[5, 5]).constrain(Asked(log, None))
    run(steps(g, 1))
    assert ("and", [[1], []], 100) in log
    assert ("give_mask", [9, 9]) in log
    assert log[0][2].logit_mask == [5, 5]


@pytest.mark.rows("PY-048 PY-067..068 PY-074 PY-117")
@pytest.mark.parametrize("collect", ["execute", "collect_tokens", "collect_text", "text", "tokens", "__next__"])
def test_what_a_constraint_throws_comes_out_and_the_step_is_given_up(engine, collect):
    log = engine.log
    g = engine.generate(constrain=[Asked(log, [1]), Asked(log, KeyError("mine"), [2])])
    with pytest.raises(KeyError, match="mine"):
        run(steps(g, 1)) if collect == "execute" else run_or_call(getattr(g, collect))
    assert log[-3:] == [("asked", []), ("asked", []), ("drop",)]
    assert not any(call[0] == "give_mask" for call in log)
    # Again: who answered is not asked anew.
    del log[:]
    run(steps(g, 1))
    assert log == [("step",), ("asked", []), ("and", [[1], [2]], 100), ("give_mask", [9, 9]), ("drop",)]


def run_or_call(function):
    value = function()
    return run(value) if hasattr(value, "send") else value


class FakedContext:
    """A context that logs what is filled into it."""

    def __init__(self, fill):
        self.append = self.append_text = fill

    def seq_len(self):
        return 5


FILLING = {
    "append": lambda ctx: ctx.append([5]),
    "append_text": lambda ctx: ctx.append_text("no"),
    "user": lambda ctx: ctx.user("Say no."),
    "cue": lambda ctx: ctx.cue(),
    "seal": lambda ctx: ctx.seal(),
    "equip": lambda ctx: ctx.equip([]),
    "answer": lambda ctx: ctx.answer("clock", 5),
}


@pytest.mark.rows("PY-067..068 PY-117")
@pytest.mark.parametrize("collect", ["collect_tokens", "collect_text", "tokens", "text"])
@pytest.mark.parametrize("name", FILLING)
def test_a_context_is_not_filled_while_a_collector_runs_that_asks_the_program(engine, monkeypatch, name, collect):
    n_filled = 0

    def fill(*_):
        nonlocal n_filled
        n_filled += 1

    for module, function in ((chat, "fill"), (chat, "cue"), (chat, "seal"), (raw_tools, "equip"), (raw_tools, "answer")):
        monkeypatch.setattr(module, function, fill)
    ctx = Context.__new__(Context)
    ctx._bind(FakedContext(fill), engine.model, None)

    class Filling:
        def step(self, accepted):
            FILLING[name](ctx)

    g = Generator._create(ctx, ctx._raw, Sampler.argmax(), {"constrain": Filling()})
    with pytest.raises(InferletError, match="while a collector runs that asks the program; go step by step") as caught:
        run_or_call(getattr(g, collect))
    assert (caught.value.code, n_filled, engine.log[-1]) == ("context-busy", 0, ("drop",))
    # What is filled in while a step of the program's own runs is for the next one.
    run(steps(g, 1))
    assert n_filled == 1


@pytest.mark.rows("PY-067")
def test_a_context_that_was_released_says_so_while_a_collector_runs(engine):
    raw = FakedContext(None)
    ctx = Context.__new__(Context)
    ctx._bind(raw, engine.model, None)

    class Filling:
        def step(self, accepted):
            def seq_len():
                raise Err(types.Error("context-released", "the context was released", ""))

            raw.seq_len = seq_len
            ctx.append([5])

    with pytest.raises(InferletError) as caught:
        run(Generator._create(ctx, raw, Sampler.argmax(), {"constrain": Filling()}).collect_tokens())
    assert caught.value.code == "context-released"


@pytest.mark.rows("PY-048")
@pytest.mark.parametrize(
    ("constrain", "message"),
    [
        (5, "constrain is 5 of type int; it must be a constraint, a schema ("),
        ([object()], "constrain[0] is <object object"),
        (python_types.SimpleNamespace(build_constraint=lambda model: 5), "constrain.build_constraint() is 5 of type int"),
    ],
)
def test_what_is_no_constraint_is_refused(engine, constrain, message):
    with pytest.raises(ArgumentTypeError) as caught:
        engine.generate(constrain=constrain)
    assert (caught.value.code, caught.value.message[: len(message)]) == ("invalid-argument", message)
    assert engine.log == []


@pytest.mark.rows("PY-117")
@pytest.mark.parametrize("mask", ["ab", 5, [1.5], [-1], [2**32], [None], b"ab"])
def test_a_mask_that_is_no_list_of_ints_is_refused(engine, mask):
    g = engine.generate(constrain=Asked(engine.log, mask))
    with pytest.raises((ArgumentTypeError, InvalidArgumentError)) as caught:
        run(g.collect_tokens())
    assert caught.value.code == "invalid-argument"
    assert engine.log[-1] == ("drop",)


@pytest.mark.rows("PY-116")
def test_a_schema_makes_a_constraint_for_the_model(engine):
    class MySchema:
        def build_constraint(self, model):
            assert model.tokenizer().vocab_size() == 100
            return Asked(engine.log, [4])

    assert isinstance(MySchema(), Schema)
    run(steps(engine.generate(constrain=MySchema()), 1))
    assert ("give_mask", [4]) in engine.log


@pytest.mark.rows("PY-050 PY-133..138")
def test_a_speculator_is_asked_once_a_step_and_told_what_came_of_it(engine):
    log = engine.log
    speculator = Drafts(log, ([1, 2, 3], [5, 6, 7]), ([], []), ([4], [9]))
    assert isinstance(speculator, Speculator)
    assert spec.Speculator is Speculator
    engine.raw.n_accepted = 1
    g = engine.generate(speculator=speculator)
    assert run(g.collect_tokens()) == [10, 11, 12]
    assert log[1:] == [
        ("reset",),
        *[("draft", [1, 2, 3], [5, 6, 7]), ("step",), ("drop",), ("rollback", 2), ("accepted", [10])],
        *[("step",), ("drop",), ("accepted", [11])],
        *[("draft", [4], [9]), ("step",), ("drop",), ("accepted", [12])],
    ]
    # Where nothing was proposed nothing is taken back.
    engine.raw.n_accepted, engine.raw.index = 0, 0
    del log[:]
    run(steps(engine.generate(speculator=Drafts(log, ([], []))), 1))
    assert log[1:] == [("reset",), ("step",), ("drop",), ("accepted", [13])]


@pytest.mark.rows("PY-050 PY-133..135")
def test_a_speculator_needs_two_methods(engine):
    class Least:
        def draft(self):
            return (), ()

        def accept(self, tokens):
            engine.log.append(("accepted", tokens))

    class Derived(Speculator):
        def draft(self):
            return (), ()

        def accept(self, tokens):
            pass

    run(steps(engine.generate(speculator=Least()), 1))
    assert engine.log[-1] == ("accepted", [10])
    run(steps(engine.generate(speculator=Derived()), 1))
    with pytest.raises(ArgumentTypeError, match="it must be a speculator, with the method draft"):
        engine.generate(speculator=object())


@pytest.mark.rows("PY-134")
@pytest.mark.parametrize("draft", [None, 5, ([1],), ([1], [2], [3]), (5, [1]), ([1], ["a"])])
def test_drafts_of_another_form_are_refused(engine, draft):
    with pytest.raises(ArgumentTypeError) as caught:
        run(steps(engine.generate(speculator=Drafts(engine.log, draft)), 1))
    assert caught.value.message.startswith("draft()")
    # The step is given up as one that was run and cancelled, so that it comes again.
    assert engine.log[-2:] == [("step",), ("drop",)]


@pytest.mark.rows("PY-051 PY-056 PY-139")
def test_who_speculates_is_one(engine):
    engine.generate(system_speculation=True)
    engine.generate(system_speculation="small")
    engine.generate()
    assert [call[2].drafting for call in engine.log] == [
        generation.Drafting_NGram(),
        generation.Drafting_Model("small"),
        generation.Drafting_None_(),
    ]
    with pytest.raises(ValueError, match="give one of them") as caught:
        engine.generate(system_speculation=True, speculator=Drafts([]))
    assert caught.value.code == "invalid-argument"


@pytest.mark.rows("PY-051 PY-139")
@pytest.mark.parametrize("wanted", [1, 0, [], "", b"small"])
def test_system_speculation_is_true_false_or_a_name(engine, wanted):
    if wanted == "":
        # No model has that name, which the engine says.
        engine.generate(system_speculation=wanted)
        assert engine.log[-1][2].drafting == generation.Drafting_Model("")
        return
    with pytest.raises(ArgumentTypeError, match="it must be True, False, or the name of a model"):
        engine.generate(system_speculation=wanted)


@pytest.mark.rows("PY-070 PY-072..074")
def test_a_step_behind_which_another_one_was_opened_is_over(engine):
    async def main():
        g = engine.generate()
        old = await anext(g)
        await old.execute()
        # Until then the engine says that it is not open.
        old.probe(0, Entropy())
        newest = await anext(g)
        for use in (lambda: old.probe(0, Entropy()), old.clear_sampler):
            with pytest.raises(InferletError, match="step 0 of this generator is over, since step 1 was opened") as caught:
                use()
            assert caught.value.code == "step-pending"
        with pytest.raises(InferletError) as caught:
            await old.execute()
        assert caught.value.code == "step-pending"
        await newest.execute()

    run(main())


@pytest.mark.rows("PY-075 PY-135 PY-137")
def test_what_is_accepted_besides_is_told_alone(engine):
    async def main():
        g = engine.generate(speculator=Drafts(engine.log, ([], [])))
        async for step in g:
            await step.execute()
            break
        told = len(engine.log)
        for tokens in ([10], [10, 4], [5]):
            g.accept(tokens)
        return [call for call in engine.log[told:] if call[0] != "accept"]

    assert run(main()) == [("accepted", [4]), ("reset",), ("accepted", [5])]


@pytest.mark.rows("PY-052..054 PY-061..063 PY-147")
def test_options_that_have_methods_are_set_by_them(engine):
    adapter = Adapter("raw adapter")
    g = engine.generate(adapter=adapter, zo_seed=-3, horizon=9)
    assert engine.log[1:] == [("set_adapter", "raw adapter"), ("set_zo_seed", -3), ("set_horizon", 9)]
    assert g.adapter(adapter).zo_seed(4).horizon(2) is g
    assert engine.log[4:] == [("set_adapter", "raw adapter"), ("set_zo_seed", 4), ("set_horizon", 2)]
    for options in ({"adapter": "a"}, {"zo_seed": 1.5}, {"horizon": -1}, {"logit_mask": 5}, {"zo_seed": 2**63}):
        with pytest.raises(InferletError) as caught:
            engine.generate(**options)
        assert caught.value.code == "invalid-argument"


@pytest.mark.rows("PY-049 PY-051 PY-056")
def test_masks_and_who_proposes_are_put_in_place_of_the_options(engine):
    g = engine.generate()
    assert g.logit_mask([3, 1]).system_speculation() is g
    g.system_speculation("small").system_speculation(False)
    assert engine.log[1:] == [
        ("set_logit_mask", [3, 1]),
        ("set_drafting", generation.Drafting_NGram()),
        ("set_drafting", generation.Drafting_Model("small")),
        ("set_drafting", generation.Drafting_None_()),
    ]
    proposed = engine.generate(speculator=Drafts(engine.log))
    n_calls = len(engine.log)
    for refused in (proposed.system_speculation, lambda: g.system_speculation(3), lambda: g.logit_mask("any")):
        with pytest.raises(InferletError) as caught:
            refused()
        assert caught.value.code == "invalid-argument"
    assert len(engine.log) == n_calls


@pytest.mark.rows("PY-049 PY-117 PY-134")
def test_what_has_no_end_is_not_read_to_its_end(engine):
    async def stepped(**options):
        async for step in engine.generate(**options):
            await step.execute()

    class Endless:
        def step(self, accepted):
            return repeat(0)

    for work, words in (
        (lambda: engine.generate(logit_mask=repeat(0)), "logit_mask has more than 1048577 numbers"),
        (lambda: run(stepped(constrain=Endless())), "step() has more than 1048577 numbers"),
        (lambda: run(stepped(speculator=Drafts(engine.log, (repeat(1), count(20))))), "draft()[0] has more than 4096 numbers"),
        (lambda: run(stepped(speculator=Drafts(engine.log, ([1], count(20))))), "draft()[1] has more than 4096 numbers"),
    ):
        with pytest.raises(InferletError) as caught:
            work()
        assert (caught.value.code, words in caught.value.message) == ("invalid-argument", True)


class RawAdapter:
    """Counts how often it is let go of."""

    n_exits = 0

    def __exit__(self, *_):
        self.n_exits += 1


@pytest.mark.rows("PY-052 PY-146")
def test_an_adapter_that_was_let_go_of_is_refused_and_is_let_go_of_once(engine):
    raw = RawAdapter()
    with Adapter(raw) as adapter:
        g = engine.generate(adapter=adapter)
    assert engine.log[1:] == [("set_adapter", raw)]
    n_calls = len(engine.log)
    for use in (lambda: engine.generate(adapter=adapter), lambda: g.adapter(adapter)):
        with pytest.raises(InferletError) as caught:
            use()
        assert (caught.value.code, "open it again" in caught.value.message) == ("invalid-argument", True)
    with adapter:
        pass
    assert (len(engine.log), raw.n_exits) == (n_calls, 1)


def test_a_horizon_out_of_range_is_told_what_it_is(engine):
    with pytest.raises(InvalidArgumentError, match=r"^horizon is -1; it is how many tokens the text is thought to become, from 1 to"):
        engine.generate(horizon=-1)


@pytest.mark.parametrize("options", [{"adapter": "a"}, {"zo_seed": 1.5}, {"horizon": -1}, {"speculator": object()}])
def test_an_option_that_is_refused_makes_no_generator(engine, options):
    with pytest.raises(InferletError):
        engine.generate(**options)
    assert engine.log == []


def test_a_step_begins_where_it_is_executed(engine):
    g = engine.generate()

    async def main():
        step = await anext(g)
        n_before = len(engine.log)
        running = step.execute()
        assert len(engine.log) > n_before
        await running

    run(main())


@pytest.mark.rows("PY-064 PY-072..074 PY-095")
def test_handles_of_steps_are_those_of_their_slots(engine):
    each, own, other = 0.5, 1.5, 2.5
    slots = {0: [sampling.Slot_Tokens([7]), *map(sampling.Slot_Entropy, (each, own))], 1: [*map(sampling.Slot_Entropy, (each, other))]}
    engine.raw.slots = lambda: slots.get(engine.raw.index, [])
    g = engine.generate()
    every = g.probe_each_step(0, Entropy())

    async def main():
        first = await anext(g)
        assert await anext(g) is first
        handle = first.probe(0, Entropy())
        out = await first.execute()
        assert (out.entropy(every), out.entropy(handle), out.token(out.auto_sampler)) == (each, own, 7)
        second = await anext(g)
        assert second.clear_sampler() is second
        later = second.probe(0, Entropy())
        again = await second.execute()
        assert (again.entropy(every), again.entropy(later), again.auto_sampler) == (each, other, None)
        assert (again.entropy(handle), out.entropy(later), again.token(out.auto_sampler)) == (None, None, None)
        third = await (await anext(g)).execute()
        assert (third.token(third.auto_sampler), third.tokens_at(third.auto_sampler), third.entropy(every)) == (12, [12], None)

    run(main())
    assert [call for call in engine.log if call[0] in ("probe_each_step", "probe", "clear_sampler")] == [
        ("probe_each_step", 0, sampling.Probe_Entropy()),
        ("probe", 0, sampling.Probe_Entropy()),
        ("clear_sampler",),
        ("probe", 0, sampling.Probe_Entropy()),
    ]


@pytest.mark.rows("PY-064 PY-073 PY-093")
def test_handles_stay_with_their_slots_where_a_probe_of_every_step_comes_later(engine):
    engine.raw.slots = lambda: [sampling.Slot_Tokens([7]), *map(sampling.Slot_Entropy, (0.5, 0.25, 1.5))]
    g = engine.generate()
    first = g.probe_each_step(0, Entropy())

    async def main():
        step = await anext(g)
        own = step.probe(0, Entropy())
        second = g.probe_each_step(0, Entropy())
        out = await step.execute()
        return [*map(out.entropy, (first, second, own)), out.token(out.auto_sampler)]

    assert run(main()) == [0.5, 0.25, 1.5, 7]


@dataclasses.dataclass
class Point:
    x: int


class Color(enum.Enum):
    RED = "red"


class Validated:
    @staticmethod
    def model_json_schema():
        return {"const": 1}

    @staticmethod
    def model_validate_json(text):
        return ["validated", text]


@pytest.mark.rows("PY-069")
@pytest.mark.parametrize(
    "case",
    [
        ({}, "[1]", None, [1]),
        ({"schema": '{"const": 1}'}, "1", '{"const": 1}', 1),
        ({"schema": {"const": 1}}, "1", {"const": 1}, 1),
        ({"schema": list[float]}, "[1]", {"type": "array", "items": {"type": "number"}}, [1.0]),
        ({"schema": Validated}, "1", {"const": 1}, ["validated", "1"]),
        ({"schema": dict[str, Point]}, '{"a":{"x":1}}', None, {"a": Point(1)}),
        ({"parse": str.upper}, '"a"', None, '"A"'),
        ({"schema": list[float], "parse": len}, "[1]", None, 3),
    ],
)
@pytest.mark.parametrize("finish", ["STOP", "CONSTRAINT", "LENGTH"])
def test_a_document_becomes_a_value(engine, monkeypatch, case, finish):
    options, text, schema, value = case

    async def collect_text(self):
        return text

    log = engine.log
    monkeypatch.setattr(Generator, "_collect_text", collect_text)
    monkeypatch.setattr(GrammarConstraint, "from_json_schema", classmethod(lambda cls, given, model: log.append(given) or Asked(log)))
    monkeypatch.setattr(GrammarConstraint, "json", classmethod(lambda cls, model: log.append(None) or Asked(log)))
    engine.raw.finish_reason = lambda: generation.FinishReason[finish]
    engine.raw.tokens_generated = lambda: 9
    g = engine.generate()
    if finish == "LENGTH":
        with pytest.raises(JsonCutError, match="after 9 tokens") as caught:
            run(g.collect_json(**options))
        assert (caught.value.code, caught.value.text) == ("json-cut", text)
        return
    found = run(g.collect_json(**options))
    assert (found, type(found)) == (value, type(value))
    if schema is not None or "schema" not in options:
        assert log[1] == schema
    if options.get("schema") == list[float] and "parse" not in options:
        assert type(found[0]) is float


POINT = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"], "additionalProperties": False}


@pytest.mark.rows("PY-048 PY-069")
@pytest.mark.parametrize(
    ("given", "schema"),
    [
        (list[float], {"type": "array", "items": {"type": "number"}}),
        (bool | None, {"anyOf": [{"type": "boolean"}, {"type": "null"}]}),
        (Literal["a", 2], {"enum": ["a", 2]}),
        (Point, {"$ref": "#/$defs/Point", "$defs": {"Point": POINT}}),
        (Color, {"$ref": "#/$defs/Color", "$defs": {"Color": {"enum": ["red"]}}}),
        (Validated, {"const": 1}),
    ],
)
def test_a_type_constrains_to_its_documents(engine, monkeypatch, given, schema):
    log = engine.log
    monkeypatch.setattr(GrammarConstraint, "from_json_schema", classmethod(lambda cls, given, model: log.append(given) or Asked(log)))
    engine.generate(constrain=given)
    engine.generate().constrain([given])
    assert [each for each in log if isinstance(each, dict)] == [schema, schema]


def test_a_type_without_a_schema_names_those_that_have_one(engine):
    with pytest.raises(TypeError, match="a dataclass, TypedDict, Enum"):
        engine.generate(constrain=set)


@pytest.mark.rows("PY-048 PY-069")
@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"type": "object"}, "constrain is {'type': 'object'} of type dict; it must be a constraint, a schema"),
        ({}, "put a JSON Schema into JsonSchema()"),
        ("a+", "put a JSON Schema into JsonSchema(), a pattern into Regex()"),
        (b"a+", "of type bytes; it must be a constraint"),
        (5, "constrain is 5 of type int; it must be a constraint, a schema (JsonSchema, AnyJson, Regex, Ebnf), a type, or a list of them"),
        ([{}], "constrain[0] is {} of type dict; it must be a constraint"),
    ],
)
def test_what_is_no_constraint_is_refused_by_what_is_accepted(engine, given, why):
    g = engine.generate()
    for use in (lambda: engine.generate(constrain=given), lambda: g.constrain(given)):
        with pytest.raises(TypeError) as caught:
            use()
        assert (caught.value.code, why in str(caught.value)) == ("invalid-argument", True), caught.value


@pytest.mark.rows("PY-069")
@pytest.mark.parametrize("schema", [5, 1.5, [], b"{}"])
def test_what_is_no_schema_is_refused_by_what_is_accepted(engine, schema):
    with pytest.raises(TypeError, match=r"schema is .* it must be a JSON Schema as text or as a dict, or a type") as caught:
        run(engine.generate().collect_json(schema=schema))
    assert caught.value.code == "invalid-argument"


@pytest.mark.parametrize("tools", [None, 5, "{}", {"name": "f"}])
def test_what_is_no_list_of_tools_is_refused_by_what_is_accepted(engine, tools):
    with pytest.raises(TypeError, match=r"schemas is .* it must be a list of tools") as caught:
        schema_texts(tools)
    assert caught.value.code == "invalid-argument"


@pytest.mark.rows("PY-075")
def test_what_is_accepted_by_hand_is_what_follows(engine):
    log = engine.log
    g = engine.generate(constrain=Asked(log, None, None), speculator=Drafts(log, ([], []), ([], [])))

    async def main():
        await (await anext(g)).execute()
        del log[:]
        assert g.accept([4, 5, 6]) == [4, 5]
        await (await anext(g)).execute()

    run(main())
    assert [call for call in log if call[0] in ("accept", "reset", "accepted", "asked")] == [
        ("accept", [4, 5, 6]),
        ("reset",),
        ("accepted", [4, 5]),
        ("asked", [4, 5]),
        ("accepted", [11]),
    ]


@pytest.mark.rows("PY-043")
def test_a_generator_needs_a_sampler_that_draws(engine):
    for make in (Sampler.dist, Sampler.embedding):
        with pytest.raises(TypeError, match="a probe draws nothing, give it to probe_each_step"):
            Generator._create(None, None, make(), {})
    assert set(GenerateOptions.__optional_keys__) >= {"constrain", "logit_mask", "speculator"}
