"""Installed programs that serve HTTP: where they are, who may ask them, and what they see of a request."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import closing, suppress
from http.client import IncompleteRead
from pathlib import Path

import pytest

from pie import _engine
from support import asking
from support.asking import Answer
from support.bad_lines import Case, check_refused, of, read_cases
from support.command import pie
from support.launching import ROOT
from support.serving import Served, client_of, ended, pages_in_use, scenario, serving

TELLS = """
from inferlet import runtime
from inferlet.http_server import Response


async def fetch(request):
    return Response.json({"user": runtime.username(), "url": request.url, "headers": dict(request.headers)})
"""

# Writes without end.
WRITES = """
from inferlet import Context, Model, Sampler
from inferlet.http_server import Response


async def fetch(request):
    async def tokens():
        ctx = Context(Model.load("default")).user("Hello")
        while True:
            async for step in ctx.generate(Sampler.argmax(), max_tokens=64, ignore_eos=True):
                yield str((await step.execute()).tokens)

    return Response(tokens())
"""

# Speaks for more than itself.
SPEAKS_FOR_ALL = """
from inferlet.http_server import Response


async def fetch(request):
    headers = {"Service-Worker-Allowed": "/", "Clear-Site-Data": "*", "Alt-Svc": "clear", "X-Own": "1"}
    headers["Strict-Transport-Security"] = "max-age=9"
    return Response("hello", headers=headers)
"""

SMUGGLED = read_cases(ROOT / "tests/e2e/bad_world.toml")

SERVES_NOTHING = "def main(input):\n    return 1\n"


def ask(served: Served, path: str, **headers: str) -> Answer:
    return asking.ask(served.port, path, **headers)


def install(served: Served, folder: Path, text: str, name: str, *options: str) -> None:
    """Installs a Python program by the command."""
    (folder / f"{name}.py").write_text(text)
    done = pie("install", f"{name}.py", "--server", served.url, *options, cwd=folder)
    assert done.returncode == 0, done.stderr


@of(SMUGGLED, "raw")
def test_what_smuggles_is_refused(server: Served, tmp_path: Path, case: Case) -> None:
    if asking.ask(server.port, "/http/answering/empty").status == 404:
        path = ROOT / "tests/e2e/answering/answering.py"
        done = pie("install", str(path), "--http", "--server", server.url)
        assert done.returncode == 0, done.stderr
    check_refused(case, asking.said_to(server.port, case["raw"].replace(" /", " /http/answering/")))
    if not case.get("begun"):
        # Where no program is asked, too.
        said = asking.said_to(server.port, case["raw"].replace("/length", "/healthz").replace("/count", "/healthz"))
        assert said.startswith(b"HTTP/1.1 400 "), said
        assert said.count(b"\r\nContent-Length: ") == 1, said
    assert ask(server, "/http/answering/empty").status == 204


def test_an_installed_program_is_asked_by_its_name(server: Served, tmp_path: Path) -> None:
    install(server, tmp_path, TELLS, "tells", "--http")
    answer = ask(server, "/http/tells/a/b?c=/d", Authorization="Bearer ", X_Forwarded_Prefix="/elsewhere", Host="localhost:9")
    assert answer.status == 200, answer.body
    assert (answer.value["user"], answer.value["url"]) == ("anonymous", "http://localhost:9/a/b?c=/d")
    headers = answer.value["headers"]
    assert headers["x-forwarded-prefix"] == "/http/tells"
    assert "authorization" not in headers
    assert ask(server, "/http/tells").value["url"].endswith("/")
    assert ask(server, "/http/tells@0.1.0/x").status == 200


def test_what_serves_nothing_is_not_there(server: Served, tmp_path: Path) -> None:
    install(server, tmp_path, SERVES_NOTHING, "still")
    for path, code in (("/http/still/", "not-serving"), ("/http/absent/", "unknown-program"), ("/http/~bob/still/", "unknown-program")):
        answer = ask(server, path)
        assert (answer.status, answer.code) == (404, code), path
    assert ask(server, "/http").status == 404
    assert ask(server, "/healthz").status == 200


def test_what_has_nothing_to_answer_with_is_not_installed_for_http(server: Served, tmp_path: Path) -> None:
    (tmp_path / "dumb.py").write_text("def main(input):\n    return 1\n")
    done = pie("install", "dumb.py", "--server", server.url, "--http", cwd=tmp_path)
    assert done.returncode == 1
    assert "'dumb.py' has no function `fetch`" in done.stderr, done.stderr
    assert ask(server, "/http/dumb/").code == "unknown-program"


def test_a_program_speaks_for_itself_alone(server: Served, tmp_path: Path) -> None:
    install(server, tmp_path, SPEAKS_FOR_ALL, "speaks", "--http")
    answer = ask(server, "/http/speaks/")
    assert (answer.status, answer.body, answer.headers["x-own"]) == (200, b"hello", "1")
    said = {name.lower() for name in answer.headers}
    assert said.isdisjoint({"service-worker-allowed", "clear-site-data", "alt-svc", "strict-transport-security"})


FAILS = {
    "py": """
