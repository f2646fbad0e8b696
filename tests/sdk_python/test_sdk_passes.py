"""Forward passes, handles and probes: what crosses to the engine, and what is made of its answers, on a faked
engine.
"""

import struct
import types as python_types

import pytest
from wit_world.imports import context, forward, sampling

from inferlet import (
    ArgumentTypeError,
    Distribution,
    Embedding,
    Entropy,
    Forward,
    ForwardPass,
    InvalidArgumentError,
    Logits,
    Logprob,
    Logprobs,
    Output,
    Sampler,
    _arguments,
    brle,
)
from inferlet import output as outputs
from inferlet._wait import EventLoop
from inferlet.adapter import Adapter
from inferlet.output import ProbeHandle, SampleHandle
from sdk_python.fakes import Clock


class FakedPass:
    """Takes every call, and answers with the slots that it is given."""

    def __init__(self, clock, slots):
        self.clock, self.slots, self.calls = clock, slots, []

    def __getattr__(self, name):
        def call(*arguments):
            self.calls.append((name, *arguments))
            return len([one for one in self.calls if one[0] in ("sample", "probe")]) - 1

        return call

    def execute(self):
        return self.clock.future("pass", value=forward.PassOutput(self.slots, sampling.Speculation(0, 0)))


SLOTS = [
    sampling.Slot_Tokens([7, 8]),
    sampling.Slot_Logits(struct.pack("<2f", 0.5, -1)),
    sampling.Slot_Distribution(sampling.Probabilities([3, 1], [0.75, 0.25])),
    sampling.Slot_Logprobs([-0.5]),
    sampling.Slot_Entropy(1.5),
    sampling.Slot_Embedding(b"\0\0\0\0"),
]
ACCESSORS = ("token", "tokens_at", "logits", "distribution", "logprobs", "entropy", "embedding")


def new_forward(monkeypatch, slots=SLOTS):
    made = FakedPass(Clock(monkeypatch), slots)
    monkeypatch.setattr(forward.ForwardPass, "create", classmethod(lambda cls, given: made))
    owner = python_types.SimpleNamespace(_raw=context.Context.__new__(context.Context), page_size=16)
    return Forward(owner), made


def run(coroutine):
    loop = EventLoop()
    try:
        return loop.run_until_complete(coroutine)
    finally:
        loop.close()


@pytest.mark.rows("PY-078..085 PY-104..108")
def test_what_is_put_together_crosses_as_it_is(monkeypatch):
    fwd, made = new_forward(monkeypatch)
    assert (
        fwd.input((1, 2)).input_at([3], (9,)).attention_mask([[], (0, 4)]).mask([2, 3]).zo_seed(-5).adapter(Adapter("raw adapter")) is fwd
    )
    fwd.sample([0], Sampler.argmax())
    probes = [Logits(), Distribution(0.5, 3), Logprob(4), Logprobs((5, 6)), Entropy(), Embedding()]
    for idx, probe in enumerate(probes):
        fwd.probe(idx, probe)
    assert made.calls[:7] == [
        ("input", [1, 2]),
        ("input_at", [3], [9]),
        ("attention_mask", [[], [0, 4]]),
        ("logit_mask", [2, 3]),
        ("set_zo_seed", -5),
        ("set_adapter", "raw adapter"),
        ("sample", [0], Sampler.argmax()._raw),
    ]
    assert [call[2] for call in made.calls[7:]] == [
        sampling.Probe_Logits(),
        sampling.Probe_Distribution(sampling.Distribution(0.5, 3)),
        sampling.Probe_Logprobs([4]),
        sampling.Probe_Logprobs([5, 6]),
        sampling.Probe_Entropy(),
        sampling.Probe_Embedding(),
    ]


@pytest.mark.rows("PY-088..093 PY-095..096")
def test_each_handle_has_the_accessors_of_its_kind_and_no_others(monkeypatch):
    fwd, made = new_forward(monkeypatch)
    probes = [Logits(), Distribution(1.0, 2), Logprob(4), Entropy(), Embedding()]
    handles = [fwd.sample([0, 1], Sampler.argmax()), *(fwd.probe(0, probe) for probe in probes)]
    out = run(fwd.execute())
    found = [{name: value for name in ACCESSORS if (value := getattr(out, name)(handle)) is not None} for handle in handles]
    assert found == [
        {"token": 7, "tokens_at": [7, 8]},
        {"logits": struct.pack("<2f", 0.5, -1)},
        {"distribution": ([3, 1], [0.75, 0.25])},
        {"logprobs": [-0.5]},
        {"entropy": 1.5},
        {"embedding": b"\0\0\0\0"},
    ]
    assert (out.tokens, out.finish_reason, out.auto_sampler) == ([], None, None)
    assert out.raw.slots is made.slots
    assert (out.raw.speculative.drafted, out.raw.speculative.accepted) == (0, 0)


