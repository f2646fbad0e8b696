"""Every function of the WIT stands in each SDK and in a vector; the types of the JavaScript bridge are what it
exports.
"""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tools import gen_js_bridge
from tools.wit import Function, functions

ROOT = Path(__file__).resolve().parents[2]
LANGUAGES = ("python", "typescript", "rust")

PAGES = (
    "reserve-working-pages",
    "commit-working-pages",
    "release-working-pages",
    "truncate-working-page-tokens",
    "drop-committed-pages",
    "committed-page-count",
    "working-page-count",
    "working-page-token-count",
)
RUST_ALONE = (*(f"context.context.{name}" for name in PAGES), "forward.forward-pass.leave-working-pages")

ABSENT = dict.fromkeys(
    (("rust", "generation.generator.set-stop"), ("rust", "generation.generator.set-stop-texts")),
    "Rust's `stop` adds; what replaces is left to Python and JavaScript",
) | {
    (language, path): "the reference has operations on pages in Rust alone" for language in ("python", "typescript") for path in RUST_ALONE
}
ABSENT |= {
    (language, "messaging.subscription.pollable"): "the reference has it in Rust alone; the others wait by `next`"
    for language in ("python", "typescript")
}
ABSENT |= {(language, "session.print"): "runtimes make standard output of it; programs print" for language in LANGUAGES}
ABSENT |= {
    (language, "tokenizer.tokenizer.encode"): "a call without an error, which the reference has in Rust alone; the others have `try-encode`"
    for language in ("python", "typescript")
}
ABSENT |= {("rust", "http.exchange.cancel"): "what is dropped is given up, and a program in Rust says when that is"}
ABSENT |= {("rust", "http-server.incoming-request.abandon"): "what is dropped is given up, and a program in Rust says when that is"}
ABSENT |= {("typescript", "http.refusal"): "an error of `fetch` has the code itself, and no other client goes by `wasi:http` there"}
"""What a language leaves out by a rule of its own."""

WITHOUT_VECTOR = {
    **dict.fromkeys(RUST_ALONE, "vectors run in all languages; tests/e2e/test_passes.py has the operations on pages"),
    "messaging.subscription.pollable": "vectors run in all languages; tests/guests/messaging/src/lib.rs waits by it for tests/e2e/test_messaging.py",
    **dict.fromkeys(
        ("generation.generator.ask-masks", "generation.generator.give-mask", "generation.generator.draft"),
        "the SDKs call it for constraints and speculators, which are options of `generate` in vectors",
    ),
    "session.print": "what Python's standard output is made of; tests/e2e/test_session.py prints in each language",
    "files.check": "what is refused is refused by a machine; tests/e2e/test_files.py has the programs",
    **dict.fromkeys(
        ("http.refusal", *(f"http.exchange.{name}" for name in ("start", "write-part", "finish", "head", "read", "cancel"))),
        "what is asked is a server of a test: tests/e2e/test_http.py has the programs",
    ),
    **dict.fromkeys(
        (
            "http-server.is-serving",
            "http-server.next-request",
            *(f"http-server.incoming-request.{name}" for name in ("head", "read", "respond", "write-part", "finish", "abandon", "gone")),
        ),
        "who asks is a client of a test: tests/e2e/test_http_in.py has the programs",
    ),
    "generation.generator.probe": "an option of `step` in vectors",
    "generation.generator.clear-sampler": "an option of `step` in vectors",
}
"""What no vector calls."""