from inferlet.http_server import Response


async def fetch(request):
    if request.path == "/throws":
        raise ValueError("boom")
    if request.path == "/broken":
        return Response(parts())
    return None


async def parts():
    yield "one"
    raise ValueError("bang")
""",
    "ts": """
export default {
  async fetch(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    if (pathname === '/throws') throw new RangeError('boom');
    if (pathname === '/broken') return new Response(parts());
    return undefined as unknown as Response;
  },
};

async function* parts(): AsyncGenerator<string> {
  yield 'one';
  throw new RangeError('bang');
}
""",
}


@pytest.mark.parametrize("language", ["py", "ts"])
def test_a_request_that_fails_is_in_the_log_with_its_reason(tmp_path: Path, language: str) -> None:
    # Each once more than once: a process must not be ended before it has told.
    n_each = 10
    (tmp_path / f"fails.{language}").write_text(FAILS[language])
    with serving(tmp_path / "server") as served:
        done = pie("install", f"fails.{language}", "--http", "--server", served.url, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        for _ in range(n_each):
            assert ask(served, "/http/fails/throws").code == "http-no-answer"
            assert ask(served, "/http/fails/none").code == "http-no-answer"
            with suppress(IncompleteRead, ConnectionError):
                ask(served, "/http/fails/broken")
        # What a process told stands in front of its end.
        served.logged("(http-no-answer): fails@", 3 * n_each)
        log = served.stderr
        assert log.count(" ended after ") == 3 * n_each, log
        for said in ("Error: boom", "fetch returned", "Error: bang"):
            assert log.count(said) == n_each, (said, log)
        assert "<null>" not in log


SETS_COOKIES = """
from inferlet.http_server import Response


async def fetch(request):
    headers = [("Set-Cookie", "a=1; Path=/; Secure"), ("Set-Cookie", "b=2; Domain=localhost"), ("Content-Security-Policy", "img-src *")]
    return Response("<p>hello", headers=headers)
