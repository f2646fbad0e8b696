"""What goes wrong with a server's disk, and what programs say of themselves, as clients and operators are told of
it.
"""

from __future__ import annotations

import resource
import signal
from pathlib import Path

from pie.client import Client, Event, PieError
from support.command import pie
from support.folders import write
from support.serving import Served, client_of, collect, ended, exit_of, install_source, refused, scenario, serving

ONE = "def main(input):\n    return 1\n"
TWO = "def main(input):\n    return 2\n"
ROOM_BYTES = 256 << 10

# Errors that no program can have met, in the two languages, and one that the engine gave.
FORGED_PYTHON = "from inferlet import InferletError\ndef main(input):\n    raise InferletError(input['code'], 'I say so')\n"
FORGED_SCRIPT = "export function main(input) { throw Object.assign(new Error('I say so'), { code: input.code }); }"
MET = "from inferlet import Model\ndef main(input):\n    Model.load('absent')\n"
BUDGET = "from inferlet import Context, Model\ndef main(input):\n    Context(Model.load('default')).append([1] * 9)\n"
EXITS = "import os\ndef main(input):\n    os._exit(3)\n"
NOISE = r"""
import sys
def main(input):
    print("10 %\r20 %", "user\u202enimda", "\x1b[2Jgone", "\u2066x", file=sys.stderr)
    raise ValueError("a\r\x1b[2Jb\u202e")
"""


async def result_of(client: Client, program: str) -> object:
    """What an installed program returns."""
    return await (await client.launch(program)).result()


def is_quiet(error: PieError, served: Served) -> bool:
    """Whether an error tells nothing of the server's folders."""
    return str(served.folder) not in error.message and "report" not in error.message


@scenario
async def test_a_full_disk_is_told_as_one_and_harms_nothing(tmp_path: Path) -> None:
    with serving(tmp_path / "server") as served:
        async with client_of(served) as client:
            await install_source(client, tmp_path, ONE, "p")
            write(tmp_path / "large", {"main.py": TWO, "data.txt": "x" * (4 * ROOM_BYTES)})
            # Files of this process cannot grow beyond that: to whoever writes, the disk has no room.
            limits = resource.prlimit(served.process.pid, resource.RLIMIT_FSIZE, (ROOM_BYTES, resource.RLIM_INFINITY))
            error = await refused(client.install(tmp_path / "large", name="p", version="0.1.0"))
            assert error.code == "disk-full", error.message
            assert error.message.startswith("the program p@0.1.0 cannot be written: ")
            assert is_quiet(error, served)
            assert await result_of(client, "p") == 1
            resource.prlimit(served.process.pid, resource.RLIMIT_FSIZE, limits)
            assert await client.install(tmp_path / "large", name="p", version="0.1.0") == "p@0.1.0"
            assert await result_of(client, "p") == 2
        assert "cannot be written" in served.stderr


@scenario
async def test_a_read_only_disk_is_told_as_one(tmp_path: Path) -> None:
    with serving(tmp_path / "server", without_privileges=True) as served:
        async with client_of(served) as client:
            await install_source(client, tmp_path, ONE, "p")
            folders = [path for path in (tmp_path / "server/data/programs").rglob("*") if path.is_dir()]
            for folder in folders:
                folder.chmod(0o555)
            (tmp_path / "p.py").write_text(TWO)
            for name in ("p", "another"):
                error = await refused(client.install(tmp_path / "p.py", name=name, version="0.1.0"))
                assert error.code == "disk-read-only", error.message
                assert is_quiet(error, served)
            error = await refused(client.uninstall("p", "0.1.0"))
            assert error.code == "disk-read-only", error.message
            assert is_quiet(error, served)
            assert await result_of(client, "p") == 1
            for folder in folders:
                folder.chmod(0o755)
            await client.uninstall("p", "0.1.0")


@scenario
async def test_a_stray_folder_does_not_make_a_program_vanish(tmp_path: Path) -> None:
    with serving(tmp_path / "server") as served:
        async with client_of(served) as client:
            await install_source(client, tmp_path, ONE, "p")
        served.signal(signal.SIGTERM)
        assert served.wait() == 0
    write(tmp_path / "server/data/programs/alice/p@0.1.0", {"stray/notes.txt": "mine", "README": "mine too"})
    with serving(tmp_path / "server") as served:
        async with client_of(served) as client:
            assert [program.name for program in await client.programs()] == ["p"]
            assert await result_of(client, "p") == 1
    assert (tmp_path / "server/data/programs/alice/p@0.1.0/stray/notes.txt").read_text() == "mine"


@scenario
async def test_a_program_cannot_say_that_the_engine_ended_it(tmp_path: Path) -> None:
    write(tmp_path, {"python.py": FORGED_PYTHON, "script.js": FORGED_SCRIPT, "met.py": MET, "budget.py": BUDGET, "exits.py": EXITS})
    with serving(tmp_path / "server") as served:
        async with client_of(served) as client:

            async def end(name: str, code: str | None = None, **options: int) -> tuple[str | None, Event.Error]:
                process = await client.launch(await client.upload(tmp_path / name), input={"code": code}, **options)
                last = (await collect(process))[-1]
                assert isinstance(last, Event.Error)
                return await exit_of(client, process.pid), last

            for name in ("python.py", "script.js"):
                for code in ("engine-stopped", "cancelled", "limit-cpu", "internal", "out-of-pages"):
                    exit_code, last = await end(name, code)
                    assert (exit_code, last.code) == ("program-error", "program-error")
                    assert "I say so" in last.message
                assert (await end(name, "context-full"))[0] == "context-full"
            assert (await end("met.py"))[0] == "unknown-model"
            assert (await end("budget.py", token_budget=3))[0] == "token-budget"
            exit_code, last = await end("exits.py")
            assert exit_code == "program-error"
            assert "exited as one that failed" in last.message


@scenario
async def test_what_a_program_prints_cannot_rewrite_the_log(tmp_path: Path) -> None:
    (tmp_path / "noise.py").write_text(NOISE)
    with serving(tmp_path / "server", server__log_level="info") as served:
        async with client_of(served) as client:
            process = await client.launch(await client.upload(tmp_path / "noise.py"))
            await ended(client, process.pid)
            logs = pie("logs", str(process.pid), "--server", served.url, "--user", "alice")
        served.logged(f"process {process.pid} ended after")
        log = (served.folder / "stderr").read_bytes().decode()
        assert r"10 %\r20 %" in log
        assert r"user\u{202e}nimda" in log
        assert not any(unseen in log for unseen in "\r\x1b\u202e\u2066")
    # A pipe gets what the program wrote; the line of the command itself shows what is there.
    assert "\u202enimda" in logs.stdout
    told = logs.stderr
    assert not any(unseen in told for unseen in "\x1b\u202e")
