"""Which replica a session goes to: the same one for the same key, as long as it lives.

By rendezvous hashing each key has an order of all replicas. A replica that is gone moves its own keys alone, each to
the next one of its order.
"""

from __future__ import annotations

from hashlib import blake2b


def order(key: bytes, n_replicas: int) -> list[int]:
    """All replicas, the one of that key first."""
    return sorted(range(n_replicas), key=lambda index: _weight(key, index), reverse=True)


def _weight(key: bytes, index: int) -> bytes:
    return blake2b(key, digest_size=16, person=index.to_bytes(8, "little")).digest()
