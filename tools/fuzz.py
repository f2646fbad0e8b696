"""Runs the fuzzers of `rust/fuzz` under libFuzzer: `python tools/fuzz.py [TARGET ...] [--seconds N]`.

A run begins with the kept inputs of `rust/fuzz/corpus` and with what earlier runs learnt, in
`build/fuzz/corpus/<target>`. With `--keep`, the fewest inputs that together reach all that these do become the kept
ones, beside those that have a name.

An input that fails is written to `build/fuzz/found/`. `python tools/fuzz.py TARGET --input FILE` runs it alone; with
`--name TEXT` it is kept by that name. Debian 12's g++ or clang builds libFuzzer itself.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools import fuzz_corpus
from tools.fuzz_corpus import LEARNT, Input

ROOT = Path(__file__).resolve().parent.parent
TARGETS = (
    "brle",
    "bus",
    "components",
    "grammars",
    "host_calls",
    "mcp",
    "packed",
    "pages",
    "prefix_tree",
    "programs",
    "protocol",
    "routes",
    "scheduler",
    "scripts",
    "snapshots",
    "templates",
    "tokenizers",
)
OPERATIONS = ("bus", "pages", "prefix_tree", "programs", "scheduler")
"""Those whose input is a list of operations, of two bytes each. None is kept: the tests change what bytes stand for."""
WRAPPER = ROOT / "tools" / "fuzz_rustc.sh"
PARSERS_WRAPPER = ROOT / "tools" / "fuzz_rustc_parsers.sh"
PARSERS = (
    "httparse",
    "hyper",
    "llguidance",
    "minijinja",
    "minijinja-contrib",
    "regex-syntax",
    "swc_ecma_parser",
    "swc_ts_fast_strip",
    "tokenizers",
    "tungstenite",
)
"""The dependencies that read what users supply: libFuzzer sees what it reaches in them too."""
COUNTERS = ("level=4", "inline-8bit-counters", "pc-table", "trace-compares")
"""What libFuzzer wants to see."""
WORK = ROOT / "build" / "fuzz"
MAX_INPUT_BYTES = 4096
MAX_OPERATIONS_BYTES = 512
SLOWEST_INPUT_S = 60
MEMORY_MB = 4096
SMALL = ("grammars", "templates", "tokenizers")
"""Those that may take no more memory than a grammar or a model folder may."""
SMALL_MEMORY_MB = 512


def build(target: str) -> Path:
    """Builds one fuzzer with counters in the code of the workspace and in the parsers, and returns its path."""
    environment = os.environ | {
        "RUSTC_WORKSPACE_WRAPPER": str(WRAPPER),
        "RUSTC_WRAPPER": str(PARSERS_WRAPPER),
        "PIE_FUZZ_PARSERS": " ".join(name.replace("-", "_") for name in PARSERS),
        "PIE_FUZZ_COUNTERS": " ".join(["-Cpasses=sancov-module", *(f"-Cllvm-args=-sanitizer-coverage-{kind}" for kind in COUNTERS)]),
    }
    command = ["cargo", "build", "--release", "-p", "pie-fuzz", "--features", "libfuzzer", "--bin", f"fuzz_{target}"]
    command += ["--message-format", "json-render-diagnostics"]
    # A setting of their own gives them a place of their own, so that no other build takes those with counters.
    command += [part for name in PARSERS for part in ("--config", f"profile.release.package.{name}.codegen-units=1")]
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    messages = map(json.loads, done.stdout.splitlines())
    return Path(next(message["executable"] for message in messages if message.get("executable")))


def options(target: str, **more: object) -> list[str]:
    """The options of libFuzzer for a target."""
    chosen: dict[str, object] = {
        "max_len": MAX_OPERATIONS_BYTES if target in OPERATIONS else MAX_INPUT_BYTES,
        "timeout": SLOWEST_INPUT_S,
        "rss_limit_mb": SMALL_MEMORY_MB if target in SMALL else MEMORY_MB,
        "artifact_prefix": f"{WORK / 'found' / target}-",
    }
    return [f"-{name}={value}" for name, value in (chosen | more).items()]


def learnt_folder(target: str) -> Path:
    """Where a target leaves what it learns."""
    folder = WORK / "corpus" / target
    folder.mkdir(parents=True, exist_ok=True)
    (WORK / "found").mkdir(exist_ok=True)
    return folder


def fresh(folder: Path) -> Path:
    """A folder that is not there yet."""
    shutil.rmtree(folder, ignore_errors=True)
    return folder


def run(target: str, program: Path, seconds: int) -> bool:
    """Fuzzes for a while; whether nothing was found."""
    kept = fresh(WORK / "kept" / target)
    fuzz_corpus.unpack(fuzz_corpus.read(target), kept)
    # Few operations show little, so inputs are long from the beginning.
    more = {"len_control": 0} if target in OPERATIONS else {}
    chosen = options(target, max_total_time=seconds, print_final_stats=1, **more)
    return subprocess.run([program, learnt_folder(target), kept, *chosen], check=False).returncode == 0


def keep(target: str, program: Path) -> None:
    """Chooses the fewest inputs that reach what all do, and keeps them beside those that have a name."""
    inputs = fuzz_corpus.read(target)
    named = [one for one in inputs if one.name != LEARNT]
    kept, chosen = fresh(WORK / "kept" / target), fresh(WORK / "chosen" / target)
    fuzz_corpus.unpack(inputs, kept)
    # What is in there already is taken as reached.
    fuzz_corpus.unpack(named, chosen)
    # By the places that are reached, not by how often they are.
    merging = options(target, set_cover_merge=1, use_counters=0)
    subprocess.run([program, chosen, kept, learnt_folder(target), *merging], check=True)
    learnt = [Input(LEARNT, path.read_bytes()) for path in chosen.iterdir()]
    fuzz_corpus.write(target, [*named, *learnt])
    print(f"{target}: {len(fuzz_corpus.read(target))} inputs are kept in {fuzz_corpus.path_of(target)}", flush=True)


def main() -> int:
    """Builds and runs the targets, one after the other; 1 when one found something."""
    parser = argparse.ArgumentParser(description="Runs the fuzzers.")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)}; all of them when none is given")
    parser.add_argument("--seconds", type=int, default=60, help="how long each one runs; 0: not at all (default: 60)")
    parser.add_argument("--keep", action="store_true", help="then choose anew, from all that was learnt, which inputs are kept")
    parser.add_argument("--input", type=Path, metavar="FILE", help="run this input alone")
    parser.add_argument("--name", help="keep that input by this name")
    arguments = parser.parse_args()
    targets = arguments.targets or TARGETS
    if unknown := set(targets) - set(TARGETS):
        parser.error(f"no target {', '.join(sorted(unknown))}; there are {', '.join(TARGETS)}")
    if (arguments.input or arguments.name) and len(targets) != 1:
        parser.error("an input is one of one target")
    if arguments.name:
        if not arguments.input or ": " in arguments.name or arguments.name == LEARNT:
            parser.error("a name is one of an input, without ': ', and not that of all that is learnt")
        fuzz_corpus.write(targets[0], [*fuzz_corpus.read(targets[0]), Input(arguments.name, arguments.input.read_bytes())])
    failed = []
    for target in targets:
        program = build(target)
        if arguments.input:
            return subprocess.run([program, arguments.input], check=False).returncode
        if arguments.seconds:
            print(f"{target}: {arguments.seconds} s", flush=True)
            if not run(target, program, arguments.seconds):
                failed.append(target)
        if arguments.keep and target not in OPERATIONS:
            keep(target, program)
    if failed:
        print(f"found something: {', '.join(failed)}; see {WORK / 'found'}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