OPERATIONS = {
    "context.context.create": "context",
    "context.context.begin-idle": "idle",
    "context.context.end-idle": "idle",
    "adapter.adapter.create": "adapter",
    **{f"adapter.adapter.{name}": f"adapter_{name}" for name in ("open", "names", "fork", "save", "load", "change", "destroy")},
    "forward.forward-pass.set-adapter": "pass_adapter",
    "generation.generator.set-adapter": "use_adapter",
    "forward.forward-pass.create": "forward",
    "forward.forward-pass.logit-mask": "mask",
    "forward.forward-pass.set-zo-seed": "pass_zo_seed",
    "masks.intersection": "mask_and",
    **{f"masks.{name}": f"mask_{name}" for name in ("shortest", "allowing", "allowed", "pack", "unpack", "window", "causal")},
    "grammar.grammar.create": "grammar",
    **{f"grammar.matcher.{name}": f"matcher_{name}" for name in ("mask", "accept", "forced", "reset", "fork")},
    "grammar.matcher.is-terminated": "matcher_ended",
    "generation.generator.collect-document": "collect_json",
    "generation.generator.create": "generate",
    "generation.generator.set-logit-mask": "logit_mask",
    "generation.generator.set-drafting": "system_speculation",
    "generation.generator.set-stop": "stop",
    "generation.generator.set-stop-texts": "stop",
    "generation.generator.add-stop-texts": "add_stop",
    "generation.generator.next-step": "step",
    "generation.generator.set-horizon": "horizon",
    "generation.generator.set-zo-seed": "zo_seed",
    "model.model.load": "model_name",
    "model.model.name": "model_name",
    "model.model.tokenizer": "encode",
    "tokenizer.tokenizer.try-encode": "encode",
    "tools.parse-call": "parse_call",
    "tools.choice-grammar": "generate",
    **{
        f"{module}.{resource}.{name}": f"{op}_{how}"
        for module, resource, op in (("reasoning", "reasoning-decoder", "thoughts"), ("tools", "tool-decoder", "calls"))
        for name, how in (("create", "feed"), ("feed", "feed"), ("feed-output", "stream"), ("finish", "finish"), ("reset", "reset"))
    },
    "client.available-servers": "mcp_servers",
    "client.connect": "mcp_connect",
    **{
        f"client.mcp-session.{name}": "mcp_ask"
        for name in ("hello", "list-tools", "call-tool", "list-resources", "read-resource", "list-prompts", "get-prompt")
    },
    "client.mcp-session.close": "mcp_close",
    "chat.decoder.create-hiding": "visible",
    "chat.decoder.create-for": "text_stream",
    "chat.decoder.create": "chat_feed",
    "chat.decoder.feed": "chat_feed",
    "chat.decoder.feed-output": "chat_stream",
    "chat.decoder.finish": "chat_finish",
    "chat.decoder.reset": "chat_reset",
}
"""The operation of the vectors that calls a function, where it is called otherwise. `fill` is three of them."""


def operation(function: Function) -> str:
    if function.path == "chat.fill":
        return "user"
    return OPERATIONS.get(function.path, function.name.replace("-", "_"))


def used_in_python(sources: Mapping[str, str]) -> set[tuple[str, str]]:
    """Interfaces and their functions that modules name: of an interface itself, of a class of it, or of a raw
    handle.
    """
    used = set()
    for text in sources.values():
        tree = ast.parse(text)
        imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == "wit_world.imports"]
        aliases = {alias.asname or alias.name: alias.name for node in imports for alias in node.names}
        for node in ast.walk(tree):
            if not isinstance(node, ast.Attribute):
                continue
            owner = node.value.value if isinstance(node.value, ast.Attribute) else node.value
            if isinstance(owner, ast.Name) and owner.id in aliases:
                used.add((aliases[owner.id], node.attr))
            elif isinstance(node.value, ast.Attribute) and node.value.attr == "_raw":
                used.update((interface, node.attr) for interface in aliases.values())
    return used


def used_in_rust(sources: Mapping[str, str]) -> set[tuple[str, str]]:
    """Interfaces and the names that a file has behind a point, a path, or in the list of a `use`, for each interface of
    which the file uses the bindings. A file that declares a decoder has the names of the macro, too.
    """
    used: set[tuple[str, str]] = set()
    shared = next((text for name, text in sources.items() if name.endswith("/decoding.rs")), "")
    for text in sources.values():
        product = text.partition("#[cfg(test)]\nmod ")[0]
        code = re.sub(r"//[^\n]*", "", product + shared if "decoder! {" in product else product)
        interfaces = set(re.findall(r"\bbindings::pie::\w+::(\w+)", code))
        names = set(re.findall(r"\.(\w+)\s*\(|::(\w+)\b", code))
        lists = re.findall(r"\buse crate::bindings::pie::\w+::\w+::\{([^}]*)\}", code)
        found = {method or path for method, path in names} | {name for names in lists for name in re.findall(r"\w+", names)}
        used.update((interface, name) for interface in interfaces for name in found)
    return used


