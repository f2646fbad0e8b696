"""Writes how the JavaScript runtime lends the engine to the SDK: the bridge in Rust and its types, from the WIT.

`python tools/gen_js_bridge.py` writes; `--check` writes nothing and fails where a file is out of step.

Names become those of JavaScript: the function `cue-tokens` is `cueTokens`, the static function `create` of `context` is
`contextCreate`, its methods are methods of a `ContextHandle`. A result throws its error; a record is an object; an enum
is a string; a variant is `{ type, value }`; a future is waited for by a callback.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tools import generated
from tools.generated import ROOT
from tools.wit import Enum, Function, Handle, Interface, List, Option, Record, Result, Tuple, Type, Variant, interfaces

TYPINGS = ROOT / "js" / "inferlet" / "src" / "host.d.ts"
BRIDGE = ROOT / "rust" / "js-runtime" / "src" / "bridge" / "engine.rs"
HEADER = "Generated from wit/ by tools/gen_js_bridge.py; do not edit."

TS_PRIMITIVES = {
    "bool": "boolean",
    "u32": "number",
    "f32": "number",
    "f64": "number",
    "u64": "bigint",
    "s64": "bigint",
    "string": "string",
}
TS_ARRAYS = {"u8": "Uint8Array", "u32": "Uint32Array", "f32": "Float32Array"}
RUST_PRIMITIVES = {
    "bool": "bool",
    "u8": "u8",
    "u32": "u32",
    "f32": "f32",
    "f64": "f64",
    "u64": "u64",
    "s64": "i64",
    "string": "String",
}


def snake(name: str) -> str:
    """As Rust names it."""
    return name.replace("-", "_")


def pascal(name: str) -> str:
    """As both name a type."""
    return "".join(part.capitalize() for part in name.split("-"))


def camel(name: str) -> str:
    """As JavaScript names it."""
    first, *others = name.split("-")
    return first + "".join(part.capitalize() for part in others)


def export_name(function: Function) -> str:
    """The name of what is no method."""
    return camel(function.name if function.resource is None else f"{function.resource}-{function.name}")


def awaited(function: Function) -> Handle | None:
    """The future that it answers with."""
    return function.result if isinstance(function.result, Handle) and function.result.is_future else None


def answer_of(future: Handle) -> Type | None:
    """What a future gives in the end."""
    get = next(
        function
        for interface in interfaces()
        for function in interface.functions
        if (interface.name, function.resource, function.name) == (future.interface, future.name, "get")
    )
    assert isinstance(get.result, Option)
    assert isinstance(get.result.item, Result)
    return get.result.item.ok


def parts(type_: Type | None) -> Iterator[Type]:
    """A type with those inside of it, the inner ones first."""
    match type_:
        case None:
            return
        case List(item) | Option(item):
            yield from parts(item)
        case Tuple(items):
            for item in items:
                yield from parts(item)
        case Result(ok):
            yield from parts(ok)
        case Record(fields=fields):
            for _, field in fields:
                yield from parts(field)
        case Variant(cases=cases):
            for _, value in cases:
                yield from parts(value)
    yield type_


def named(types: Iterable[Type | None]) -> list[Record | Enum | Variant]:
    """The records, enums and variants in these, each once."""
    every = (part for type_ in types for part in parts(type_))
    return list(dict.fromkeys(part for part in every if isinstance(part, Record | Enum | Variant)))


def taken(every: Iterable[Function]) -> list[Record | Enum | Variant]:
    """What crosses from JavaScript."""
    return named(type_ for function in every for _, type_ in function.params)


def given(every: Iterable[Function]) -> list[Record | Enum | Variant]:
    """What crosses to JavaScript."""
    return named(answer_of(future) if (future := awaited(function)) else function.result for function in every)


def listed(every: Iterable[Function]) -> list[Record | Enum | Variant]:
    """What crosses to JavaScript in a list."""
    results = (answer_of(future) if (future := awaited(function)) else function.result for function in every)
    lists = (part.item for type_ in results for part in parts(type_) if isinstance(part, List))
    return list(dict.fromkeys(item for item in lists if isinstance(item, Record | Enum | Variant)))


def listed_in(every: Iterable[Function]) -> list[Record | Enum | Variant]:
    """What crosses from JavaScript in a list."""
    lists = (part.item for function in every for _, type_ in function.params for part in parts(type_) if isinstance(part, List))
    return list(dict.fromkeys(item for item in lists if isinstance(item, Record | Enum | Variant)))


def typings(every: tuple[Interface, ...]) -> str:
    """The declaration of `pie:host` as far as it is the engine."""
    lines = [f"// {HEADER} Each item is documented where the WIT is.", "", "declare module 'pie:host' {"]
    functions = [function for interface in every for function in interface.functions if _is_lent(function)]
    for type_ in dict.fromkeys([*taken(functions), *given(functions)]):
        lines += [f"  {line}".rstrip() for line in _declared(type_)]
        lines.append("")
    for interface in every:
        for resource in (name for name in interface.resources if not name.startswith("future-")):
            lines.append(f"  export interface {pascal(resource)}Handle {{")
            methods = (function for function in interface.functions if _is_method(function, resource))
            lines += [f"    {camel(function.name)}{_signature(function)};" for function in methods]
            lines += ["  }", ""]
    lines += [f"  export function {export_name(function)}{_signature(function)};" for function in functions if _is_export(function)]
    return "\n".join([*lines, "}", ""])


def _is_lent(function: Function) -> bool:
    """Whether JavaScript calls it: futures and pollables belong to the event loop."""
    gives_pollable = isinstance(function.result, Handle) and function.result.name == "pollable"
    return not (function.resource or "").startswith("future-") and not gives_pollable


def _is_method(function: Function, resource: str) -> bool:
    return function.resource == resource and not function.is_static and _is_lent(function)


def _is_export(function: Function) -> bool:
    return function.resource is None or function.is_static


def _declared(type_: Record | Enum | Variant) -> list[str]:
    name = pascal(type_.name)
    match type_:
        case Record(fields=fields):
            return [
                f"export interface {name} {{",
                *(f"  readonly {camel(field)}: {ts(kind)};" for field, kind in fields),
                "}",
            ]
        case Enum(cases=cases):
            return [f"export type {name} = {' | '.join(map(repr, cases))};"]
        case Variant(cases=values):
            shapes = [
                f"  | {{ readonly type: '{case}'" + ("" if value is None else f"; readonly value: {ts(value)}") + " }"
                for case, value in values
            ]
            return [f"export type {name} =", *shapes[:-1], f"{shapes[-1]};"]


def _signature(function: Function) -> str:
    params = [f"{camel(name)}: {ts(type_)}" for name, type_ in function.params]
    future = awaited(function)
    if future is not None:
        return f"({', '.join([*params, f'settle: Settle<{ts(answer_of(future))}>'])}): Wait"
    return f"({', '.join(params)}): {ts(function.result)}"


def ts(type_: Type | None) -> str:
    """The type in TypeScript."""
    match type_:
        case None:
            return "void"
        case str():
            return TS_PRIMITIVES[type_]
        case List(str() as item) if item in TS_ARRAYS:
            return TS_ARRAYS[item]
        case List(item):
            return f"{ts(item)}[]"
        case Option(item):
            return f"{ts(item)} | undefined"
        case Tuple(items):
            return f"[{', '.join(map(ts, items))}]"
        case Result(ok):
            return ts(ok)
        case Handle(name=name):
            return f"{pascal(name)}Handle"
        case Record(name=name) | Enum(name=name) | Variant(name=name):
            return pascal(name)


def bridge(every: tuple[Interface, ...]) -> str:
    """The bridge in Rust."""
    functions = [function for interface in every for function in interface.functions if _is_lent(function)]
    exports = [function for function in functions if _is_export(function)]
    names = [export_name(function) for function in exports]
    twice = {name for name in names if names.count(name) > 1}
    assert not twice, f"functions of two interfaces would both be {', '.join(sorted(twice))}: name one of them otherwise"
    lines = [
        f"//! {HEADER} The engine, as `pie:host` lends it.",
        "",
        "use rquickjs::{Class, Ctx, Function, Object, Result, Value};",
        "",
        "use super::Export;",
        "use super::resource::{Resource, awaited, handle, wait};",
        "use super::values::{Read, Write, field, listed, listed_in, read, unknown, variant};",
    ]
    for package in sorted({interface.package for interface in every}):
        modules = sorted(snake(interface.name) for interface in every if interface.package == package and interface.name != "types")
        lines.append(f"use crate::bindings::pie::{package}::{{{', '.join(modules)}}};")
    lines += ["use crate::event_loop::WaitHandle;", "", "pub(super) const EXPORTS: &[Export] = &["]
    lines += [f'super::export!("{export_name(function)}", {_rust_name(function)}),' for function in exports]
    lines += ["];", ""]
    for interface in every:
        for resource in interface.resources:
            path = f"{snake(interface.name)}::{pascal(resource)}"
            if resource.startswith("future-"):
                lines += [f"awaited!({path});", ""]
                continue
            lines += [
                f"handle!({pascal(resource)}Handle, {path});",
                "",
                '#[rquickjs::methods(rename_all = "camelCase")]',
            ]
            lines.append(f"impl {pascal(resource)}Handle {{")
            for function in interface.functions:
                if _is_method(function, resource):
                    lines += [*_wrapper(function, "&self", snake(function.name)), ""]
            lines += ["}", ""]
    for function in exports:
        lines += [*_wrapper(function, None, _rust_name(function)), ""]
    for type_ in taken(functions):
        lines += [*_reading(type_), ""]
    for type_ in given(functions):
        lines += [*_writing(type_), ""]
    lines += [f"listed!({rust(type_)});" for type_ in listed(functions)]
    lines += [f"listed_in!({rust(type_)});" for type_ in listed_in(functions)]
    return _formatted("\n".join(lines))


def _rust_name(function: Function) -> str:
    return snake(function.name if function.resource is None else f"{function.resource}-{function.name}")


def _wrapper(function: Function, receiver: str | None, name: str) -> list[str]:
    """A function that reads its arguments, calls the engine, and writes what it answers."""
    future = awaited(function)
    made = function.result.ok if isinstance(function.result, Result) else function.result
    lent = [snake(param) for param, type_ in function.params if isinstance(type_, Handle)]
    params = [*([receiver] if receiver else []), "ctx: Ctx<'js>"]
    params += [
        f"{snake(param)}: Class<'js, {pascal(type_.name)}Handle>" if isinstance(type_, Handle) else f"{snake(param)}: Value<'js>"
        for param, type_ in function.params
    ]
    module = snake(function.interface)
    callee = f"{module}::{pascal(function.resource)}::{snake(function.name)}" if function.resource else f"{module}::{snake(function.name)}"
    callee = f"self.held.raw.{snake(function.name)}" if receiver else callee
    call = f"{callee}({', '.join(_argument(snake(param), type_) for param, type_ in function.params)})"
    held = [f"let {param} = {param}.borrow().held.clone();" for param in lent]
    if future is not None:
        # What it waits for may work on what was lent to it.
        owners = [*(["self.held.clone()"] if receiver else []), *lent]
        owner = owners[0] if len(owners) == 1 else f"({', '.join(owners)})"
        answer, body = "WaitHandle", [f"wait(&ctx, {call}, {owner}, settle)"]
        params.append("settle: Function<'js>")
    elif function.is_static and isinstance(made, Handle) and lent:
        # What is made of a thing works on it: it lives as long, whatever else the program keeps.
        assert len(lent) == 1, f"{function.path} makes a resource of two others: the bridge would have to keep both"
        fails = isinstance(function.result, Result)
        answer = "Value<'js>"
        body = [f"let made = {call}{f'.map(|made| Resource::of(made, {lent[0]}))' if fails else ''};"]
        body.append("made.write(&ctx)" if fails else f"Resource::of(made, {lent[0]}).write(&ctx)")
    else:
        answer, body = "Value<'js>", [f"{call}.write(&ctx)"]
    return [f"fn {name}<'js>({', '.join(params)}) -> Result<{answer}> {{", *held, *body, "}"]


def _argument(name: str, type_: Type) -> str:
    if isinstance(type_, Handle):
        return f"&{name}.raw"
    if type_ == Option("string"):
        return f"read::<{rust(type_)}>(&ctx, {name})?.as_deref()"
    return f"{'&' if _is_on_heap(type_) else ''}read::<{rust(type_)}>(&ctx, {name})?"


def _is_on_heap(type_: Type) -> bool:
    """Whether the bindings take it by reference."""
    return any(part == "string" or isinstance(part, List) for part in parts(type_))


def rust(type_: Type) -> str:
    """The type in Rust, owned."""
    match type_:
        case str():
            return RUST_PRIMITIVES[type_]
        case List(item):
            return f"Vec<{rust(item)}>"
        case Option(item):
            return f"Option<{rust(item)}>"
        case Record() | Enum() | Variant():
            return f"{snake(type_.interface)}::{pascal(type_.name)}"
    raise NotImplementedError(f"no program has had to hand over {type_} yet")


def _reading(type_: Record | Enum | Variant) -> list[str]:
    head = [f"impl Read for {rust(type_)} {{", "fn read<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> Result<Self> {"]
    match type_:
        case Record(fields=fields):
            body = ["let object: Object<'js> = value.get()?;", "Ok(Self {"]
            body += [f'{snake(name)}: field(ctx, &object, "{camel(name)}")?,' for name, _ in fields]
            body.append("})")
        case Enum(name=name, cases=cases):
            body = [
                "match &*read::<String>(ctx, value)? {",
                *(f'"{case}" => Ok(Self::{pascal(case)}),' for case in cases),
            ]
            body += [
                f'other => Err(unknown(ctx, "{name}", other, &[{", ".join(f"{chr(34)}{case}{chr(34)}" for case in cases)}])),',
                "}",
            ]
        case Variant(name=name, cases=values):
            body = ["let object: Object<'js> = value.get()?;", 'match &*field::<String>(ctx, &object, "type")? {']
            for case, held in values:
                content = "" if held is None else '(field(ctx, &object, "value")?)'
                body.append(f'"{case}" => Ok(Self::{pascal(case)}{content}),')
            listed_cases = ", ".join(f'"{case}"' for case, _ in values)
            body += [f'other => Err(unknown(ctx, "{name}", other, &[{listed_cases}])),', "}"]
    return [*head, *body, "}", "}"]


def _writing(type_: Record | Enum | Variant) -> list[str]:
    head = [f"impl Write for {rust(type_)} {{", "fn write<'js>(self, ctx: &Ctx<'js>) -> Result<Value<'js>> {"]
    match type_:
        case Record(fields=fields):
            body = ["let object = Object::new(ctx.clone())?;"]
            body += [f'object.set("{camel(name)}", self.{snake(name)}.write(ctx)?)?;' for name, _ in fields]
            body.append("Ok(object.into_value())")
        case Enum(cases=names):
            body = [
                "let name = match self {",
                *(f'Self::{pascal(case)} => "{case}",' for case in names),
                "};",
                "name.write(ctx)",
            ]
        case Variant(cases=cases):
            body = ["match self {"]
            body += [
                f'Self::{pascal(case)} => variant(ctx, "{case}", None::<()>),'
                if value is None
                else f'Self::{pascal(case)}(value) => variant(ctx, "{case}", Some(value)),'
                for case, value in cases
            ]
            body.append("}")
    return [*head, *body, "}", "}"]


def _formatted(text: str) -> str:
    done = subprocess.run(["rustfmt", "--edition", "2024"], input=text, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout


def files() -> dict[Path, str]:
    """Every file with its content."""
    every = interfaces()
    return {TYPINGS: typings(every), BRIDGE: bridge(every)}


if __name__ == "__main__":
    sys.exit(generated.main(files(), source="wit/", description=__doc__))
