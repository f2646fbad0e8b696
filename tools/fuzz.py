"""Runs the fuzzers of `rust/fuzz` under libFuzzer: `python tools/fuzz.py [TARGET ...] [--seconds N]`.

What was learnt stays in `build/fuzz/corpus/<target>`, so that the next run goes on from there. An input that fails is written to
`build/fuzz/found/`; `python tools/fuzz.py TARGET --input FILE` runs it alone. Debian 12's g++ or clang builds libFuzzer itself.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGETS = (
    "brle",
    "components",
    "host_calls",
    "packed",
    "pages",
    "prefix_tree",
    "programs",
    "protocol",
    "scheduler",
    "scripts",
    "templates",
    "tokenizers",
)
OPERATIONS = ("pages", "prefix_tree", "programs", "scheduler")
"""Those whose input is a list of operations, of two bytes each."""
WRAPPER = ROOT / "tools" / "fuzz_rustc.sh"
WORK = ROOT / "build" / "fuzz"
MAX_INPUT_BYTES = 4096
MAX_OPERATIONS_BYTES = 512
SLOWEST_INPUT_S = 60
MEMORY_MB = 4096
SMALL = ("templates", "tokenizers")
"""Those that may take no more memory than a model folder may."""
SMALL_MEMORY_MB = 512


def build(target: str) -> Path:
    """Builds one fuzzer with counters in the code of the workspace, and answers its path."""
    environment = os.environ | {"RUSTC_WORKSPACE_WRAPPER": str(WRAPPER)}
    command = ["cargo", "build", "--release", "-p", "pie-fuzz", "--features", "libfuzzer", "--bin", f"fuzz_{target}"]
    command += ["--message-format", "json-render-diagnostics"]
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    messages = map(json.loads, done.stdout.splitlines())
    return Path(next(message["executable"] for message in messages if message.get("executable")))


def command(target: str, program: Path, seconds: int, one_input: Path | None) -> list[str]:
    """The command line of a run."""
    if one_input is not None:
        return [str(program), str(one_input)]
    corpus = WORK / "corpus" / target
    corpus.mkdir(parents=True, exist_ok=True)
    (WORK / "found").mkdir(exist_ok=True)
    options = {
        "max_total_time": seconds,
        "max_len": MAX_OPERATIONS_BYTES if target in OPERATIONS else MAX_INPUT_BYTES,
        "timeout": SLOWEST_INPUT_S,
        "rss_limit_mb": SMALL_MEMORY_MB if target in SMALL else MEMORY_MB,
        "print_final_stats": 1,
        "artifact_prefix": f"{WORK / 'found' / target}-",
    }
    if target in OPERATIONS:
        # Few operations show little, so inputs are long from the beginning.
        options["len_control"] = 0
    return [str(program), str(corpus), *(f"-{name}={value}" for name, value in options.items())]


def main() -> int:
    """Builds and runs the targets, one after the other; 1 when one found something."""
    parser = argparse.ArgumentParser(description="Runs the fuzzers.")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)}; all of them when none is given")
    parser.add_argument("--seconds", type=int, default=60, help="how long each one runs (default: 60)")
    parser.add_argument("--input", type=Path, metavar="FILE", help="run this input alone")
    arguments = parser.parse_args()
    targets = arguments.targets or TARGETS
    if unknown := set(targets) - set(TARGETS):
        parser.error(f"no target {', '.join(sorted(unknown))}; there are {', '.join(TARGETS)}")
    failed = []
    for target in targets:
        program = build(target)
        print(f"{target}: {arguments.seconds} s", flush=True)
        if subprocess.run(command(target, program, arguments.seconds, arguments.input), check=False).returncode != 0:
            failed.append(target)
    if failed:
        print(f"found something: {', '.join(failed)}; see {WORK / 'found'}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
