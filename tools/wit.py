"""The WIT interfaces of programs as data, read by the parser that the bindings are made with (`tools/wit_json`)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tools.toolchain  # noqa: F401  # found by the line above; it makes `pie` importable
from pie.bakery.toolchain.machine import cache_folder
from tools.generated import ROOT

PACKAGES = ("pie:core", "pie:instruct", "pie:mcp")
WORLD = "capabilities"
PARSER = ROOT / "tools" / "wit_json"


@dataclass(frozen=True)
class List:
    """`list<item>`."""

    item: Type


@dataclass(frozen=True)
class Option:
    """`option<item>`."""

    item: Type


@dataclass(frozen=True)
class Tuple:
    """`tuple<items>`."""

    items: tuple[Type, ...]


@dataclass(frozen=True)
class Result:
    """`result<ok, error>`."""

    ok: Type | None


@dataclass(frozen=True)
class Handle:
    """A resource, handed over or lent."""

    interface: str
    name: str
    is_lent: bool

    @property
    def is_future(self) -> bool:
        """Whether it is awaited."""
        return self.name.startswith("future-")


@dataclass(frozen=True)
class Record:
    """Named fields."""

    interface: str
    name: str
    fields: tuple[tuple[str, Type], ...]


@dataclass(frozen=True)
class Enum:
    """Names."""

    interface: str
    name: str
    cases: tuple[str, ...]


@dataclass(frozen=True)
class Variant:
    """Names, some with a value."""

    interface: str
    name: str
    cases: tuple[tuple[str, Type | None], ...]


Type = str | List | Option | Tuple | Result | Handle | Record | Enum | Variant
"""A string is the name of a primitive type."""


@dataclass(frozen=True)
class Function:
    """A function of an interface, or one of a resource."""

    interface: str
    resource: str | None
    name: str
    is_static: bool
    params: tuple[tuple[str, Type], ...]
    """Without the resource itself."""
    result: Type | None

    @property
    def path(self) -> str:
        """Its name in full, such as `context.context.fork`."""
        return ".".join(part for part in (self.interface, self.resource, self.name) if part)


@dataclass(frozen=True)
class Interface:
    """An interface with what stands in it, in the order of the file."""

    package: str
    """Its name alone, such as `core`."""
    name: str
    resources: tuple[str, ...]
    functions: tuple[Function, ...]


@cache
def interfaces(folder: Path = ROOT / "wit") -> tuple[Interface, ...]:
    """Ours of those that every program may call, in the order of the world."""
    return parsed(_parse(folder))


def functions(folder: Path = ROOT / "wit") -> tuple[Function, ...]:
    """Every function of those interfaces, the two of each future left out: awaiting is one function in each SDK."""
    every = (function for interface in interfaces(folder) for function in interface.functions)
    return tuple(function for function in every if not (function.resource or "").startswith("future-"))


def parsed(tree: dict[str, Any]) -> tuple[Interface, ...]:
    """The same from what the parser wrote."""
    world = next(world for world in tree["worlds"] if world["name"] == WORLD)
    found = (tree["interfaces"][item["interface"]["id"]] for item in world["imports"].values())
    ours = ((raw, tree["packages"][raw["package"]]["name"].partition("@")[0]) for raw in found)
    return tuple(_Reader(tree, raw["name"]).interface(raw, package) for raw, package in ours if package in PACKAGES)


def _parse(folder: Path) -> dict[str, Any]:
    target = Path(os.environ.get("CARGO_TARGET_DIR") or cache_folder() / "target") / "wit-json"
    command = [
        "cargo",
        "run",
        "--release",
        "--locked",
        "--quiet",
        "--manifest-path",
        str(PARSER / "Cargo.toml"),
        "--",
        str(folder),
    ]
    done = subprocess.run(command, env={**os.environ, "CARGO_TARGET_DIR": str(target)}, stdout=subprocess.PIPE, check=True)
    tree: dict[str, Any] = json.loads(done.stdout)
    return tree


class _Reader:
    """Reads one interface. Types stand in a table, and name each other by their places in it."""

    def __init__(self, tree: dict[str, Any], interface: str) -> None:
        self._types = tree["types"]
        self._interfaces = tree["interfaces"]
        self._name = interface

    def interface(self, raw: dict[str, Any], package: str) -> Interface:
        resources = tuple(name for name, index in raw["types"].items() if self._types[index]["kind"] == "resource")
        functions = tuple(self._function(function) for function in raw["functions"].values())
        return Interface(package.partition(":")[2], self._name, resources, functions)

    def _function(self, raw: dict[str, Any]) -> Function:
        kind, params = raw["kind"], raw["params"]
        (how, index) = next(iter(kind.items())) if isinstance(kind, dict) else (kind, None)
        assert how in {"freestanding", "method", "static"}, f"{raw['name']} is a {how}: write a static function"
        resource = None if index is None else self._types[index]["name"]
        taken = tuple((param["name"], self.type(param["type"])) for param in params[1 if how == "method" else 0 :])
        result = None if raw.get("result") is None else self.type(raw["result"])
        return Function(self._name, resource, raw["name"].rpartition(".")[2], how == "static", taken, result)

    def type(self, place: str | int) -> Type:
        if isinstance(place, str):
            return place
        raw = self._types[place]
        if raw["kind"] == "resource":
            return Handle(self._owner(raw), raw["name"], is_lent=False)
        (kind, content), *_ = raw["kind"].items()
        match kind:
            case "type":
                return self.type(content)
            case "list":
                return List(self.type(content))
            case "option":
                return Option(self.type(content))
            case "tuple":
                return Tuple(tuple(map(self.type, content["types"])))
            case "result":
                return Result(None if content["ok"] is None else self.type(content["ok"]))
            case "handle":
                (how, resource), *_ = content.items()
                named = self.type(resource)
                assert isinstance(named, Handle)
                return Handle(named.interface, named.name, is_lent=how == "borrow")
            case "record":
                return Record(
                    self._owner(raw),
                    raw["name"],
                    tuple((field["name"], self.type(field["type"])) for field in content["fields"]),
                )
            case "enum":
                return Enum(self._owner(raw), raw["name"], tuple(case["name"] for case in content["cases"]))
            case "variant":
                cases = ((case["name"], None if case["type"] is None else self.type(case["type"])) for case in content["cases"])
                return Variant(self._owner(raw), raw["name"], tuple(cases))
        raise NotImplementedError(f"{self._name} uses a {kind}, which no SDK has had to carry yet")

    def _owner(self, raw: dict[str, Any]) -> str:
        name: str = self._interfaces[raw["owner"]["interface"]]["name"]
        return name
