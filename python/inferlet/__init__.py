"""Programs for the Pie engine, in Python.

A program defines `async def main(input)`: `input` is the JSON value of the launch, what it returns is the answer. A
module without `main` is a script: its body is the program, and `inferlet.input` is the launch input. A module with
`async def fetch(request)` answers requests by HTTP where it is launched to (`inferlet.http_server`).
"""

from __future__ import annotations

from typing import Any

try:
    import wit_world as _wit_world  # noqa: F401 - what the engine gives a program
except ModuleNotFoundError:
    # Plain Python: what needs the engine says so when it is called.
    from inferlet import _outside

    _outside.stand_in()

from inferlet import brle, chat, files, http, http_server, mcp, messaging, reasoning, runtime, scheduling, session, spec, tools, zo
from inferlet.adapter import Adapter
from inferlet.constraint import Constraint, Schema
from inferlet.context import Context
from inferlet.errors import (
    ArgumentTypeError,
    DeadlockError,
    ErrorCode,
    InferletError,
    InvalidArgumentError,
    JsonCutError,
    SessionClosed,
)
from inferlet.events import Decoder, Event, EventStream
from inferlet.forward import Forward, ForwardPass
from inferlet.generation import GenerateOptions, Generator, GenStep, TextStream, TokenStream
from inferlet.grammar import AnyJson, Ebnf, Grammar, GrammarConstraint, JsonSchema, Matcher, Regex
from inferlet.mcp import McpSession
from inferlet.messaging import Subscription
from inferlet.model import Model, Tokenizer
from inferlet.output import FinishReason, Output, ProbeHandle, SampleHandle
from inferlet.probe import Distribution, Embedding, Entropy, Logits, Logprob, Logprobs
from inferlet.runtime import Child
from inferlet.sampler import Sampler
from inferlet.spec import Speculator

__all__ = [
    "Adapter",
    "AnyJson",
    "ArgumentTypeError",
    "Child",
    "Constraint",
    "Context",
    "DeadlockError",
    "Decoder",
    "Distribution",
    "Ebnf",
    "Embedding",
    "Entropy",
    "ErrorCode",
    "Event",
    "EventStream",
    "FinishReason",
    "Forward",
    "ForwardPass",
    "GenStep",
    "GenerateOptions",
    "Generator",
    "Grammar",
    "GrammarConstraint",
    "InferletError",
    "InvalidArgumentError",
    "JsonCutError",
    "JsonSchema",
    "Logits",
    "Logprob",
    "Logprobs",
    "Matcher",
    "McpSession",
    "Model",
    "Output",
    "ProbeHandle",
    "Regex",
    "SampleHandle",
    "Sampler",
    "Schema",
    "SessionClosed",
    "Speculator",
    "Subscription",
    "TextStream",
    "TokenStream",
    "Tokenizer",
    "brle",
    "chat",
    "files",
    "http",
    "http_server",
    "mcp",
    "messaging",
    "reasoning",
    "runtime",
    "scheduling",
    "session",
    "spec",
    "tools",
    "zo",
]

input: Any = None  # noqa: A001 - the name that scripts import
"""The launch input, any JSON value; the engine sets it before the program is loaded."""
