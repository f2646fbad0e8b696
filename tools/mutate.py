"""Tries whether tests notice changes of the code: `python -m tools.mutate TARGET [--count N] [--seed S] [--files ...]`.

Draws N changes of the target's code, makes one at a time in a copy of the tree, and runs the command that should fail:
a change is *caught* by the first of the target's commands that does, or it *survives*, or it *does not build*. A change
that survives is no change (say why), or a test is missing. The same seed draws the same changes of the same files.

`--list` prints the changes and makes none. `--only 3,7` makes those again. `--tagged Forward Output` runs those tests
alone that name rows of the surface in these areas (`tools/tagged.py`), `--tagged all` those that name any. `--log FILE`
writes the changes with what caught them as Markdown. The copy stays in `build/mutate`, so that the next run builds
little.

`--planted [NAME ...]` makes the faults of `tools/planted.toml` in the place of drawn ones, each with the tests that
must fail: those of TARGET, or all.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tools import surface, tagged
from tools.mutation_sites import Site, sites

ROOT = Path(__file__).resolve().parent.parent
COPY = ROOT / "build" / "mutate"
PLANTED = ROOT / "tools" / "planted.toml"
LINKED = (".venv", "js/inferlet/node_modules", "js/client/node_modules", "python/pie/_engine.abi3.so")
"""What is not under version control and does not change, though tests need it."""
CARRIED = (
    "js/client/dist",
    "python/pie/runtimes",
    "python/pie/bakery/_sdk",
    "build/bindings",
    "build/programs",
    "build/python-runtime",
    "build/js-runtime",
)
"""What was built of the tree: a change may build it anew."""
SLOW = 600.0
"""Seconds after which a command counts as failed: the change made something endless."""

# Little is optimised and much is kept, so that a change is built in seconds.
CARGO = "cargo test --config profile.dev.opt-level=1 --config profile.dev.debug=0 --quiet"
# What links wasmtime is built as ever, but for the crate that is changed.
RELEASE = "cargo test --release --config profile.release.incremental=true --quiet"
KERNELS = f"{RELEASE} --config profile.release.package.pie-kernels.codegen-units=16"
PYTEST = ".venv/bin/python -m pytest -q -x -p no:cacheprovider"
# The engine of the copy in the place of the link to the tree's own.
ENGINE = (
    f"{KERNELS.replace('cargo test', 'cargo build')} --config profile.release.package.pie-core.codegen-units=16 -p pie-python && "
    'rm -f python/pie/_engine.abi3.so && cp "${CARGO_TARGET_DIR:-target}/release/lib_engine.so" python/pie/_engine.abi3.so'
)
# They need no engine.
UNITS = " ".join(
    f"tests/sdk_python/test_sdk_{name}.py" for name in ("values", "defaults", "passes", "steering", "talking", "typed", "wait")
)


# What passes, generations and grammars do in an engine.
OF_HOST = " ".join(
    f"tests/e2e/test_{name}.py"
    for name in (
        "passes",
        "grammars",
        "charged_passes",
        "constrained_steps",
        "replaced_grammars",
        "bad_passes",
        "turns_meanwhile",
        "draft_models",
    )
)


@dataclass(frozen=True)
class Target:
    """Code, and the commands of which one should fail where it is changed."""

    files: tuple[str, ...]
    tests: tuple[str, ...]
    build: str = ""
    """What must end well before the tests tell anything."""
    env: dict[str, str] = field(default_factory=dict)
    tagged: tuple[str, ...] = ()
    """Commands with a place for the tests that name rows: see `tools/tagged.py`."""
    tagged_build: str = ""
    """What must end well before those, in the place of `build`."""


def _crate(name: str, *tests: str, build: str = "", tagged: tuple[str, ...] = ()) -> Target:
    build = build or f"{CARGO} -p pie-{name} --no-run"
    return Target((f"rust/{name}/src/**/*.rs",), tests or (f"{CARGO} -p pie-{name}",), build, tagged=tagged)


def _of_crate(name: str) -> tuple[str, ...]:
    """Its own tests first: what they catch needs none that are built apart."""
    return tuple(f"{CARGO} -p pie-{name} {{cargo rust/{name}/{folder}}}" for folder in ("src", "tests"))


TARGETS = {
    "core": _crate("core", tagged=_of_crate("core")),
    "channel": _crate("channel"),
    "text": _crate("text", tagged=_of_crate("text")),
    # Bits are those of every instruction set where the compiler optimises as it does for users.
    "kernels": Target(
        ("rust/kernels/src/**/*.rs",),
        (f"{KERNELS} -p pie-kernels", f"{ENGINE} && {PYTEST} tests/kernels"),
        f"{KERNELS} -p pie-kernels --no-run",
        env={"PYTHONPATH": "python"},
    ),
    "server": Target(("rust/server/src/**/*.rs",), (f"{RELEASE} -p pie-server",), f"{RELEASE} -p pie-server --no-run"),
    # What programs see of it takes an engine that has it.
    "host": Target(
        ("rust/host/src/**/*.rs",),
        (f"{RELEASE} -p pie-host",),
        f"{RELEASE} -p pie-host --no-run",
        env={"PYTHONPATH": "python"},
        tagged=(f"{PYTEST} {{pytest tests/vectors@python tests/vectors@rust {OF_HOST}}}",),
        tagged_build=ENGINE,
    ),
    "inferlet": Target(
        ("rust/inferlet/src/**/*.rs",),
        (f"{CARGO} -p inferlet", f"{PYTEST} tests/vectors -k rust"),
        ".venv/bin/python tools/build_guests.py",
        tagged=(f"{CARGO} -p inferlet {{cargo rust/inferlet}}", f"{PYTEST} {{pytest tests/vectors@rust tests/e2e/test_passes.py}}"),
        tagged_build=".venv/bin/python tools/build_guests.py",
    ),
    # What needs no engine comes first: a runtime is built in seconds, and the engine compiles it in more.
    "python-sdk": Target(
        ("python/inferlet/*.py",),
        (
            f"{PYTEST} {UNITS}",
            f".venv/bin/python tools/build_python_runtime.py && {PYTEST} tests/sdk_python tests/vectors -k 'sdk or python'",
        ),
        env={"PYTHONPATH": "python"},
        tagged=(
            f"{PYTEST} {{pytest {UNITS}}}",
            f".venv/bin/python tools/build_python_runtime.py && {PYTEST} "
            "{pytest tests/vectors@python tests/sdk_python tests/e2e/test_grammars.py}",
        ),
    ),
    "js-sdk": Target(
        ("js/inferlet/src/**/*.ts",),
        ("cd js/inferlet && npm test --silent", f".venv/bin/python tools/build_js_runtime.py && {PYTEST} tests/vectors -k typescript"),
        "cd js/inferlet && npm run --silent build",
        env={"PYTHONPATH": "python"},
        tagged=(
            "cd js/inferlet && node --import ../../tests/sdk_js/setup.mjs {node} --test ../../tests/sdk_js/",
            f".venv/bin/python tools/build_js_runtime.py && {PYTEST} {{pytest tests/vectors@javascript tests/e2e/test_grammars.py}}",
        ),
    ),
    "js-runtime": Target(
        ("rust/js-runtime/src/**/*.rs", "rust/js-runtime/build.rs"),
        (f"{PYTEST} tests/sdk_js", f"{PYTEST} tests/vectors tests/e2e/test_session.py -k typescript"),
        ".venv/bin/python tools/build_js_runtime.py",
        env={"PYTHONPATH": "python"},
    ),
    "runtime-builder": Target(
        ("rust/runtime-builder/src/**/*.rs",),
        (f".venv/bin/python tools/prefault.py --force && {PYTEST} tests/host/test_prefault.py tests/sdk_js",),
        ".venv/bin/python tools/build_js_runtime.py --force",
        env={"PYTHONPATH": "python"},
    ),
    # The bindings of the engine, as Python sees them.
    "python": Target(
        ("rust/python/src/**/*.rs",),
        (f"{PYTEST} tests/host tests/backends/test_batch.py", f"{PYTEST} tests/config tests/e2e/test_inprocess.py"),
        ENGINE,
        env={"PYTHONPATH": "python"},
    ),
    # What the macros write is seen in programs.
    "inferlet-macros": Target(
        ("rust/inferlet-macros/src/**/*.rs",),
        (
            f"{CARGO} -p inferlet-macros",
            f"{CARGO} -p inferlet",
            f".venv/bin/python tools/build_guests.py && {PYTEST} tests/vectors tests/e2e/test_rust_mistakes.py -k rust",
        ),
        f"{CARGO} -p inferlet-macros --no-run",
        env={"PYTHONPATH": "python"},
    ),
    "client": _crate("client"),
    "js-client": Target(("js/client/src/*.ts",), ("cd js/client && npm test --silent",), "cd js/client && npm run --silent build"),
    "pie": Target(("python/pie/**/*.py",), (f"{PYTEST} tests/backends tests/config tests/client",), env={"PYTHONPATH": "python"}),
}


@dataclass(frozen=True)
class Fault:
    """A fault that tests must catch, by its name."""

    name: str
    target: str
    file: Path
    old: str
    """What stands in the file, once."""
    new: str
    tests: tuple[str, ...]
    """The commands of which one must fail."""
    builds: str = ""
    """What must end well before they tell anything, in the place of the target's own."""

    def site(self, root: Path) -> Site:
        """The change. Raises SystemExit where its place is not there, or not once: the code has changed."""
        text = (root / self.file).read_text(encoding="utf-8") if (root / self.file).is_file() else ""
        if (n := text.count(self.old)) != 1:
            raise SystemExit(f"the fault {self.name!r} has {n} places in {self.file}, not one; mend tools/planted.toml")
        start = text.index(self.old)
        return Site(self.file, "planted", start, start + len(self.old), text.count("\n", 0, start) + 1, self.old, self.new)

    def held_to(self) -> Target:
        """Its target with its own tests alone."""
        target = TARGETS[self.target]
        return replace(target, files=(), tests=self.tests, build=self.builds or target.build)


