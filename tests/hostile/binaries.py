"""WebAssembly by the byte: components whose parts are many, or that stop in the middle."""

from __future__ import annotations

_MODULE = b"\0asm\x01\0\0\0"
_COMPONENT = b"\0asm\x0d\0\x01\0"
_I32 = 0x7F
_END = 0x0B
_DROP = 0x1A
_LOOP = b"\x03\x40"
_I32_CONST = 0x41
_I32_ADD = 0x6A


def _number(value: int) -> bytes:
    """LEB128, unsigned."""
    encoded = b""
    while value > 0x7F:
        encoded += bytes([value & 0x7F | 0x80])
        value >>= 7
    return encoded + bytes([value])


def _section(kind: int, content: bytes) -> bytes:
    return bytes([kind]) + _number(len(content)) + content


def module(*, n_functions: int = 0, n_locals: int = 0, n_sums: int = 0) -> bytes:
    """A core module with functions that declare locals and compute a chain of sums."""
    locals_ = b"\x01" + _number(n_locals) + bytes([_I32]) if n_locals else b"\0"
    sums = bytes([_I32_CONST, 1]) + bytes([_I32_CONST, 2, _I32_ADD]) * n_sums + bytes([_DROP]) if n_sums else b""
    body = locals_ + sums + bytes([_END])
    body = _number(len(body)) + body
    return (
        _MODULE
        + _section(1, b"\x01\x60\0\0")
        + _section(3, _number(n_functions) + b"\0" * n_functions)
        + _section(10, _number(n_functions) + body * n_functions)
    )


def component(*modules: bytes) -> bytes:
    """A component that holds core modules."""
    return _COMPONENT + b"".join(_section(1, module) for module in modules)


def nested(depth: int) -> bytes:
    """Components within one another."""
    inner = component()
    for _ in range(depth):
        inner = _COMPONENT + _section(4, inner)
    return inner


def loops(depth: int, number: int = 0) -> bytes:
    """A core module whose one function has loops within one another; those of other numbers have other bytes."""
    body = b"\0" + bytes([_I32_CONST]) + _number(number) + bytes([_DROP]) + _LOOP * depth + bytes([_END]) * (depth + 1)
    return _MODULE + _section(1, b"\x01\x60\0\0") + _section(3, b"\x01\0") + _section(10, b"\x01" + _number(len(body)) + body)