def missing_in_python(every: Iterable[Function], sources: Mapping[str, str]) -> set[str]:
    used = used_in_python(sources)
    return {function.path for function in every if (snake(function.interface), snake(function.name)) not in used}


def missing_in_rust(every: Iterable[Function], sources: Mapping[str, str]) -> set[str]:
    used = used_in_rust(sources)
    return {function.path for function in every if (snake(function.interface), snake(function.name)) not in used}


def missing_in_javascript(every: Iterable[Function], used: Iterable[str]) -> set[str]:
    known = set(used)
    return {function.path for function in every if javascript_name(function) not in known}


def javascript_name(function: Function) -> str:
    if function.resource is None or function.is_static:
        return gen_js_bridge.export_name(function)
    return f"{gen_js_bridge.pascal(function.resource)}Handle.{gen_js_bridge.camel(function.name)}"


def missing_in_vectors(every: Iterable[Function], vectors: Iterable[Mapping[str, Any]], language: str) -> set[str]:
    run = {op for vector in vectors if language in vector.get("languages", LANGUAGES) for op in operations(op for op, _ in vector["rows"])}
    return {function.path for function in every if operation(function) not in run and function.path not in WITHOUT_VECTOR}


def operations(ops: Iterable[Mapping[str, Any]]) -> Iterable[str]:
    for op in ops:
        yield op["op"]
        for branch in op.get("ops", []):
            yield from operations(branch)


def exported(bridge: str) -> list[str]:
    """What a file of the bridge exports: functions, and the methods of its classes."""
    names = re.findall(r'export!\(\s*"(\w+)"', bridge)
    for handle, body in re.findall(r"impl (\w+Handle) \{\n(.*?)\n\}", bridge, re.DOTALL):
        methods = (name.replace("_", "-") for name in re.findall(r"^    fn (\w+)<", body, re.MULTILINE))
        names += [f"{handle}.{gen_js_bridge.camel(name)}" for name in methods]
    return sorted(names)


def snake(name: str) -> str:
    return name.replace("-", "_")


def except_for(language: str, missing: set[str]) -> set[str]:
    return missing - {path for absent_in, path in ABSENT if absent_in == language}


def texts(folder: str, pattern: str) -> dict[str, str]:
    return {str(path): path.read_text(encoding="utf-8") for path in sorted((ROOT / folder).rglob(pattern))}


def python_sources() -> dict[str, str]:
    return {name: text for name, text in texts("python/inferlet", "*.py").items() if "/_runtime/" not in name}


def rust_sources() -> dict[str, str]:
    return {name: text for name, text in texts("rust/inferlet/src", "*.rs").items() if not name.endswith("/bindings.rs")}


def vectors() -> list[dict[str, Any]]:
    files = (path for path in sorted((ROOT / "tests/vectors").glob("*.json")) if path.stem != "tsconfig")
    return [json.loads(path.read_text(encoding="utf-8")) for path in files]


def javascript() -> dict[str, list[str]]:
    done = subprocess.run(["node", ROOT / "tests/sdk_js/uses.mjs"], capture_output=True, check=True, text=True)
    found: dict[str, list[str]] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def every() -> tuple[Function, ...]:
    return functions()


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Function, ...]:
    """The functions of a WIT with three more, which no SDK and no vector has: they alone."""
    folder = tmp_path_factory.mktemp("planted") / "wit"
    shutil.copytree(ROOT / "wit", folder)
    for name, before, more in (
        ("pie-core/runtime.wit", "    models: func", "    /// Planted.\n    uptime-planted: func() -> u64;\n"),
        (
            "pie-core/context.wit",
            "        fork: func",
            "        /// Planted.\n        rewind-planted: func(n: u32) -> result<_, error>;\n",
        ),
        (
            "pie-instruct/chat.wit",
            "        reset: func",
            "        /// Planted.\n        peek-planted: func() -> event;\n",
        ),
    ):
        path = folder / "deps" / name
        text = path.read_text(encoding="utf-8")
        assert before in text
        path.write_text(text.replace(before, more + before), encoding="utf-8")
    known = set(functions())
    return tuple(function for function in functions(folder) if function not in known)


