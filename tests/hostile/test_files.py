"""Programs that attack the file system: by links, by filling it, by hiding what they hold, by many and deep folders."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pie.config import EngineConfig, ModelConfig, RuntimeConfig
from pie.engine import Engine
from support.engines import started
from support.launching import Outcome, finish, python_source, typescript_source

SECRET = "TOP-SECRET-42"
FS_BYTES = 4 << 20
FS_FILES = 2000


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Engine, Path]]:
    """An engine with small folders, and the folder of its data, in which a secret lies."""
    data = tmp_path_factory.mktemp("data")
    (data / "secret").write_text(SECRET)
    runtime = RuntimeConfig(fs_bytes=FS_BYTES, fs_files=FS_FILES, fs_free_bytes=0)
    with Engine(EngineConfig(data_dir=data), runtime=runtime) as engine:
        engine.add_model(options=ModelConfig(driver="dummy"))
        with started(engine):
            yield engine, data


def attack(engine: Engine, user: str, body: str) -> Any:
    """What `main` of a Python program of that body returns."""
    lines = "\n".join(f"    {line}" for line in body.strip("\n").splitlines())
    text = f"import errno, os\nfrom inferlet import files\n\ndef main(input):\n{lines}\n"
    outcome = finish(engine.launch(python_source(text), username=user))
    assert outcome.code is None, outcome.traceback or outcome.message
    return outcome.value


def held(data: Path, user: str) -> tuple[int, int]:
    """Bytes and entries of a user's folder on the disk."""
    found = [path.lstat() for path in (data / "scratch/user" / user).rglob("*")]
    return sum(entry.st_size for entry in found if stat.S_ISREG(entry.st_mode)), len(found)


def test_links_of_every_kind_lead_nowhere(attacked: tuple[Engine, Path]) -> None:
    engine, data = attacked
    stopped = attack(
        engine,
        "links",
        """
os.makedirs("/scratch/a/b")
targets = ["../../../secret", "../" * 60 + "etc/passwd", "..", "a/../../../../secret", "a/b/../../../../../secret", ".", "self"]
for n, target in enumerate(targets):
    os.symlink(target, f"/scratch/link{n}")
os.symlink("link2/link2/link2/secret", "/scratch/chain")
os.symlink("chain", "/scratch/a/b/chain")
found = []
for path in ("link0", "link1", "link2/ada", "link2/../secret", "link3", "link4", "link5/link0", "link6", "chain", "a/b/chain", "link0/",
             "link2/secret/", "a/b/../../link0", "a/b/../../../links/link0"):
    for flags in (os.O_RDONLY, os.O_RDWR | os.O_CREAT, os.O_WRONLY | os.O_TRUNC):
        try:
            os.close(os.open(f"/scratch/{path}", flags))
            found.append(path)
        except OSError as error:
            pass
refused = []
for link in (lambda: os.symlink("/etc/passwd", "/scratch/absolute"), lambda: os.link("/scratch/link0", "/scratch/hard"),
             lambda: os.link("/scratch/a/b/../../link5/link0", "/scratch/hard"), lambda: os.rename("/scratch/a", "/scratch/link2/a"),
             lambda: os.rename("/scratch/link2/../secret", "/scratch/secret"), lambda: os.mkdir("/scratch/link2/new"),
             lambda: os.symlink("x", "/scratch/link2/new"), lambda: os.rmdir("/scratch/link2"), lambda: os.unlink("/scratch/..")):
    try:
        link()
        refused.append(False)
    except OSError:
        refused.append(True)
return [found, refused]
""",
    )
    assert stopped == [[], [True] * 9]
    assert (data / "secret").read_text() == SECRET
    assert sorted(path.name for path in data.iterdir()) == [".lock", "runtimes", "scratch", "secret"]
    assert sorted(path.name for path in (data / "scratch").iterdir()) == ["user"]


