"""Adapters by name: what the engine knows their weights by, and how that follows from what was done to them."""

from __future__ import annotations

import hashlib
import struct
import unicodedata
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .dummy import MASK, Write
from .errors import RefusedError

if TYPE_CHECKING:
    from .forward import Pass
    from .program import Context
    from .stepping import Generation

Op = dict[str, Any]

MAX_NAME_BYTES = 256
MAX_RANK = 512
MAX_PATH_BYTES = 4096


def written_by_dummy(kind: str, *parts: bytes) -> bytes:
    """What weights are known by that the dummy driver has made: its files hold the digest of how they came about."""
    adapter, version = struct.unpack_from("<QI", recipe(kind, *parts))
    config = f'{{"peft_type":"LORA","dummy":"{max(adapter, 1):016x}-{version:08x}"}}'
    files = (config.encode(), struct.pack("<Q", 2) + b"{}")
    return recipe("files", *(hashlib.sha256(file).digest() for file in files))


def recipe(kind: str, *parts: bytes) -> bytes:
    """The digest of how weights came about."""
    digest = hashlib.sha256()
    for part in (kind.encode(), *parts):
        digest.update(struct.pack("<Q", len(part)) + part)
    return digest.digest()


@dataclass(frozen=True)
class Use:
    """What tokens are computed with."""

    weights: bytes
    zo_seed: int | None = None

    def of(self, write: Write) -> Write:
        """A token as it is written with this."""
        adapter, version = struct.unpack_from("<QI", self.weights)
        return replace(write, adapter=max(adapter, 1), version=version, zo_seed=None if self.zo_seed is None else self.zo_seed & MASK)


def written(context: Context, start: int, end: int, use: Use | None) -> None:
    """The tokens of these slots are computed with an adapter, or without one."""
    for slot in range(start, end):
        write = context.writes.get(slot) or Write(context.tokens[slot], slot)
        if use is not None:
            context.writes[slot] = use.of(write)


def place(path: str) -> str:
    """A path within /scratch; one that leads elsewhere is refused."""
    parts = [part for part in path.removeprefix("/scratch").split("/") if part not in ("", ".")]
    is_elsewhere = path.startswith("/") and not path.startswith("/scratch/")
    if is_elsewhere or not parts or ".." in parts or "\0" in path or len(path.encode()) > MAX_PATH_BYTES:
        raise RefusedError("invalid-argument")
    return "/".join(parts)


class AdapterOps:
    """The operations on adapters, of a program that has `passes` and `generators`."""

    def __init__(self) -> None:
        self.adapters: dict[str, bytes] = {}
        """The weights of each name."""
        self.adapter_handles: dict[str, str] = {}
        """The name behind each handle."""
        self.saved_adapters: dict[str, bytes] = {}
        """By the path within /scratch: the weights whose files lie there."""

    def check_adapter(self, name: str) -> None:
        """A name that an adapter can be given."""
        if not 0 < len(name.encode()) <= MAX_NAME_BYTES or any(unicodedata.category(character) == "Cc" for character in name):
            raise RefusedError("invalid-argument")
        if name in self.adapters:
            raise RefusedError("adapter-exists")

    def weights(self, op: Op) -> bytes:
        """Those of the adapter that an operation names."""
        found = self.adapters.get(self.adapter_handles[op["adapter"]])
        if found is None:
            raise RefusedError("adapter-missing")
        return found

    def op_adapter(self, op: Op) -> None:
        rank, alpha = op.get("rank", 8), op.get("alpha", 16)
        if not 1 <= rank <= MAX_RANK:
            raise RefusedError("invalid-argument")
        self.check_adapter(op["name"])
        self.adapters[op["name"]] = written_by_dummy("create", struct.pack("<I", rank), struct.pack("<f", alpha))
        self.adapter_handles[op["as"]] = op["name"]

    def op_adapter_open(self, op: Op) -> bool:
        if op["name"] in self.adapters:
            self.adapter_handles[op["as"]] = op["name"]
        return op["name"] in self.adapters

    def op_adapter_names(self, _op: Op) -> list[str]:
        return sorted(self.adapters)

    def op_adapter_fork(self, op: Op) -> None:
        weights = self.weights(op)
        self.check_adapter(op["name"])
        self.adapters[op["name"]] = weights
        self.adapter_handles[op["as"]] = op["name"]

    def op_adapter_change(self, op: Op) -> None:
        weights, sigma = self.weights(op), op.get("sigma")
        if sigma is not None and not 0 <= sigma <= 1e9:
            raise RefusedError("invalid-argument")
        changes = b"".join(struct.pack("<qf", seed, factor) for seed, factor in op["changes"])
        changed = written_by_dummy("change", weights, b"" if sigma is None else struct.pack("<f", sigma), changes)
        self.adapters[self.adapter_handles[op["adapter"]]] = changed

    def op_adapter_destroy(self, op: Op) -> None:
        self.weights(op)
        del self.adapters[self.adapter_handles[op["adapter"]]]

    def op_adapter_save(self, op: Op) -> None:
        weights = self.weights(op)
        self.saved_adapters[place(op["path"])] = weights

    def op_adapter_load(self, op: Op) -> None:
        self.weights(op)
        saved = self.saved_adapters.get(place(op["path"]))
        if saved is None:
            raise RefusedError("invalid-adapter")
        self.adapters[self.adapter_handles[op["adapter"]]] = saved

    def op_use_adapter(self, op: Op) -> None:
        generation: Generation = self.generator(op)
        generation.adapter = self.weights(op)

    def op_pass_adapter(self, op: Op) -> None:
        made: Pass = self.drafted(op)
        made.adapter = self.weights(op)