def test_the_functions_are_those_of_the_wit(every: tuple[Function, ...]) -> None:
    paths = {function.path for function in every}
    assert {
        "runtime.models",
        "context.context.fork",
        "generation.generator.create",
        "session.send",
        "chat.decoder.finish",
    } <= paths
    assert len(paths) == len(every) > 50
    assert set(OPERATIONS) <= paths
    assert {path for _, path in ABSENT} <= paths


def test_every_function_stands_in_each_sdk(every: tuple[Function, ...]) -> None:
    assert except_for("python", missing_in_python(every, python_sources())) == set()
    assert except_for("typescript", missing_in_javascript(every, javascript()["used"])) == set()
    assert except_for("rust", missing_in_rust(every, rust_sources())) == set()


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_function_stands_in_a_vector(every: tuple[Function, ...], language: str) -> None:
    assert except_for(language, missing_in_vectors(every, vectors(), language)) == set()


def test_what_no_vector_calls_is_of_the_wit_and_shown_elsewhere(every: tuple[Function, ...]) -> None:
    paths = {function.path for function in every}
    assert set(WITHOUT_VECTOR) <= paths, set(WITHOUT_VECTOR) - paths
    named = {why: re.findall(r"tests/[\w./]+", why) for why in WITHOUT_VECTOR.values()}
    assert {why: found for why, found in named.items() if not all((ROOT / name).is_file() for name in found)} == {}
    # What names no test is an option of what vectors call.
    assert [why for why, found in named.items() if not found and " in vectors" not in why] == []


def test_a_function_that_is_planted_is_missed_everywhere(planted: tuple[Function, ...]) -> None:
    paths = {"runtime.uptime-planted", "context.context.rewind-planted", "chat.decoder.peek-planted"}
    assert {function.path for function in planted} == paths
    assert missing_in_python(planted, python_sources()) == paths
    assert missing_in_javascript(planted, javascript()["used"]) == paths
    assert missing_in_rust(planted, rust_sources()) == paths
    assert missing_in_vectors(planted, vectors(), "python") == paths


def test_a_call_that_is_taken_out_of_an_sdk_is_missed(every: tuple[Function, ...], tmp_path: Path) -> None:
    python = {name: text.replace("host(self._raw.fork)", "None") for name, text in python_sources().items()}
    assert except_for("python", missing_in_python(every, python)) == {"context.context.fork", "grammar.matcher.fork"}
    rust = {name: text.replace(".cached_tokens()", ".seq_len()") for name, text in rust_sources().items()}
    assert except_for("rust", missing_in_rust(every, rust)) == {"context.context.cached-tokens"}
    # Others decode, too: of other interfaces.
    for file, call, path in (
        ("tokenizer.rs", ".decode(", "tokenizer.tokenizer.decode"),
        ("matcher.rs", ".accept(", "grammar.matcher.accept"),
        ("generation/machine.rs", ".give_mask(", "generation.generator.give-mask"),
    ):
        rust = {name: text.replace(call, ".left_out(") if name.endswith(f"src/{file}") else text for name, text in rust_sources().items()}
        assert except_for("rust", missing_in_rust(every, rust)) == {path}
    rust = {
        name: text.replace(".feed_output(", ".feed(") if name.endswith("/decoding.rs") else text for name, text in rust_sources().items()
    }
    missing = {"reasoning.reasoning-decoder.feed-output", "tools.tool-decoder.feed-output"}
    assert except_for("rust", missing_in_rust(every, rust)) == missing
    sources = shutil.copytree(ROOT / "js/inferlet/src", tmp_path / "src")
    context = sources / "context.ts"
    context.write_text(context.read_text().replace("this.#handle.suspend();", "").replace("host.contextTake", "host.contextOpen"))
    done = subprocess.run(["node", ROOT / "tests/sdk_js/uses.mjs", sources], capture_output=True, check=True, text=True)
    missing = missing_in_javascript(every, json.loads(done.stdout)["used"])
    assert except_for("typescript", missing) == {"context.context.suspend", "context.context.take"}


def test_an_operation_that_is_taken_out_of_the_vectors_is_missed(every: tuple[Function, ...]) -> None:
    fewer = [vector | {"rows": [row for row in vector["rows"] if row[0]["op"] != "chat_finish"]} for vector in vectors()]
    assert missing_in_vectors(every, fewer, "python") == {"chat.decoder.finish"}


