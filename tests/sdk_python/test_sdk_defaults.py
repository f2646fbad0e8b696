"""What the calls of the SDK do where an argument is left out: every default, stated a second time."""

import inspect

import pytest
from wit_world.imports import generation

import inferlet
from inferlet import Sampler

OPTIONS = {"max_tokens": None, "stop": None, "seed": None, "auto_flush": True}
# Of every public function that has any.
DEFAULTS = {
    "Context.__init__": {"name": None},
    "Context.fork": {"name": None},
    "Context.save": {"name": None},
    "Context.generate": OPTIONS | {"decode": False, "reasoning": False, "tool_use": False},
    "Context.generate_text": OPTIONS,
    "Decoder.__init__": {"reasoning": False, "tool_use": False},
    "Generator.ignore_eos": {"ignore": True},
    "InferletError.__init__": {"details": None},
    "Output.__init__": {"finish_reason": None},
    "Sampler.top_p": {"temperature": 0.6, "p": None, "top_p": None, "seed": None},
    "Sampler.top_k": {"temperature": 0.6, "k": None, "top_k": None, "seed": None},
    "Sampler.min_p": {"temperature": 0.6, "p": None, "min_p": None, "seed": None},
    "Sampler.top_k_top_p": {"temperature": 0.6, "k": None, "p": None, "top_k": None, "top_p": None, "seed": None},
    "Sampler.multinomial": {"temperature": 1.0, "draws": 1, "seed": None},
    "Sampler.__init__": {"_seed": None},
    "TokenStream.ignore_eos": {"ignore": True},
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


def test_defaults_are_those_of_the_reference():
    found = {}
    for name, function in public().items():
        parameters = inspect.signature(function).parameters.values()
        defaults = {it.name: it.default for it in parameters if it.default is not it.empty}
        # A fresh list each time.
        defaults.pop("tokens", None)
        if defaults:
            found[name] = defaults
    assert found == DEFAULTS


@pytest.mark.parametrize(
    ("sampler", "method"),
    [
        (Sampler.top_p(), generation.Method_TopP(generation.TopP(0.6, 0.95))),
        (Sampler.top_p(0.3), generation.Method_TopP(generation.TopP(0.3, 0.95))),
        (Sampler.top_k(), generation.Method_TopK(generation.TopK(0.6, 50))),
        (Sampler.top_k(0.3), generation.Method_TopK(generation.TopK(0.3, 50))),
        (Sampler.min_p(), generation.Method_MinP(generation.MinP(0.6, 0.1))),
        (Sampler.min_p(0.3), generation.Method_MinP(generation.MinP(0.3, 0.1))),
        (Sampler.top_k_top_p(), generation.Method_TopKTopP(generation.TopKTopP(0.6, 50, 0.95))),
        (Sampler.top_k_top_p(0.3, 7), generation.Method_TopKTopP(generation.TopKTopP(0.3, 7, 0.95))),
        (Sampler.multinomial(), generation.Method_Multinomial(generation.Multinomial(1.0, 1))),
        (Sampler.multinomial(0.3), generation.Method_Multinomial(generation.Multinomial(0.3, 1))),
    ],
    ids=str,
)
def test_what_is_left_out_of_a_sampler(sampler, method):
    assert sampler._method == method
    assert sampler._seed is None