def test_a_handle_of_another_kind_is_told_of_once(monkeypatch, capsys):
    monkeypatch.setattr(outputs, "told_kinds", set())
    fwd, _ = new_forward(monkeypatch)
    fwd.sample([0, 1], Sampler.argmax())
    fwd.probe(0, Logits())
    top = fwd.probe(0, Distribution(1.0, 2))
    out = run(fwd.execute())
    assert [out.entropy(top), out.entropy(top)] == [None, None]
    told = "warning: `out.entropy(...)` gives None for the handle of a probe of the kind distribution; `out.distribution(...)` reads that one\n"
    assert capsys.readouterr().err == told


@pytest.mark.rows("PY-088..093 PY-096")
def test_a_handle_of_another_pass_gives_none_and_what_is_no_handle_is_refused(monkeypatch):
    fwd, _ = new_forward(monkeypatch)
    handle = fwd.sample([0], Sampler.argmax())
    out = run(fwd.execute())
    other, _ = new_forward(monkeypatch)
    foreign = [other.sample([0], Sampler.argmax()), other.probe(0, Logits()), SampleHandle(fwd._slots, 99), ProbeHandle(object(), 0)]
    assert {getattr(out, name)(one) for name in ACCESSORS for one in foreign} == {None}
    assert out.token(handle) == 7
    assert Output([1, 2]).token(handle) is None
    assert (Output([1, 2]).raw.slots, Output([1, 2]).raw.speculative) == ((), sampling.Speculation(0, 0))
    for name in ACCESSORS:
        with pytest.raises(ArgumentTypeError, match=r"it must be a (Sample|Probe)Handle"):
            getattr(out, name)(None)


@pytest.mark.rows("OLD-061..062")
def test_older_samplers_that_draw_nothing_are_probes(monkeypatch):
    assert (Sampler.dist(), Sampler.dist(temperature=0.5, seed=3), Sampler.embedding()) == (
        Distribution(1.0, 0),
        Distribution(0.5, 0),
        Embedding(),
    )
    fwd, made = new_forward(monkeypatch, [SLOTS[2]])
    handle = fwd.sample([1], Sampler.dist())
    assert made.calls == [("probe", 1, sampling.Probe_Distribution(sampling.Distribution(1.0, 0)))]
    assert run(fwd.execute()).distribution(handle) == ([3, 1], [0.75, 0.25])
    for indices in ([], [0, 1]):
        with pytest.raises(InvalidArgumentError, match="Distribution reads one row"):
            fwd.sample(indices, Sampler.dist())


@pytest.mark.rows("PY-078..085 PY-105 PY-107")
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda fwd: fwd.input(5), "tokens is 5 of type int; it must be a list of token ids"),
        (lambda fwd: fwd.input_at([1], ["a"]), "positions[0] is 'a' of type str; it must be an int"),
        (lambda fwd: fwd.input_at([1], 1), "positions is 1 of type int; it must be a list of ints"),
        (lambda fwd: fwd.input_at([1], [-1]), "positions[0] is -1; it must lie in 0..4294967295"),
        (lambda fwd: fwd.attention_mask([1]), "masks[0] is 1 of type int; it must be a list of ints"),
        (lambda fwd: fwd.attention_mask(None), "masks is None of type NoneType; it must be a list of masks"),
        (lambda fwd: fwd.mask(b"ab"), "brle is b'ab' of type bytes; it must be a mask: a list of run lengths"),
        (lambda fwd: fwd.mask([1.5]), "brle[0] is 1.5 of type float; it must be an int"),
        (lambda fwd: fwd.mask([2**32]), "brle[0] is 4294967296; it must lie in 0..4294967295"),
        (lambda fwd: fwd.sample([0], "argmax"), "sampler is 'argmax' of type str; it must be a Sampler"),
        (lambda fwd: fwd.sample(0, Sampler.argmax()), "indices is 0 of type int; it must be a list of ints"),
        (lambda fwd: fwd.probe(0, Sampler.argmax()), "probe is Sampler("),
        (lambda fwd: fwd.probe(-1, Logits()), "idx is -1; it must lie in 0..4294967295"),
        (lambda fwd: fwd.adapter("a"), "a is 'a' of type str; it must be an Adapter, such as Adapter.open(model, 'a')"),
        (lambda fwd: fwd.zo_seed(2**63), "seed is 9223372036854775808; it must lie in -9223372036854775808..9223372036854775807"),
        (lambda fwd: Distribution("hot", 1), "temperature is 'hot' of type str; it must be a number"),
        (lambda fwd: Distribution(1.0, 1.5), "k is 1.5 of type float; it must be an int"),
        (lambda fwd: Logprobs(3), "tokens is 3 of type int; it must be a list of token ids"),
        (lambda fwd: Forward("c"), "context is 'c' of type str; it must be a Context"),
        (lambda fwd: brle.intersection([[1], "x"], 5), "masks[1] is 'x' of type str; it must be a mask: a list of run lengths"),
    ],
)
def test_what_cannot_cross_is_refused_by_its_name(monkeypatch, call, message):
    fwd, _ = new_forward(monkeypatch)
    with pytest.raises(ArgumentTypeError if "of type" in message or "Sampler(" in message else InvalidArgumentError) as caught:
        call(fwd)
    assert (caught.value.code, caught.value.message[: len(message)]) == ("invalid-argument", message)