"""


def test_programs_are_kept_apart_in_a_browser(server: Served, tmp_path: Path) -> None:
    install(server, tmp_path, SETS_COOKIES, "cookies", "--http", "--public")
    for prefix, is_of_others in (("/http/cookies", False), ("/http/~anonymous/cookies@0.1.0", True)):
        with closing(asking.connect(server.port)) as connection:
            connection.request("GET", f"{prefix}/a")
            headers = connection.getresponse().headers
        assert headers.get_all("Set-Cookie") == [f"a=1; Secure; Path={prefix}", f"b=2; Path={prefix}"]
        policies = headers.get_all("Content-Security-Policy") or []
        assert policies[0] == "img-src *"
        assert [policy.split()[0] for policy in policies[1:]] == ["sandbox"] * is_of_others
        assert not any("allow-same-origin" in policy for policy in policies)
    # Such a page is of no origin that may ask for more.
    assert ask(server, "/http/cookies/", Origin="null").code == "forbidden-origin"


def test_programs_share_an_origin_where_their_users_trust_each_other(tmp_path: Path) -> None:
    with serving(tmp_path, server__http_sandbox="false") as served:
        install(served, tmp_path, SETS_COOKIES, "cookies", "--http", "--public")
        answer = ask(served, "/http/~anonymous/cookies/")
        assert (answer.status, answer.headers["content-security-policy"]) == (200, "img-src *")


def test_a_program_that_is_replaced_or_removed_answers_no_more(server: Served, tmp_path: Path) -> None:
    text = "from inferlet.http_server import Response\nasync def fetch(request):\n    return Response({0!r})\n"
    for said in ("one", "two"):
        install(server, tmp_path, text.format(said), "changing", "--http", "--shared", "--user", "carol")
        for _ in range(2):
            assert ask(server, "/http/~carol/changing/").body == said.encode()
    assert pie("uninstall", "changing@0.1.0", "--server", server.url, "--user", "carol").returncode == 0
    assert ask(server, "/http/~carol/changing/").status == 404


def test_a_web_page_of_elsewhere_asks_only_what_is_public(server: Served, tmp_path: Path) -> None:
    install(server, tmp_path, TELLS, "closed", "--http")
    install(server, tmp_path, TELLS, "open", "--http", "--public")
    answer = ask(server, "/http/closed/", Origin="https://evil.example")
    assert (answer.status, answer.code) == (403, "forbidden-origin")
    assert ask(server, "/http/closed/", Origin=f"http://127.0.0.1:{server.port}").status == 200
    # Of what a page embeds, browsers say where it stands, and no origin.
    answer = ask(server, "/http/closed/", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="no-cors", Sec_Fetch_Dest="image")
    assert (answer.status, answer.code) == (403, "forbidden-origin")
    assert ask(server, "/http/closed/", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate", Sec_Fetch_Dest="document").status == 200
    # A name that was made to lead to this machine makes a page of the same origin.
    for path in ("/http/closed/", "/http/~anonymous/open/"):
        answer = ask(server, path, Host=f"evil.example:{server.port}")
        assert (answer.status, answer.code) == (403, "forbidden-origin"), path
    assert ask(server, "/http/~anonymous/open/", Origin="https://evil.example").status == 200


@scenario
async def test_a_client_that_goes_ends_the_process_of_its_request(server: Served, tmp_path: Path) -> None:
    (tmp_path / "writes.py").write_text(WRITES)
    async with client_of(server, "dora") as client:
        manifest = '[package]\nname = "writes"\nversion = "1"\n[http]\n'
        await client.install(tmp_path / "writes.py", manifest=manifest)
        connection = asking.connect(server.port)
        connection.request("GET", "/http/~dora/writes/")
        response = connection.getresponse()
        assert response.read1(100)
        [process] = await client.list()
        assert process.program == "writes@1"
        connection.close()
        response.close()
        await ended(client, process.pid)
        assert await pages_in_use(client) == 0


@scenario
async def test_a_daemon_is_launched_by_a_client(server: Served, tmp_path: Path) -> None:
    (tmp_path / "daemon.py").write_text(TELLS)
    async with client_of(server, "emil") as client:
        path = await client.launch_daemon(tmp_path / "daemon.py", public=True)
        assert path == "/http/~emil/daemon@0.1.0/"
        for _ in range(2):
            assert ask(server, f"{path}a").value["user"] == "emil"
        # One instance has answered both.
        assert [process.program for process in await client.list()] == ["daemon@0.1.0"]
        await client.uninstall("daemon", "0.1.0")
        assert ask(server, path).status == 404


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("keys")


@pytest.fixture(scope="module")
def keys(folder: Path) -> dict[str, str]:
    """A key of each of two users, and one that may look alone."""
    scopes = {"ada": "user", "bob": "user", "reader": "read"}
    return {user: _engine.add_key(str(folder / "data"), "test", user, scope=scope)[1] or "" for user, scope in scopes.items()}


@pytest.fixture(scope="module")
def closed(folder: Path, keys: dict[str, str]) -> Iterator[Served]:
    """A server that has to know its clients."""
    assert keys
    with serving(folder, server__auth="on") as served:
        yield served


def test_a_key_opens_ones_own_programs_and_no_others(closed: Served, keys: dict[str, str], tmp_path: Path) -> None:
    install(closed, tmp_path, TELLS, "own", "--http", "--key", keys["ada"])
    install(closed, tmp_path, TELLS, "open", "--http", "--public", "--key", keys["ada"])
    for path in ("/http/own/", "/http/~ada/own/"):
        answer = ask(closed, path)
        assert (answer.status, answer.code, answer.headers["www-authenticate"]) == (401, "authentication-required", "Bearer")
        answer = ask(closed, path, Authorization=f"Bearer {keys['ada']}")
        assert (answer.status, answer.value["user"]) == (200, "ada")
        assert keys["ada"] not in answer.body.decode()
        answer = ask(closed, path, Authorization=f"Bearer {keys['bob']}")
        assert (answer.status, answer.code) == (404, "unknown-program")
    answer = ask(closed, "/http/~ada/open/", Authorization="Bearer theirs")
    assert (answer.status, answer.value["user"], answer.value["headers"]["authorization"]) == (200, "ada", "Bearer theirs")
    # A key that is shown to somebody else's program by mistake is not given to it.
    answer = ask(closed, "/http/~ada/open/", Authorization=f"Bearer {keys['bob']}")
    assert (answer.status, "authorization" in answer.value["headers"]) == (200, False)
    answer = ask(closed, "/http/own/", Authorization=f"Bearer {keys['reader']}")
    assert (answer.status, answer.code) == (403, "not-permitted")
    answer = ask(closed, "/http/own/", Authorization="Bearer nonsense")
    assert (answer.status, answer.code) == (401, "authentication-failed")


def test_nothing_is_read_of_a_program_for_whoever_may_not_ask_it(tmp_path: Path) -> None:
    added = {user: _engine.add_key(str(tmp_path / "data"), "test", user, scope="user")[1] or "" for user in ("ada", "bob")}
    with serving(tmp_path, server__auth="on") as served:
        install(served, tmp_path, TELLS, "own", "--http", "--key", added["ada"])
    with serving(tmp_path, server__auth="on") as served:
        # Whoever reads it now waits without end.
        [content] = (tmp_path / "data").rglob("own@*/*.wasm")
        content.unlink()
        os.mkfifo(content)
        for shown, status, code in (
            ("", 401, "authentication-required"),
            (f"Bearer {added['bob']}", 404, "unknown-program"),
            ("Bearer nonsense", 401, "authentication-failed"),
        ):
            foreign, absent = (ask(served, f"/http/~ada/{name}/", Authorization=shown) for name in ("own", "absent"))
            assert (foreign.status, foreign.code) == (absent.status, absent.code) == (status, code)
            assert foreign.body == absent.body.replace(b"absent", b"own")
            assert foreign.headers.keys() == absent.headers.keys()


def test_nothing_is_read_of_a_program_before_its_request_has_a_place(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        install(served, tmp_path, WRITES, "endless", "--http", "--public")
        install(served, tmp_path, TELLS, "other", "--http", "--public")
    with serving(tmp_path, server__http_user_requests=1) as served, closing(asking.connect(served.port)) as connection:
        # Whoever reads it now waits without end.
        [content] = (tmp_path / "data").rglob("other@*/*.wasm")
        content.unlink()
        os.mkfifo(content)
        connection.request("GET", "/http/endless/")
        response = connection.getresponse()
        assert response.read1(100)
        for path in ("/http/other/", "/http/~anonymous/other/"):
            answer = ask(served, path)
            assert (answer.status, answer.code) == (503, "limit-http-requests"), path
            assert b"server.http_user_requests = 1" in answer.body


def test_an_answer_ends_with_the_key_by_which_it_was_asked_for(closed: Served, keys: dict[str, str], folder: Path, tmp_path: Path) -> None:
    install(closed, tmp_path, WRITES, "endless", "--http", "--key", keys["ada"])
    record, key = _engine.add_key(str(folder / "data"), "guest", "ada", scope="user")
    with closing(asking.connect(closed.port)) as connection:
        connection.request("GET", "/http/endless/", headers={"Authorization": f"Bearer {key}"})
        response = connection.getresponse()
        assert response.read1(100)
        _engine.revoke_key(str(folder / "data"), json.loads(record)["id"])
        with suppress(IncompleteRead, ConnectionError):
            while response.read1(1 << 16):
                pass
    assert ask(closed, "/http/endless/", Authorization=f"Bearer {key}").code == "authentication-failed"