def test_a_swapped_link_is_never_followed_out(attacked: tuple[Engine, Path]) -> None:
    engine, data = attacked
    swapper = """
async def main(input):
    os.makedirs("/scratch/a", exist_ok=True)
    for n in range(1500):
        os.symlink("../../..", "/scratch/next")
        os.rename("/scratch/next", "/scratch/way")
        os.symlink("a", "/scratch/next")
        os.rename("/scratch/next", "/scratch/way")
"""
    reader = """
def main(input):
    seen = set()
    for n in range(1500):
        try:
            seen.add(open("/scratch/way/secret").read())
        except OSError:
            pass
    return list(seen)
"""
    heads = "import os\n"
    processes = [engine.launch(python_source(heads + text), username="swapping") for text in (swapper, reader, reader)]
    outcomes = [finish(process) for process in processes]
    assert [outcome.code for outcome in outcomes] == [None] * 3, [outcome.message for outcome in outcomes]
    assert [outcome.value for outcome in outcomes[1:]] == [[], []]
    assert (data / "secret").read_text() == SECRET


def test_the_quota_holds_in_the_middle_of_writes_of_many(attacked: tuple[Engine, Path]) -> None:
    engine, data = attacked
    text = """
import errno

def main(name):
    n, failed = 0, None
    try:
        with open(f"/scratch/{name}", "ab", buffering=0) as file:
            while True:
                n += file.write(b"x" * 70_000)
    except OSError as error:
        failed = errno.errorcode[error.errno]
    return [n, failed]
"""
    processes = [engine.launch(python_source(text), input=str(n % 3), username="filling") for n in range(6)]
    outcomes = [finish(process) for process in processes]
    assert {outcome.value[1] for outcome in outcomes} == {"EIO"}, [outcome.message for outcome in outcomes]
    n_bytes, _ = held(data, "filling")
    # What each could not write is less than one write.
    assert FS_BYTES - 70_000 < n_bytes <= FS_BYTES
    assert sum(outcome.value[0] for outcome in outcomes) <= n_bytes


def test_what_is_removed_and_still_open_counts(attacked: tuple[Engine, Path]) -> None:
    engine, _ = attacked
    written = attack(
        engine,
        "hiding",
        """
opened, n = [], 0
try:
    for _ in range(20):
        file = open("/scratch/hidden", "wb", buffering=0)
        opened.append(file)
        os.remove("/scratch/hidden")
        for _ in range(16):
            n += file.write(b"x" * (1 << 16))
except OSError as error:
    return [n, errno.errorcode[error.errno], os.listdir("/scratch")]
""",
    )
    assert written == [FS_BYTES, "EIO", []]
    # The end of the program gave it back.
    again = attack(engine, "hiding", f"with open('/scratch/whole', 'wb') as file:\n    return file.write(b'x' * {FS_BYTES})")
    assert again == FS_BYTES


def test_holes_count_as_bytes(attacked: tuple[Engine, Path]) -> None:
    engine, data = attacked
    tried = attack(
        engine,
        "holes",
        """
found = []
with open("/scratch/sparse", "wb", buffering=0) as file:
    for size in (1 << 62, 1 << 40, 5 << 20, 4 << 20):
        try:
            file.truncate(size)
            found.append(None)
        except OSError as error:
            found.append(errno.errorcode[error.errno])
    file.seek(1 << 40)
    try:
        file.write(b"x")
    except OSError as error:
        found.append(errno.errorcode[error.errno])
return found
""",
    )
    assert tried == ["EDQUOT", "EDQUOT", "EDQUOT", None, "EIO"]
    assert held(data, "holes") == (FS_BYTES, 1)