def test_a_function_in_the_place_of_a_sampler_is_told_how_it_chooses_tokens(monkeypatch):
    fwd, _ = new_forward(monkeypatch)
    with pytest.raises(ArgumentTypeError, match=r"a function of one's own takes its place by clear_sampler and accept") as caught:
        fwd.sample([0], lambda ids, ps: ids[0])
    assert "write `()`" not in caught.value.message
    with pytest.raises(ArgumentTypeError, match=r"write `\(\)` behind the name to call it"):
        fwd.sample([0], Sampler.argmax)


@pytest.mark.rows("PY-105..107")
@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda: Distribution(1.0, -1), "invalid-probe"),
        (lambda: Logprob(-1), "invalid-token"),
        (lambda: Logprobs([2**32]), "invalid-token"),
    ],
)
def test_probes_out_of_every_range_are_refused(make, code):
    with pytest.raises(InvalidArgumentError) as caught:
        make()
    assert caught.value.code == code


def test_a_pass_begins_where_it_is_executed(monkeypatch):
    fwd, made = new_forward(monkeypatch)
    begun, execute = [], made.execute
    made.execute = lambda: begun.append(True) or execute()
    running = fwd.execute()
    assert begun == [True]
    run(running)


@pytest.mark.rows("PY-086")
def test_an_error_of_a_pass_is_raised_and_its_future_is_dropped(monkeypatch):
    fwd, made = new_forward(monkeypatch)
    made.execute = lambda: made.clock.future("pass", error="context-released")
    with pytest.raises(Exception, match="context-released happened"):
        run(fwd.execute())
    assert "future pass" in made.clock.dropped


@pytest.mark.rows("PY-081")
def test_masks_of_booleans_are_packed_for_the_engine(monkeypatch):
    seen = []
    monkeypatch.setattr(brle._masks, "unpack", lambda bits, length: seen.append((bits, length)) or [])
    for row in ([], [True], [False, True] * 5, [True] * 8, iter([1, 0, "x"])):
        brle.from_bools(row)
    assert seen == [(b"", 0), (b"\x01", 1), (b"\xaa\x02", 10), (b"\xff", 8), (b"\x05", 3)]
    for given in ("abc", {0: True}, 5):
        with pytest.raises(ArgumentTypeError, match=r"allowed is .*; it must be a list of truth values"):
            brle.from_bools(given)
    monkeypatch.setattr(brle._masks, "pack", lambda mask, length: b"\xaa\x02")
    assert brle.to_bools([1, 1], 10) == [False, True] * 5


@pytest.mark.rows("OLD-023")
def test_older_names():
    assert ForwardPass is Forward


@pytest.mark.rows("PY-079 PY-082")
def test_whole_numbers_stay_what_they_are():
    assert _arguments.counts("n", range(3)) == [0, 1, 2]
    assert _arguments.signed("n", -(2**63)) == -(2**63)
    assert _arguments.horizon("horizon", 0) == 0


@pytest.mark.rows("PY-079 PY-082")
def test_the_first_number_that_is_out_of_range_is_named():
    for numbers, place in (([0, 5, -1], 2), ([0, 2**32 - 1, 2**32, -1], 2), ([-1, 0], 0)):
        with pytest.raises(InvalidArgumentError, match=rf"^n\[{place}\] is {numbers[place]};") as caught:
            _arguments.counts("n", numbers)
        assert caught.value.code == "invalid-argument"
