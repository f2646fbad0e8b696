"""Where names stand in the reference: the pages, and which names of the three languages are one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tools.sdk_reference.items import SEPARATORS, Item, SourceError


@dataclass(frozen=True)
class Area:
    """A page of the reference."""

    name: str
    """That of its file."""
    title: str
    intro: str
    guides: tuple[str, ...]
    """Pages of the guide, by their names."""
    sources: tuple[str, ...]
    """The files whose names stand on it, by their stems: the same for the three languages."""


AREAS = (
    Area(
        "program",
        "Programs",
        "The entry of a program, what every program has at hand, and how it waits. Python waits by `asyncio`, TypeScript by "
        "promises and timers.",
        ("languages", "programs"),
        ("__init__", "index", "lib", "arguments", "args", "entry", "prelude", "task"),
    ),
    Area(
        "context",
        "Models and contexts",
        "A context is a sequence of tokens with its keys and values in pages. Programs fill it, fork it, keep it under a name, "
        "and generate from it.",
        ("programs", "text"),
        ("context", "model", "pages"),
    ),
    Area(
        "generation",
        "Generation",
        "A generator continues a context token by token; a step gives an output, which handles read.",
        ("steps",),
        ("generation", "generator", "output", "handle", "spec", "speculator", "texts"),
    ),
    Area("sampling", "Sampling", "How a token is chosen from a row of logits.", ("steps",), ("sample", "sampler")),
    Area(
        "probes",
        "Probes",
        "What is read of a row of logits beside what is drawn from it. The shape of a row is `[V]`, V being the size of the vocabulary.",
        ("steps", "passes"),
        ("probe", "probes"),
    ),
    Area(
        "forward",
        "Forward passes, masks and adapters",
        "Passes that a program puts together by itself, the masks that they and generators take, and adapters.",
        ("passes", "adapters"),
        ("forward", "brle", "adapter", "inference", "zo"),
    ),
    Area(
        "text",
        "Text",
        "Text to token ids and back, the turns of the chat template as tokens, and the decoders of what a model says and thinks.",
        ("text",),
        ("tokenizer", "chat", "reasoning", "events", "decoding"),
    ),
    Area("tools", "Tools", "What a model is given to call, the calls that it makes, and their answers.", ("tools",), ("tools",)),
    Area(
        "grammars",
        "Grammars and constraints",
        "What a model may write: JSON, a JSON Schema, a regular expression, a grammar, or what the program says in each step.",
        ("grammars",),
        ("grammar", "constrain", "constraint", "matcher", "typed"),
    ),
    Area(
        "scheduling",
        "The market for pages",
        "What a program has to bid for pages, and what pages cost. A context bids by `set_bid`, and bids nothing within `idle`.",
        ("market",),
        ("scheduling",),
    ),
    Area("session", "Session", "The channel to the client that launched the program.", ("messages",), ("session",)),
    Area("messaging", "Messaging", "Messages between the programs of one user.", ("messages",), ("messaging",)),
    Area(
        "files",
        "Files",
        "Programs use the files of their language: `open` and `pathlib` in Python, `node:fs/promises` in TypeScript, `std::fs` in "
        "Rust. What the SDK adds is why the engine refused something.",
        ("files",),
        ("files",),
    ),
    Area(
        "http",
        "HTTP",
        "Requests that a program sends, and requests that it answers. TypeScript has `fetch`, `Request`, `Response` and `Headers` "
        "without an import, for both.",
        ("http", "serving-http"),
        ("http", "http_server"),
    ),
    Area("mcp", "MCP", "Servers of the Model Context Protocol: their tools, resources and prompts.", ("mcp",), ("mcp",)),
    Area(
        "children",
        "The engine and child processes",
        "What a program may know of the engine and of its launch, and how it starts others.",
        ("children",),
        ("runtime",),
    ),
    Area(
        "errors",
        "Errors",
        "An error is a code, a message and details. [Error codes](../errors.md) lists every code with what to do.",
        ("programs",),
        ("errors", "error_codes"),
    ),
    Area(
        "globals",
        "Globals of TypeScript and JavaScript",
        "What a program in TypeScript or JavaScript has without an import, beside [`fetch`](http.md#http.fetch) and what belongs to "
        "it. It is what browsers have, as far as it goes.",
        ("languages", "http", "files"),
        ("globals",),
    ),
    Area(
        "raw",
        "The interfaces of the engine",
        "What the SDKs are made of. Rust lends it as `inferlet::pie`, for what the typed API does not cover: "
        "`inferlet::pie::core::context` is the interface "
        "`context` of the package `pie:core`. For `session` and `messaging` it lends the typed API, which keeps the order of "
        "what is printed and sent.",
        ("passes",),
        (),
    ),
)
"""In the order of the index."""

_ELSEWHERE: Mapping[str, str] = {
    "Tokenizer": "text",
    "JsonCutError": "errors",
    "Brle": "forward",
    "launch": "children",
    "schemars": "grammars",
    "pie": "raw",
    "globals.node:fs/promises": "files",
    **dict.fromkeys(("http.fetch", "http.Request", "http.Response", "http.Headers", "http.RequestInit", "http.ResponseInit"), "http"),
}
"""The pages of names, and of what stands in them, that do not belong where their file does."""

_TRANSPARENT: Mapping[str, tuple[str, ...]] = {
    "python": (
        "output",
        "probe",
        "spec",
        "context",
        "generation",
        "grammar",
        "sampler",
        "constraint",
        "model",
        "adapter",
        "events",
        "errors",
        "forward",
    ),
    "typescript": (),
    "rust": ("sample", "spec", "inference", "generation", "context", "adapter", "model", "tokenizer", "args", "prelude"),
}
"""Modules whose names are those of the root in other languages."""

_SAME: Mapping[tuple[str, str], str] = {
    ("typescript", "anyJson"): "AnyJson",
    ("typescript", "ebnf"): "Ebnf",
    ("typescript", "jsonSchema"): "JsonSchema",
    ("typescript", "regex"): "Regex",
    # Programs in TypeScript have these without an import.
    **{("typescript", name): f"http.{name}" for name in ("fetch", "Request", "Response", "Headers", "RequestInit", "ResponseInit")},
    ("rust", "args"): "runtime.args",
    ("rust", "mcp::client"): "mcp",
    ("rust", "mcp::client::Session"): "McpSession",
    ("rust", "mcp::client::available_servers"): "mcp.available_servers",
    ("rust", "mcp::client::connect"): "mcp.connect",
    ("rust", "mcp::client::connect_async"): "mcp.connect_async",
    ("rust", "messaging::Subscription"): "Subscription",
    ("rust", "runtime::SpawnOptions"): "SpawnOptions",
}
"""Names that are spelled apart and mean one thing."""

_SAME_MEMBERS: Mapping[tuple[str, str], str] = {
    ("rust", "messaging::Subscription::get"): "try_next",
}


def stem(source: str) -> str:
    """The file of a name as `Area.sources` names it: a folder of Rust stands for its files."""
    parts = source.removesuffix(".d.ts").split("/")
    last = parts[-1].partition(".")[0]
    is_inside = source.endswith(".rs") and parts[-2] != "src"
    name = parts[-2] if is_inside else last
    return name.replace("-", "_") if name.startswith("__") else name.replace("-", "_").lstrip("_")


def area_of(key: str, item: Item) -> Area:
    """The page of a name. Raises SourceError where its file belongs to none."""
    wanted = next((page for name, page in _ELSEWHERE.items() if key == name or key.startswith(f"{name}.")), None)
    for area in AREAS:
        if area.name == wanted or (wanted is None and stem(item.source) in area.sources):
            return area
    raise SourceError(
        f"{item.path} of {item.source} has no page in the reference: add {stem(item.source)!r} to the sources of one in "
        "tools/sdk_reference/areas.py"
    )


def snake(name: str) -> str:
    """A name in small letters, its words joined by `_`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower().replace("-", "_")


def key_of(item: Item) -> str:
    """What a name of the top is called in all languages: `Context`, `chat.Decoder`, `chat.stop_tokens`."""
    known = _SAME.get((item.language, item.path))
    if known is not None:
        return known
    parts = item.path.split(SEPARATORS[item.language])
    if parts[0] in _TRANSPARENT[item.language]:
        # The module itself is named in full: one that differs from a type in the size of a letter is not that type.
        parts = parts[1:] or ["inferlet", parts[0]]
    *modules, last = parts
    if stem(item.source) == "globals":
        return ".".join(["globals", *modules, last])
    name = last if last[:1].isupper() else snake(last)
    return ".".join([*map(snake, modules), name])


def member_key(owner: str, member: Item) -> str:
    """What a member is called in all languages, behind the name of its owner."""
    name = _SAME_MEMBERS.get((member.language, member.path)) or snake(member.name.strip("_"))
    return f"{owner}.{'constructor' if member.kind == 'constructor' else name}"