def test_a_hundred_thousand_files_are_refused_beyond_the_limit(attacked: tuple[Engine, Path]) -> None:
    engine, data = attacked
    text = """
import { mkdir, symlink, writeFile } from 'node:fs/promises';

export async function main() {
  const refused = {};
  for (let n = 0; n < 100_000; n++) {
    const make = [() => writeFile(`/scratch/${n}`, ''), () => mkdir(`/scratch/${n}`), () => symlink('x', `/scratch/${n}`)][n % 3];
    try {
      await make();
    } catch (error) {
      refused[error.code] = (refused[error.code] ?? 0) + 1;
    }
  }
  return refused;
}
"""
    outcome = finish(engine.launch(typescript_source(text), username="many"))
    assert outcome.value == {"EDQUOT": 100_000 - FS_FILES}, outcome.message
    assert held(data, "many") == (0, FS_FILES)


def test_folders_nest_no_deeper_than_they_can_be_removed(attacked: tuple[Engine, Path]) -> None:
    engine, data = attacked
    depth = attack(
        engine,
        "deep",
        """
path = "/scratch"
for depth in range(200):
    path += "/d"
    try:
        os.mkdir(path)
    except OSError as error:
        return [depth, errno.errorcode[error.errno], files.refusal().code]
""",
    )
    assert depth == [64, "EDQUOT", "limit-files"]
    assert held(data, "deep") == (0, 64)


def test_no_pipe_device_or_mode_can_be_made(attacked: tuple[Engine, Path]) -> None:
    engine, data = attacked
    names = attack(
        engine,
        "devices",
        """
open("/scratch/file", "w").close()
found = []
for name, make in {
    "mkfifo": lambda: os.mkfifo("/scratch/pipe"),
    "mknod": lambda: os.mknod("/scratch/device"),
    "chmod": lambda: os.chmod("/scratch/file", 0o4777),
    "chown": lambda: os.chown("/scratch/file", 0, 0),
}.items():
    try:
        make()
        found.append(name)
    except (AttributeError, OSError):
        pass
return [found, os.listdir("/scratch")]
""",
    )
    assert names[1] == ["file"]
    assert (data / "scratch/user/devices/file").stat().st_mode & 0o7111 == 0
    assert set(names[0]) <= {"chmod"}


def test_a_folder_of_many_files_holds_up_nobody_else(attacked: tuple[Engine, Path]) -> None:
    engine, data = attacked
    folder = data / "scratch/user/crowded"
    folder.mkdir(parents=True)
    for n in range(20_000):
        (folder / str(n)).touch()
    counting = engine.launch(python_source("def main(input):\n    open('/scratch/0', 'w').close()\n"), username="crowded")
    outcomes: list[Outcome] = []
    while not counting.ended or not outcomes:
        outcomes.append(finish(engine.launch(python_source("def main(input):\n    return 1\n"), username="other")))
        if counting.next_event(0) is None and counting.ended:
            break
    assert all(outcome.value == 1 for outcome in outcomes)


def test_a_listing_of_many_files_is_charged(attacked: tuple[Engine, Path]) -> None:
    engine, data = attacked
    folder = data / "scratch/user/listed"
    folder.mkdir(parents=True)
    for n in range(5000):
        (folder / f"{n:0100}").touch()
    held_open = attack(
        engine,
        "listed",
        """
n = len(os.listdir("/scratch"))
with os.scandir("/scratch") as entries:
    first = next(entries)
return [n, len(first.name)]
""",
    )
    assert held_open == [5000, 100]


def test_work_on_files_counts_as_processor_time(attacked: tuple[Engine, Path]) -> None:
    engine, data = attacked
    folder = data / "scratch/user/walking/one"
    folder.mkdir(parents=True)
    for n in range(20_000):
        (folder / str(n)).touch()
    # The engine looks how deep a folder is before it moves it. The program itself computes next to nothing.
    text = """
import os

def main(input):
    for _ in range(500):
        os.rename("/scratch/one", "/scratch/other")
        os.rename("/scratch/other", "/scratch/one")
"""
    outcome = finish(engine.launch(python_source(text), username="walking", limits={"cpu_s": 1.0}))
    assert outcome.code == "limit-cpu", outcome.message