def test_the_types_of_the_bridge_are_what_it_exports() -> None:
    found = javascript()
    folder = ROOT / "rust/js-runtime/src/bridge"
    engine, own = (folder / "engine.rs").read_text(), (folder / "mod.rs").read_text()
    waits = (ROOT / "rust/js-runtime/src/event_loop.rs").read_text()
    assert exported(engine) == found["engine"]
    own_names = exported(own) + [f"Wait.{name}" for name in re.findall(r"^    fn ((?:un)?subscribe|block)[(<]", waits, re.MULTILINE)]
    files = (ROOT / "rust/js-runtime/src/files.rs").read_text()
    (methods,) = re.findall(r"^#\[rquickjs::methods.*?\]\nimpl OpenFile \{\n(.*?)\n\}", files, re.MULTILINE | re.DOTALL)
    own_names += [f"OpenFile.{gen_js_bridge.camel(name.replace('_', '-'))}" for name in re.findall(r"^    fn (\w+)", methods, re.MULTILINE)]
    assert sorted(own_names) == found["runtime"]
    # The tests of the SDK stand on a fake of the engine: it has every function that the engine has.
    assert {name for name in found["engine"] if "." not in name} <= set(found["faked"])


def test_an_export_that_is_taken_out_or_renamed_is_seen() -> None:
    engine = (ROOT / "rust/js-runtime/src/bridge/engine.rs").read_text()
    names = exported(engine)
    assert exported(engine.replace('    super::export!("models", models),\n', "")) == [name for name in names if name != "models"]
    renamed = exported(engine.replace("fn seq_len<", "fn length<"))
    assert set(names) - set(renamed) == {"ContextHandle.seqLen"}
    assert set(renamed) - set(names) == {"ContextHandle.length"}


def test_a_program_may_end_with_every_error_of_its_sdk() -> None:
    """The engine believes a program the codes of mistakes that the SDKs find by themselves."""
    stated = (ROOT / "rust/host/src/process/stated.rs").read_text(encoding="utf-8")
    believed = {re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower() for name in re.findall(r"Code::(\w+)\n", stated)}
    python = [
        path.read_text(encoding="utf-8") for path in sorted((ROOT / "python/inferlet").rglob("*.py")) if path.name != "_error_codes.py"
    ]
    raised = {name.lower().replace("_", "-") for text in python for name in re.findall(r"(?<!== )\bErrorCode\.([A-Z_]+)", text)}
    script = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "js/inferlet/src").glob("*.ts"))]
    raised |= {code for text in script for code in re.findall(r"(?:InferletError|super)\(\s*'([a-z-]+)'", text)}
    rust = [
        path.read_text(encoding="utf-8") for path in sorted((ROOT / "rust/inferlet/src").rglob("*.rs")) if path.name != "error_codes.rs"
    ]
    named = {name for text in rust for name in re.findall(r"errors::text\(\s*ErrorCode::(\w+)", text)}
    raised |= {re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower() for name in named}
    assert {"json-cut", "invalid-argument", "step-pending"} <= raised
    assert raised <= believed, raised - believed


def test_what_rust_gives_to_be_awaited_is_told_of_where_it_is_dropped() -> None:
    """A future is told of by the compiler; a handle that is awaited needs `must_use`, with the words of a future."""
    wit = "\n".join(path.read_text() for path in sorted((ROOT / "wit").rglob("*.wit")))
    handles = {name.replace("-", "_") for name in re.findall(r"([a-z-]+): func\([^)]*\) -> future-", wit)}
    assert {"receive", "receive_file", "pull"} <= handles
    found = []
    for path in sorted((ROOT / "rust/inferlet/src").rglob("*.rs")):
        text = path.read_text()
        for given in re.findall(r"pub use crate::bindings::([^;]+);", text):
            words = set(re.findall(r"\w+", given))
            assert not words & handles, f"{path.name} passes {words & handles} on, which the compiler says nothing of where it is dropped"
        for attributes, name in re.findall(
            r"((?:^ *#\[[^\n]*\]\n)*)^ *pub fn (\w+)\([^)]*\) -> Future(?:String|Blob|Unit)\b", text, re.MULTILINE
        ):
            assert '#[must_use = "futures do nothing unless' in attributes, f"{path.name}: {name}"
            found.append(name)
    assert {"receive", "receive_signal", "receive_file", "pull"} <= set(found)
