"""Which replica a session goes to, and what the head of its connection says."""

from __future__ import annotations

from collections import Counter

import pytest

from pie.replicas import head
from pie.replicas.front import session_key
from pie.replicas.head import BadHeadError, Head
from pie.replicas.routing import order


def test_keys_spread_over_replicas_and_each_keeps_its_own() -> None:
    keys = [f"key {n}".encode() for n in range(4000)]
    firsts = [order(key, 4)[0] for key in keys]
    counts = Counter(firsts)
    print(counts)
    assert all(900 < counts[index] < 1100 for index in range(4))
    assert firsts == [order(key, 4)[0] for key in keys]
    assert all(sorted(order(key, 4)) == [0, 1, 2, 3] for key in keys)


def test_a_replica_more_takes_keys_and_moves_none_between_the_others() -> None:
    moved = [(before, after) for n in range(2000) if (before := order(b"%d" % n, 3)[0]) != (after := order(b"%d" % n, 4)[0])]
    assert 400 < len(moved) < 600
    assert {after for _, after in moved} == {3}


def test_the_keys_of_a_replica_that_is_gone_spread_over_the_others() -> None:
    seconds = Counter(order(b"%d" % n, 4)[1] for n in range(4000) if order(b"%d" % n, 4)[0] == 0)
    assert set(seconds) == {1, 2, 3}
    assert min(seconds.values()) > 250


def request(target: str, *fields: str) -> Head:
    return head.read("\r\n".join([f"GET {target} HTTP/1.1", "Host: a:1", *fields, "", ""]).encode())


def test_a_head_is_read_and_written_as_it_came() -> None:
    raw = b"GET /?prefix=a%20b HTTP/1.1\r\nHost: a:1\r\nUpgrade: websocket\r\nX-Empty: \r\n\r\n"
    found = head.read(raw)
    assert (found.method, found.path, found.prefix(), found.is_upgrade) == ("GET", "/", "a b", True)
    assert found.written() == raw
    assert found.without_query().without("x-empty").with_field("X-More", "1").written() == (
        b"GET / HTTP/1.1\r\nHost: a:1\r\nUpgrade: websocket\r\nX-More: 1\r\n\r\n"
    )


def test_the_query_of_a_program_is_its_own() -> None:
    found = request("/http/ask/?text=a&prefix=b")
    assert (found.is_for_program, found.prefix(), found.query) == (True, None, "text=a&prefix=b")
    assert not request("/http").is_for_program


@pytest.mark.parametrize(
    "raw",
    [
        b"\r\n\r\n",
        b"GET / HTTP/1.0\r\n\r\n",
        b"get / HTTP/1.1\r\n\r\n",
        b"GET http://a/ HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost : a\r\n\r\n",
        b"GET / HTTP/1.1\r\n folded: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 65 + b"\r\n",
    ],
)
def test_what_is_not_a_head_is_refused(raw: bytes) -> None:
    with pytest.raises(BadHeadError):
        head.read(raw)


@pytest.mark.parametrize(
    "query", ["prefix=", "prefix", "other=1", "prefix=a&prefix=b", "prefix=a&b=c", f"prefix={'a' * 257}", "prefix=%ff"]
)
def test_what_is_not_a_prefix_is_refused(query: str) -> None:
    with pytest.raises(BadHeadError, match="prefix=TEXT"):
        request(f"/?{query}").prefix()


def test_a_session_is_known_by_its_prefix_then_its_key_then_its_address() -> None:
    plain, keyed = request("/"), request("/", "Authorization: Bearer abc")
    assert session_key(keyed, "p", "10.0.0.1") == session_key(plain, "p", "10.0.0.2")
    assert session_key(keyed, None, "10.0.0.1") == session_key(keyed, None, "10.0.0.2")
    assert session_key(plain, None, "10.0.0.1") != session_key(plain, None, "10.0.0.2")
    # Nobody gets to the sessions of others by a text that looks like theirs.
    assert len({session_key(plain, "key:Bearer abc", "x"), session_key(keyed, None, "x"), session_key(plain, None, "prefix:p")}) == 3