@dataclass(frozen=True)
class Outcome:
    """What became of one change."""

    site: Site
    word: str
    """`caught`, `survived` or `does not build`."""
    by: str = ""
    """The test that failed first."""
    seconds: float = 0.0


class Copy:
    """A copy of the tree, in which one file at a time is changed."""

    def __init__(self, source: Path, folder: Path) -> None:
        self.folder = folder
        listed = subprocess.run(["git", "ls-files", "-z", "-c", "-o", "--exclude-standard"], cwd=source, check=True, capture_output=True)
        names = {name for name in listed.stdout.decode().split("\0") if name and (source / name).is_file()}
        for name in names:
            _copy_changed(source / name, folder / name)
        for path in [path for path in folder.rglob("*") if path.suffix in {".rs", ".py", ".ts", ".mjs", ".json"} and path.is_file()]:
            # What was deleted in the tree would otherwise stay.
            if str(path.relative_to(folder)) not in names and not _is_ignored(path.relative_to(folder)):
                path.unlink()
        for name in LINKED:
            link = folder / name
            if (source / name).exists() and not link.exists():
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(source / name)
        for name in CARRIED:
            if (source / name).exists():
                for path in [path for path in (source / name).rglob("*") if path.is_file()]:
                    _copy_changed(path, folder / path.relative_to(source))

    def run(self, command: str, env: dict[str, str], limit: float = SLOW) -> tuple[bool, str]:
        """Whether a command ended well within its time, and the end of what it printed."""
        child = subprocess.Popen(
            ["bash", "-c", command],
            cwd=self.folder,
            env=os.environ | {name: str(self.folder / value) if name == "PYTHONPATH" else value for name, value in env.items()},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            printed, _ = child.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate()
            return False, f"not done after {limit:.0f} s"
        return child.returncode == 0, printed

    def attempt(self, target: Target, site: Site, limit: float = SLOW) -> Outcome:
        """Makes the change, sees who notices, and takes it back."""
        path = self.folder / site.path
        text, began = path.read_text(encoding="utf-8"), time.monotonic()
        path.write_text(site.apply(text), encoding="utf-8")
        try:
            if target.build and not self.run(target.build, target.env, limit)[0]:
                return Outcome(site, "does not build", seconds=time.monotonic() - began)
            for command in target.tests:
                well, printed = self.run(command, target.env, limit)
                if not well:
                    return Outcome(site, "caught", first_failure(printed), time.monotonic() - began)
            return Outcome(site, "survived", seconds=time.monotonic() - began)
        finally:
            path.write_text(text, encoding="utf-8")


def _copy_changed(source: Path, copy: Path) -> None:
    """Writes a file that differs, so that what is alike is not built again."""
    content = source.read_bytes()
    if copy.is_file() and copy.read_bytes() == content:
        return
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_bytes(content)
    copy.chmod(source.stat().st_mode)


def _is_ignored(path: Path) -> bool:
    return any(part in {"node_modules", "target", "build", "dist", ".venv", "runtimes", "_sdk"} for part in path.parts)


def first_failure(printed: str) -> str:
    """The name of the test that failed first, from what cargo, pytest or node printed."""
    lines = printed.splitlines()
    for line in lines:
        words = line.split()
        if line.startswith("FAILED ") or (line.startswith("ERROR ") and "/" in words[1]):
            return words[1]
        if line.startswith("---- ") and line.endswith(" stdout ----"):
            return words[1]
        if line.lstrip().startswith(("not ok ", "✖ ")):
            return line.strip()[:120]
    return lines[-1].strip()[:120] if lines else "ended with an error and printed nothing"


def read_planted(path: Path = PLANTED) -> list[Fault]:
    """The faults of the table, in its order. `{cargo}` and its like are the commands of this file."""
    commands = {"cargo": CARGO, "release": RELEASE, "kernels": KERNELS, "pytest": PYTEST, "engine": ENGINE}

    def filled(command: str) -> str:
        for name, text in commands.items():
            command = command.replace(f"{{{name}}}", text)
        return command

    with path.open("rb") as file:
        entries = tomllib.load(file)["fault"]
    return [
        Fault(
            entry["name"],
            entry["target"],
            Path(entry["file"]),
            entry["old"],
            entry["new"],
            tuple(filled(command) for command in entry["tests"]),
            filled(entry.get("builds", "")),
        )
        for entry in entries
    ]


def draw(root: Path, patterns: Sequence[str], count: int, seed: int) -> list[Site]:
    """Changes of the files, no two at one place: each kind is as likely as the others, as far as there are any."""
    found = {path for pattern in patterns for path in root.glob(pattern) if path.is_file() and "test" not in path.name}
    # Types alone do nothing.
    paths = sorted(path for path in found if not path.name.endswith(".d.ts"))
    kinds: dict[str, list[Site]] = {}
    for path in paths:
        name = path.relative_to(root)
        for site in sites(name, path.read_text(encoding="utf-8")):
            if "tests" not in name.parts:
                kinds.setdefault(site.kind, []).append(site)
    chance = random.Random(seed)
    drawn: list[Site] = []
    while len(drawn) < count and any(kinds.values()):
        pool = kinds[chance.choice([kind for kind in sorted(kinds) if kinds[kind]])]
        site = pool.pop(chance.randrange(len(pool)))
        if all(site.path != other.path or site.line != other.line for other in drawn):
            drawn.append(site)
    return drawn


def of_tagged(root: Path, target: Target, areas: Sequence[str]) -> tuple[Target, dict[str, int]]:
    """The target with those tests alone that name rows of some areas, and how many tests each command has at least.

    Raises SystemExit where there is none.
    """
    try:
        rows = surface.read_rows((root / "tests/surface/rows.tsv").read_text(encoding="utf-8"))
        claims = tagged.of_areas(rows, surface.claims(root), areas)
        filled = [found for command in target.tagged if (found := tagged.fill(root, command, claims))]
    except surface.SurfaceError as error:
        raise SystemExit(str(error)) from None
    if not filled:
        raise SystemExit(f"no test of this target names a row of {', '.join(areas)}")
    tests = tuple(found.command for found in filled)
    # Of a crate the tests that run are built, and no others.
    own = f"{tests[0].partition(' -- ')[0]} --no-run" if " -- --exact " in tests[0] else target.build
    build = target.tagged_build or own
    return replace(target, tests=tests, build=build), {found.command: found.n_tests for found in filled}


def tried(
    copy: Copy, target: Target, changes: Sequence[tuple[int, Site]], limit: float, n_tests: Mapping[str, int]
) -> Iterator[tuple[int, Outcome]]:
    """What becomes of each change. Raises SystemExit where the commands fail without any, or run fewer tests."""
    for command in filter(None, (target.build, *target.tests)):
        well, printed = copy.run(command, target.env)
        if not well:
            raise SystemExit(f"without a change, this fails already: {command}\n{printed[-2000:]}")
        if (n := tagged.n_passed(printed)) < n_tests.get(command, 0):
            raise SystemExit(f"{n} tests passed, and {n_tests[command]} were to run: {command}\n{printed[-2000:]}")
    for number, site in changes:
        yield number, copy.attempt(target, site, limit)


def planted(faults: Sequence[Fault], limit: float) -> Iterator[tuple[str, Outcome]]:
    """What becomes of each fault. Raises SystemExit where its tests fail without it."""
    copies: dict[str, Copy] = {}
    passed: set[tuple[str, str]] = set()
    for fault in faults:
        if fault.target not in copies:
            copies[fault.target] = Copy(ROOT, COPY / fault.target)
        copy, target = copies[fault.target], fault.held_to()
        fresh = [command for command in target.tests if (fault.target, command) not in passed]
        if fresh:
            list(tried(copy, replace(target, tests=tuple(fresh)), [], limit, {}))
            passed.update((fault.target, command) for command in fresh)
        yield fault.name, copy.attempt(target, fault.site(copy.folder), limit)


HEAD = "| | site | change | outcome | test that failed |\n|---|---|---|---|---|"
"""The head of the table."""


class Report:
    """The table of a run: on stdout, and as Markdown where a file is named."""

    def __init__(self, path: Path | None, title: str) -> None:
        self._path = path
        self.words: list[str] = []
        if path is not None:
            path.write_text(f"# {title}\n\n{HEAD}\n", encoding="utf-8")

    def add(self, number: int | str, outcome: Outcome) -> None:
        """Writes a line at once, so that what was found is kept where the run ends early."""
        self.words.append(outcome.word)
        print(row(number, outcome), f"{outcome.seconds:.0f} s", flush=True)
        self._write(row(number, outcome))

    def end(self) -> None:
        """Writes how many there were of each."""
        counts = ", ".join(f"{self.words.count(word)} {word}" for word in ("caught", "survived", "does not build"))
        print(counts)
        self._write(f"\n{counts}.")

    def _write(self, line: str) -> None:
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(f"{line}\n")


def row(number: int | str, outcome: Outcome) -> str:
    """A line of the table."""
    site = outcome.site
    change = f"`{_short(site.old)}` -> `{_short(site.new)}`"
    return f"| {number} | {site.path}:{site.line} | {change} | {outcome.word} | {outcome.by} |"


def _short(text: str) -> str:
    flat = " ".join(text.split()).replace("|", "\\|")
    return flat if len(flat) <= 60 else flat[:57] + "..."


def main(arguments: Sequence[str] | None = None) -> int:
    """The command: prints the table, and ends with 1 where a change survived."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", nargs="?", choices=sorted(TARGETS))
    parser.add_argument("--planted", nargs="*", metavar="NAME", help="make the faults of tools/planted.toml, or those of these names")
    parser.add_argument("--log", type=Path, metavar="FILE", help="write the changes and what caught them as Markdown")
    parser.add_argument("--files", nargs="+", default=[], help="of these files alone: paths or patterns from the root of the tree")
    parser.add_argument("--count", type=int, default=25)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--list", action="store_true", help="print the changes and make none")
    parser.add_argument("--only", help="numbers of the changes to make, apart by commas")
    parser.add_argument("--test", action="append", help="a command in the place of the target's; may be given again")
    parser.add_argument("--build", help="what must end well before the tests tell anything, in the place of the target's")
    parser.add_argument("--tagged", nargs="+", metavar="AREA", help="run those tests alone that name rows of these areas, or of all")
    parser.add_argument("--limit", type=float, default=SLOW, help="seconds after which a command counts as failed")
    given = parser.parse_args(arguments)
    if given.planted is not None:
        return main_planted(given)
    if given.target is None:
        parser.error("name a target, or --planted")
    target, n_tests = TARGETS[given.target], dict[str, int]()
    if given.tagged:
        target, n_tests = of_tagged(ROOT, target, given.tagged)
    build = target.build if given.build is None else given.build
    target = replace(target, files=tuple(given.files) or target.files, tests=tuple(given.test or target.tests), build=build)
    changes = list(enumerate(draw(ROOT, target.files, given.count, given.seed), 1))
    if given.only:
        wanted = {int(number) for number in given.only.split(",")}
        changes = [(number, site) for number, site in changes if number in wanted]
    if given.list:
        for number, site in changes:
            print(row(number, Outcome(site, site.kind)))
        return 0
    report = Report(given.log, f"Changes of {given.target}, seed {given.seed}")
    for number, outcome in tried(Copy(ROOT, COPY / given.target), target, changes, given.limit, n_tests):
        report.add(number, outcome)
    report.end()
    return int("survived" in report.words)


def main_planted(given: argparse.Namespace) -> int:
    """The command with `--planted`: ends with 1 where a fault was not caught. Each of them builds."""
    every = read_planted()
    unknown = set(given.planted) - {fault.name for fault in every}
    if unknown:
        raise SystemExit(f"no fault is called {', '.join(sorted(unknown))}; --planted --list prints those that there are")
    faults = [fault for fault in every if given.target in (None, fault.target) and (not given.planted or fault.name in given.planted)]
    if not faults:
        raise SystemExit(f"no fault of {PLANTED.name} is in {given.target}")
    if given.list:
        for fault in faults:
            print(row(fault.name, Outcome(fault.site(ROOT), fault.target)))
        return 0
    report = Report(given.log, "Planted faults")
    for name, outcome in planted(faults, given.limit):
        report.add(name, outcome)
    report.end()
    return int(set(report.words) != {"caught"})


if __name__ == "__main__":
    sys.exit(main())
