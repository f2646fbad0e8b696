"""`pie key`: the keys by which clients come in, in the data folder of a server.

A running server sees a change within a second.
"""

from __future__ import annotations

import base64
import hashlib
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pie.cli.tables import age, print_json, print_table
from pie.cli.terminal import warn
from pie.errors import PieError

if TYPE_CHECKING:
    from pie.config import Flags

_COLUMNS = ("ID", "NAME", "USER", "SCOPE", "KIND", "MADE", "EXPIRES")
_EXPIRY = re.compile(r"([0-9]{1,9})([smhdwy])")
_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400, "y": 365 * 86_400}
_MAX_FILE_BYTES = 64 << 10


class _Record(msgspec.Struct, frozen=True):
    """A key as the data folder keeps it, but for its digest."""

    id: str
    name: str
    user: str
    scope: str
    created: int
    expires: int | None
    public_key: str | None


_record = msgspec.json.Decoder(_Record)
_records = msgspec.json.Decoder(list[_Record])


def add(  # noqa: PLR0913  # an option each
    flags: Flags, name: str, *, user: str, scope: str, expires: str | None, public_key: Path | None
) -> int:
    """Adds a key. That of a secret is printed, this once; what else there is to say goes to stderr.

    A warning tells of another key of that name and user: it may be what was meant, or what the new one is to replace.
    """
    from pie._engine import add_key, list_keys

    line = None if public_key is None else _read_public(public_key)
    expires_s = None if expires is None else _seconds(expires)
    data_dir = _data_dir(flags)
    before = _records.decode(list_keys(data_dir))
    text, secret = add_key(data_dir, name, user, scope=scope, expires_s=expires_s, public_key=line)
    record = _record.decode(text)
    told = f"key {record.id} of {record.user!r} ({record.scope})"
    if secret is None:
        print(f"{told}: {_kind(record)}", file=sys.stderr)
    else:
        print(f"{told}; it is shown this once, so keep it now, as in a file that client.key_file names", file=sys.stderr)
        print(secret, flush=True)
    _warn_of_others(record, before)
    return 0


def _warn_of_others(added: _Record, before: Sequence[_Record]) -> None:
    """Tells of the last key of the same name and user that is still good."""
    now = time.time()
    same = [one for one in before if (one.name, one.user) == (added.name, added.user) and (one.expires is None or one.expires > now)]
    if same:
        last = same[-1]
        about = f"{last.id} ({last.scope}, {_kind(last)}, made {age(now - last.created)} ago)"
        warn(f"{added.user!r} has another key {added.name!r}, {about}; `pie key revoke {last.id}` takes it away")


def show(flags: Flags, *, as_json: bool) -> int:
    """Prints a line for each key; nothing by which one could come in."""
    from pie._engine import list_keys

    records = _records.decode(list_keys(_data_dir(flags)))
    if as_json:
        print_json(records)
        return 0
    now = time.time()
    print_table(_COLUMNS, [_row(record, now) for record in records])
    return 0


def revoke(flags: Flags, key_id: str) -> int:
    """Takes a key away; whoever came in by it is let go."""
    from pie._engine import revoke_key

    record = _record.decode(revoke_key(_data_dir(flags), key_id))
    print(f"revoked {record.id}, {record.name!r} of {record.user!r}", file=sys.stderr)
    return 0


def _data_dir(flags: Flags) -> str:
    from pie.config import load

    return str(load(flags).engine.data_dir)


def _row(record: _Record, now: float) -> tuple[str, ...]:
    if record.expires is None:
        expires = "never"
    elif record.expires <= now:
        expires = f"{age(now - record.expires)} ago"
    else:
        expires = f"in {age(record.expires - now)}"
    return (record.id, record.name, record.user, record.scope, _kind(record), f"{age(now - record.created)} ago", expires)


def _kind(record: _Record) -> str:
    """`secret`, or the fingerprint of a public key as `ssh-keygen -l` prints it."""
    if record.public_key is None:
        return "secret"
    kind, blob = record.public_key.split()[:2]
    digest = base64.b64encode(hashlib.sha256(base64.b64decode(blob)).digest()).decode().rstrip("=")
    return f"{kind} SHA256:{digest}"


def _seconds(text: str) -> int:
    match = _EXPIRY.fullmatch(text.strip())
    if match is None:
        raise PieError("invalid-argument", f"--expires {text!r} is not a time; give a number and s, m, h, d, w or y, as in 30d")
    return int(match[1]) * _UNITS_S[match[2]]


def _read_public(path: Path) -> str:
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(_MAX_FILE_BYTES)
    except UnicodeDecodeError as error:
        raise PieError(
            "invalid-argument", f"{str(path)!r} is not text; give the public half of a key, as in ~/.ssh/id_ed25519.pub"
        ) from error
    if "PRIVATE KEY" in text:
        message = f"{str(path)!r} is a private key, which no server needs; give its public half, as in {path!s}.pub"
        raise PieError("invalid-argument", message)
    return text
