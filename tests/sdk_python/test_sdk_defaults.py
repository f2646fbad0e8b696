"""What the calls of the SDK do where an argument is left out: every default, stated a second time."""

import inspect

import pytest
from wit_world.imports import generation, sampling

import inferlet
from inferlet import Sampler
from inferlet import sampler as samplers
from inferlet.generation import _raw_options

# Of every public function that has any.
DEFAULTS = {
    "Adapter.create": {"rank": 8, "alpha": 16.0},
    "Adapter.change": {"changes": (), "sigma": None},
    "Context.__init__": {"name": None},
    "Context.answer": {"id": None},
    "Context.ask": {"sampler": None},
    "Context.fork": {"name": None},
    "Context.save": {"name": None},
    "Context.generate": {"decode": False, "reasoning": False, "tool_use": False},
    "Decoder.__init__": {"reasoning": False, "tool_use": False},
    "McpSession.call_tool": {"args": None},
    "McpSession.call_tool_async": {"args": None},
    "McpSession.get_prompt": {"args": None},
    "McpSession.get_prompt_async": {"args": None},
    "EventStream.__init__": {"reasoning": False, "tool_use": False},
    "Generator.collect_json": {"schema": None, "parse": None},
    "Generator.decoder": {"hide_thoughts": False, "hide_calls": False},
    "Generator.ignore_eos": {"ignore": True},
    "Generator.rebid_each_step": {"rebid": True},
    "Generator.system_speculation": {"proposer": True},
    "InferletError.__init__": {"details": None},
    "Output.__init__": {"finish_reason": None},
    "Sampler.top_p": {"temperature": 0.6, "p": None, "top_p": None, "seed": None},
    "Sampler.top_k": {"temperature": 0.6, "k": None, "top_k": None, "seed": None},
    "Sampler.min_p": {"temperature": 0.6, "p": None, "min_p": None, "seed": None},
    "Sampler.top_k_top_p": {"temperature": 0.6, "k": None, "p": None, "top_k": None, "top_p": None, "seed": None},
    "Sampler.multinomial": {"temperature": 1.0, "draws": 1, "seed": None},
    "Sampler.dist": {"temperature": 1.0, "seed": 0},
    "brle.window": {"sinks": 0},
    "http.request": {"params": None, "headers": (), "body": None, "json": None, "timeout_s": None, "redirects": "follow"},
    "http.stream": {"params": None, "headers": (), "body": None, "json": None, "timeout_s": None, "redirects": "follow"},
    "runtime.spawn": {
        "args": None,
        "argv": (),
        "output": False,
        "detached": False,
        "seed": None,
        "token_budget": None,
        "credits": None,
    },
    "tools.answer_prefix": {"id": None},
    "tools.native_grammar": {"choice": "required"},
    "tools.native_matcher": {"choice": "required"},
    "TokenStream.collect_json": {"schema": None, "parse": None},
    "TokenStream.decoder": {"hide_thoughts": False, "hide_calls": False},
    "TokenStream.ignore_eos": {"ignore": True},
    "TokenStream.rebid_each_step": {"rebid": True},
    "TokenStream.system_speculation": {"proposer": True},
}


def public():
    """Every public function of the SDK, and of its classes and modules, by its name."""
    found = {}
    for name in inferlet.__all__:
        value = getattr(inferlet, name)
        members = [(name, value)] if inspect.isfunction(value) else []
        if inspect.isclass(value) or inspect.ismodule(value):
            listed = getattr(value, "__all__", None) or [
                member for member in vars(value) if not member.startswith("_") or member == "__init__"
            ]
            members = [(f"{name}.{member}", getattr(value, member, None)) for member in listed]
        found |= {key: member for key, member in members if inspect.isfunction(member) or inspect.ismethod(member)}
    return found


@pytest.mark.rows("OLD-008 OLD-056..060 OLD-062 PY-069")
def test_defaults_are_those_of_the_reference():
    found = {}
    for name, function in public().items():
        parameters = inspect.signature(function).parameters.values()
        defaults = {it.name: it.default for it in parameters if it.default is not it.empty and not it.name.startswith("_")}
        # A fresh list each time.
        defaults.pop("tokens", None)
        if defaults:
            found[name] = defaults
    assert found == DEFAULTS


@pytest.mark.rows("PY-043 PY-046..047 PY-049 PY-051 PY-055 OLD-096")
def test_what_is_left_out_of_the_options():
    assert _raw_options({}) == generation.Options(
        max_tokens=None,
        stop=[],
        stop_texts=[],
        seed=None,
        auto_flush=True,
        ignore_eos=False,
        logit_mask=[],
        drafting=generation.Drafting_None_(),
    )


@pytest.mark.rows("PY-097..102 OLD-008 OLD-056..060")
@pytest.mark.parametrize(
    ("sampler", "raw"),
    [
        (Sampler.argmax(), sampling.Sampler(0.0, None, None, None, 1, None)),
        (Sampler.top_p(), sampling.Sampler(0.6, None, 0.95, None, 1, None)),
        (Sampler.top_p(0.3), sampling.Sampler(0.3, None, 0.95, None, 1, None)),
        (Sampler.top_k(), sampling.Sampler(0.6, 50, None, None, 1, None)),
        (Sampler.top_k(0.3), sampling.Sampler(0.3, 50, None, None, 1, None)),
        (Sampler.min_p(), sampling.Sampler(0.6, None, None, 0.1, 1, None)),
        (Sampler.min_p(0.3), sampling.Sampler(0.3, None, None, 0.1, 1, None)),
        (Sampler.top_k_top_p(), sampling.Sampler(0.6, 50, 0.95, None, 1, None)),
        (Sampler.top_k_top_p(0.3, 7), sampling.Sampler(0.3, 7, 0.95, None, 1, None)),
        (Sampler.multinomial(), sampling.Sampler(1.0, None, None, None, 1, None)),
        (Sampler.multinomial(0.3), sampling.Sampler(0.3, None, None, None, 1, None)),
    ],
    ids=str,
)
def test_what_is_left_out_of_a_sampler(sampler, raw):
    assert sampler._raw == raw


def test_a_number_that_alone_is_given_to_top_k_is_told_of_once(monkeypatch, capsys):
    monkeypatch.setattr(samplers, "told", set())
    for meant in (
        Sampler.top_k,
        lambda: Sampler.top_k(1),
        lambda: Sampler.top_k(2.0),
        lambda: Sampler.top_k(2, 40),
        lambda: Sampler.top_k(2, k=40),
        lambda: Sampler.top_k(2, top_k=40),
        lambda: Sampler.top_k(temperature=2),
    ):
        meant()
    assert capsys.readouterr().err == ""
    for _ in range(2):
        assert Sampler.top_k(40)._raw == sampling.Sampler(40.0, 50, None, None, 1, None)
    assert capsys.readouterr().err == "warning: Sampler.top_k(40) is a temperature of 40; write Sampler.top_k(1.0, 40)\n"


def test_an_unknown_option_has_a_code_and_names_the_nearest():
    for name, hint in (("max_token", "did you mean 'max_tokens'?"), ("riddle", "its options are adapter, auto_flush,")):
        with pytest.raises(inferlet.ArgumentTypeError) as caught:
            _raw_options({name: 1})
        assert isinstance(caught.value, TypeError)
        assert (caught.value.code, hint in str(caught.value)) == ("invalid-argument", True)
