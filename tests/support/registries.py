"""Registries of packages on this machine, as a user configures them, so that tests of dependencies need no network."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

SCOPE = "@pie-tests"
"""The packages of npm that come from such a registry."""


def index(folder: Path) -> dict[str, str]:
    """The environment in which pip takes packages from the wheels in a folder, and from nowhere else."""
    return {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(folder)}


@contextmanager
def python_index(files: Sequence[str]) -> Iterator[dict[str, str]]:
    """Serves an index of Python that lists files of these names, which nobody can fetch; the environment in which pip
    asks here.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            """Lists the files of a package; 404 where there is none, and for a file."""
            name = self.path.rstrip("/").rpartition("/")[2]
            listed = [file for file in files if file.partition("-")[0] == name]
            body = "".join(f'<a href="/files/{file}">{file}</a>\n' for file in listed).encode()
            self.send_response(200 if listed else 404)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    with _serving(Handler) as address:
        yield {"PIP_INDEX_URL": f"{address}/simple", "PIP_RETRIES": "0"}


@contextmanager
def _serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """Serves on a port of its own while the body runs, at the address that it is given."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def registry(packages: Mapping[str, Mapping[str, str]], **dependencies: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Serves version 1.0.0 of packages of `SCOPE`, given by the texts of their files; the environment in which npm asks
    here for them.

    `dependencies` are what the package of that name depends on.
    """
    archives = {name: _archive(name, files, dependencies.get(name, {})) for name, files in packages.items()}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            """Describes a package, or sends it."""
            name = self.path.rpartition("/")[2].lower().rpartition("%2f")[2].removesuffix(".tgz")
            known = name in archives
            body = b"{}" if not known else archives[name] if self.path.endswith(".tgz") else json.dumps(describe(name)).encode()
            self.send_response(200 if known else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    def describe(name: str) -> dict[str, object]:
        full = f"{SCOPE}/{name}"
        dist = {
            "tarball": f"{address}/{SCOPE}/{name}.tgz",
            "integrity": "sha512-" + base64.b64encode(hashlib.sha512(archives[name]).digest()).decode(),
        }
        release = {"name": full, "version": "1.0.0", "dist": dist, "dependencies": dict(dependencies.get(name, {}))}
        return {"name": full, "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": release}}

    with _serving(Handler) as address:
        yield {f"npm_config_{SCOPE}:registry": address}


def _archive(name: str, files: Mapping[str, str], dependencies: Mapping[str, str]) -> bytes:
    """A package as npm packs it."""
    described = {"name": f"{SCOPE}/{name}", "version": "1.0.0", "type": "module", "main": "index.js", "dependencies": dict(dependencies)}
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for path, text in {"package.json": json.dumps(described), **files}.items():
            entry = tarfile.TarInfo(f"package/{path}")
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
    return packed.getvalue()
