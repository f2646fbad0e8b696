"""Layers inside crates: files take names from those below, and never in a circle."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.rust_imports import Imports, circles, imports, upward

ROOT = Path(__file__).resolve().parents[2]

# Files and folders (with a slash), the ground first. A file of a folder may have a layer of its own.
CORE_LAYERS = [
    {"ids.rs", "slab.rs", "hash.rs", "faults.rs", "errors/"},
    {"brle.rs", "budget.rs", "settings.rs", "command.rs", "bus/", "market/"},
    {"masks.rs"},
    {"sampling/"},
    {"batch/"},
    {"config.rs"},
    {"sched/", "generation/", "kv/"},
    {"context/"},
    # What the engine is made of, below what it does: forward passes and snapshots as values, then its three parts.
    {"engine/histogram.rs", "engine/costs.rs", "engine/forward.rs", "engine/kept.rs", "engine/adapters.rs"},
    {"engine/command_queue.rs", "engine/late_list.rs"},
    {"engine/requests.rs", "engine/idle.rs", "engine/totals.rs"},
    {"engine/owned.rs", "engine/waiting.rs", "engine/device.rs"},
    {"engine/state.rs", "engine/planner.rs", "engine/judging.rs"},
    {"engine/"},
    {"dummy/"},
    {"fuzzing.rs", "fuzzing/"},
    {"lib.rs"},
]

INFERLET_LAYERS = [
    {"bindings.rs", "error_codes.rs", "finite.rs", "stdout.rs"},
    {"errors.rs", "args.rs", "handle.rs", "probe.rs", "spec.rs"},
    {"sample.rs", "kept.rs", "bridge.rs", "brle.rs", "tokenizer.rs", "matcher.rs", "output.rs", "task/", "typed.rs"},
    {"model.rs", "session.rs", "messaging.rs", "runtime.rs", "files.rs", "http.rs", "http_server.rs", "mcp.rs", "shared.rs"},
    {"decoding.rs", "absent.rs"},
    {"adapter.rs", "chat.rs", "reasoning.rs", "tools.rs", "constrain.rs", "grammar.rs", "pages.rs", "inference.rs", "scheduling.rs"},
    {"forward.rs", "generation/"},
    {"context.rs"},
    {"entry.rs"},
    {"prelude.rs", "lib.rs"},
]

HOST_LAYERS = [
    {"sync.rs", "identity.rs", "errors.rs", "event.rs", "counted.rs", "json_depth.rs", "naming.rs", "temporary.rs"},
    {"limits.rs", "budget.rs", "numbering.rs", "shared_places.rs", "stepped_charge.rs"},
    {"futures.rs"},
    {"bus/", "scratch/config.rs", "snapshots/config.rs", "network/"},
    {"mcp/"},
    {"config.rs", "http_in/"},
    {"sandbox/", "snapshots/"},
    {"model/", "program/"},
    {"scratch/"},
    {"process/"},
    {"interface/"},
    {"host/"},
    {"lib.rs"},
]

SERVER_LAYERS = [
    {"sync.rs", "clock.rs", "blocking.rs", "log_writer.rs", "plain.rs", "names.rs", "version.rs", "trimming.rs"},
    {"faults.rs", "pacing.rs", "threads.rs"},
    {"auth/", "audit.rs"},
    {"config.rs"},
    {"address_share.rs"},
    {"client_places.rs", "protocol/", "wire/"},
    {"registry/", "processes.rs", "processes/", "uploads.rs", "http_in/framing.rs", "http_in/places.rs", "http_in/route.rs"},
    {"http_in/instances.rs"},
    {"state.rs"},
    {"directory.rs", "handshake.rs", "http.rs", "connection/attachments.rs", "connection/links.rs", "connection/writer.rs"},
    {"http_in/"},
    {"requests.rs", "requests/"},
    {"connection/"},
    {"listener.rs"},
    {"server.rs"},
    {"lib.rs"},
]

TEXT_LAYERS = [
    {"error.rs", "limits.rs", "utf8.rs", "caught.rs"},
    {"files.rs", "stop_texts.rs"},
    {"special.rs"},
    {"tokenizer/", "template/"},
    {"grammar/"},
    # What the model says, as machines see it, below the chat that knows which one its template wants.
    {"speech/lexer.rs", "speech/machine.rs", "speech/channels.rs", "tools/list.rs", "tools/mask.rs", "tools/body.rs", "chat/role.rs"},
    {
        "tools/event.rs",
        "tools/choice.rs",
        "tools/format.rs",
        "tools/calls.rs",
        "reasoning/event.rs",
        "reasoning/format.rs",
        "reasoning/thoughts.rs",
    },
    {"chat/scene.rs", "chat_event.rs"},
    {"tools/finding.rs"},
    {"tools/frame.rs"},
    {"chat/"},
    {"speech/", "tools/", "reasoning/"},
    {"shown.rs", "stop_watch.rs"},
    {"decoder.rs"},
    {"lib.rs"},
]

CLIENT_LAYERS = [
    {"error_codes.rs", "frame_gate.rs", "sync.rs"},
    {"error.rs"},
    {"event.rs", "info.rs", "wire.rs", "private_key.rs"},
    {"mcp.rs", "stream.rs"},
    {"shared.rs"},
    {"signing.rs"},
    {"opening.rs"},
    {"connection.rs"},
    {"process.rs"},
    {"client.rs"},
    {"lib.rs"},
]

KERNELS_LAYERS = [
    {"error.rs", "memory.rs", "float_env.rs", "noise.rs"},
    {"simd/"},
    {"element.rs", "math.rs"},
    {"arena.rs", "arena/", "kv.rs", "pool.rs"},
    {"ops/"},
    {"plan/op.rs", "plan/options.rs"},
    {"plan/buffer.rs", "plan/weights.rs", "plan/adapters.rs"},
    {"plan/checks.rs", "plan/step.rs"},
    {"plan/"},
    {"ffi.rs"},
    {"lib.rs"},
]

# Of one floor, and strangers: the scheduler never sees a page, and pages never see a request.
STRANGERS = ("sched/", "generation/", "kv/")

# bindgen has to name the types behind the handles of an interface, and each interface uses what it generates.
GENERATED = "interface/bindings.rs"


def of(crate: str) -> Imports:
    arrows = imports(ROOT / crate)
    return {file: set() if file == GENERATED else targets for file, targets in arrows.items()}


CRATES = ("channel", "client", "core", "host", "inferlet", "js-runtime", "kernels", "python", "server", "text")


@pytest.mark.parametrize("crate", [f"rust/{crate}/src" for crate in CRATES])
def test_no_files_take_names_from_each_other_in_a_circle(crate: str) -> None:
    assert circles(of(crate)) == []


@pytest.mark.parametrize(
    ("crate", "layers", "n_files"),
    [
        ("rust/client/src", CLIENT_LAYERS, 10),
        ("rust/core/src", CORE_LAYERS, 80),
        ("rust/host/src", HOST_LAYERS, 40),
        ("rust/inferlet/src", INFERLET_LAYERS, 20),
        ("rust/kernels/src", KERNELS_LAYERS, 25),
        ("rust/server/src", SERVER_LAYERS, 40),
        ("rust/text/src", TEXT_LAYERS, 25),
    ],
)
def test_files_take_names_from_lower_layers_only(crate: str, layers: list[set[str]], n_files: int) -> None:
    arrows = of(crate)
    assert len(arrows) > n_files
    assert upward(arrows, layers) == []


def test_pages_requests_and_generations_do_not_know_each_other() -> None:
    arrows = of("rust/core/src")
    met = [
        f"{file} -> {target}"
        for file, targets in sorted(arrows.items())
        for target in sorted(targets)
        for here in STRANGERS
        for there in STRANGERS
        if here != there and file.startswith(here) and target.startswith(there)
    ]
    assert met == []
    assert all(any(file.startswith(folder) for file in arrows) for folder in STRANGERS)


def test_the_root_of_the_engine_only_lists_and_wires() -> None:
    arrows = of("rust/core/src")
    assert arrows["engine/mod.rs"] == set()
    assert not any("engine/mod.rs" in targets for targets in arrows.values())


# The whole state of a process in the hands of an interface: methods of its own on it, a pattern of it, and parts of it
# through the store. Views alone name its parts: those of the macro, and the two of wasmtime's own interfaces.
TAKEN_APART = re.compile(r"\bimpl(?:<[^>]*>)? (?:[\w:<>' ]+ for )?ProcessState\b|\bProcessState \{|\bdata(?:_mut)?\(\)\s*\.")
NAMES_PARTS = re.compile(r"\bstate\.\w+")
VIEWS = {"view.rs", "clocks.rs", "poll.rs"}


def test_an_interface_sees_the_view_that_it_needs_and_no_more() -> None:
    found = []
    for path in sorted((ROOT / "rust/host/src/interface").glob("*.rs")):
        text = path.read_text(encoding="utf-8").partition("#[cfg(test)]\nmod ")[0]
        code = re.sub(r"//[^\n]*", "", text)
        found += [f"{path.name}: {hit[0]}" for hit in TAKEN_APART.finditer(code)]
        if path.name not in VIEWS and "state: &mut ProcessState" in code:
            found += [f"{path.name}: {hit[0]}" for hit in NAMES_PARTS.finditer(code)]
    assert found == []


@pytest.mark.parametrize(
    "code",
    [
        "impl ProcessState {",
        "impl files::Host for ProcessState {",
        "let ProcessState { table, files, .. } = state;",
        "store.data_mut().network.release(rep)",
        "store.data().count_arrival()",
    ],
)
def test_a_state_that_is_taken_apart_is_seen(code: str) -> None:
    assert TAKEN_APART.search(code)
    for plain in (
        "fn f(linker: &mut Linker<ProcessState>) {",
        "Files::of(store.data_mut()).check()",
        "for_wasmtime(state: &mut ProcessState)",
    ):
        assert not TAKEN_APART.search(plain)


def crate_of(folder: Path, files: dict[str, str]) -> Imports:
    for name, code in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(code)
    return imports(folder)


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("use crate::low::Low;", {"low.rs"}),
        ("use crate::{low::{self, Low}, far};", {"low.rs", "far/mod.rs"}),
        ("use super::low;", {"low.rs"}),
        ("fn f() -> crate::low::Low { crate::far::deep::made() }", {"low.rs", "far/deep.rs"}),
        ("use crate::far; fn f() { far::deep::made() }", {"far/mod.rs", "far/deep.rs"}),
        # Re-exported under a name of its own, from the root and from a folder.
        ("use crate::Low;", {"low.rs"}),
        ("use crate::far::Renamed as R;", {"far/deep.rs"}),
        ("use crate::far::of_mod;", {"far/mod.rs"}),
        ("mod inner { use super::super::low::Low; }", {"low.rs"}),
        ("pub(in crate::low) fn f() {}", set()),
        ("use std::sync::Arc; use wasmtime::Engine;", set()),
        ('// use crate::low::Low;\n/* crate::low::Low */ const TEXT: &str = "crate::low::Low";', set()),
        ("#[cfg(test)]\nmod tests { use crate::low::Low; fn f() { if true { } } }", set()),
        ("#[cfg(test)]\nuse crate::low::Low;\nuse crate::far::deep;", {"far/deep.rs"}),
    ],
)
def test_the_reader_follows_names_to_where_they_are_defined(tmp_path: Path, code: str, names: set[str]) -> None:
    files = {
        "lib.rs": "mod far; mod high; mod low; pub use low::Low;",
        "low.rs": "pub struct Low;",
        "far/mod.rs": "mod deep; pub(crate) use deep::Deep as Renamed; pub fn of_mod() {}",
        "far/deep.rs": "pub struct Deep; pub fn made() -> Deep { Deep }",
        "high.rs": code,
    }
    arrows = crate_of(tmp_path, files)
    assert arrows["high.rs"] == names
    # A name that is only re-exported is not used.
    assert arrows["far/mod.rs"] == set()


def test_a_planted_circle_is_found(tmp_path: Path) -> None:
    files = {
        "lib.rs": "mod a; mod b; mod c; mod d;",
        "a.rs": "use crate::b::B; pub struct A;",
        "b.rs": "pub struct B; fn f() { super::c::made(); }",
        "c.rs": "use super::{a::A, d}; pub fn made() {}",
        "d.rs": "use crate::e;",
    }
    arrows = crate_of(tmp_path, files)
    assert circles(arrows) == [["a.rs", "b.rs", "c.rs"]]


def test_an_arrow_to_a_higher_layer_is_found(tmp_path: Path) -> None:
    files = {
        "lib.rs": "mod high; mod low;",
        "low/mod.rs": "mod deep;",
        "low/deep.rs": "use crate::high::High;",
        "high.rs": "pub struct High;",
    }
    arrows = crate_of(tmp_path, files)
    assert upward(arrows, [{"low/"}, {"high.rs"}, {"lib.rs"}]) == ["low/deep.rs -> high.rs"]
    assert upward(arrows, [{"low/deep.rs"}, {"high.rs"}, {"lib.rs"}]) == ["low/deep.rs -> high.rs", "low/mod.rs has no layer"]
    assert upward(arrows, [{"high.rs"}, {"low/"}, {"lib.rs"}]) == []
