"""What a client sends, and what it is called."""

from __future__ import annotations

from pathlib import Path

import pytest

from client.fake import Peer, fake_server, scenario
from pie._engine import pack_program, read_packed
from pie.client import PieError, connect
from pie.client.programs import Package, read_package

MANIFEST = '[package]\nname = "poet"\nversion = "2.0"\n'
OTHER = MANIFEST.replace("2.0", "3.0")
SOURCE = b"async def main(input):\n    return input\n"
BUILT = pack_program("python", {"main.py": SOURCE}, "main.py", MANIFEST)
COMPONENT = b"\0asm\x0d\0\x01\0" + b"\0\x05\x04code"


def named(package: Package) -> tuple[str, str, str | None]:
    return package.name, package.version, package.manifest


def test_a_program_is_called_by_its_manifest_else_by_its_path(tmp_path: Path) -> None:
    folder = tmp_path / "My Poet!"
    folder.mkdir()
    (folder / "main.py").write_bytes(SOURCE)
    (folder / "Pie.toml").write_text(MANIFEST)
    assert named(read_package(folder)) == ("poet", "2.0", MANIFEST)
    assert named(read_package(folder, OTHER)) == ("poet", "3.0", OTHER)
    (folder / "Pie.toml").unlink()
    assert named(read_package(folder)) == ("my-poet", "0.1.0", None)
    assert named(read_package(folder / "main.py")) == ("main", "0.1.0", None)
    (folder / "x.wasm").write_bytes(BUILT)
    for program in (BUILT, folder / "x.wasm"):
        assert named(read_package(program)) == ("poet", "2.0", MANIFEST)
        assert named(read_package(program, OTHER)) == ("poet", "3.0", OTHER)
    assert named(read_package(COMPONENT)) == ("program", "0.1.0", None)


def test_what_is_launched_carries_its_manifest() -> None:
    assert read_package(BUILT).launchable() == read_package(BUILT, MANIFEST).launchable() == BUILT
    assert read_package(COMPONENT).launchable() == COMPONENT
    packed = read_packed(read_package(COMPONENT, MANIFEST).launchable())
    assert packed is not None
    assert packed["manifest"] == MANIFEST
    with pytest.raises(PieError, match="carries a manifest of its own") as caught:
        read_package(BUILT, OTHER).launchable()
    assert caught.value.code == "invalid-argument"


@pytest.mark.parametrize("manifest", ["[", "a = " + "[" * 30_000, "package = 5", "x" * 70_000])
def test_a_manifest_that_is_none_is_one_clear_error(manifest: str) -> None:
    with pytest.raises(PieError) as caught:
        read_package(COMPONENT, manifest)
    assert caught.value.code == "invalid-manifest"


@scenario
async def test_a_folder_is_sent_whole(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/app.py").write_bytes(SOURCE)
    (tmp_path / "Pie.toml").write_text(MANIFEST + '[program]\nentry = "src/app.py"\n')
    entries = []

    async def script(peer: Peer) -> None:
        for _ in range(2):
            upload = await peer.expect("upload")
            packed = read_packed(upload["payload"])
            assert packed is not None
            entries.append(packed["entry"])
            await peer.answer(upload)
        await peer.answer(await peer.expect("install"))
        await peer.serve_forever()

    async with fake_server(script) as address, connect(address) as client:
        await client.upload(tmp_path)
        assert await client.install(str(tmp_path)) == "poet@2.0"
    assert entries == ["app.py", "app.py"]
