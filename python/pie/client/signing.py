"""Proving who one is to a server: an API key, or the signature of a private key."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from pie.errors import PieError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

_KEY = re.compile(r"(pie_[0-9a-f]{12}_[0-9a-f]{64})([0-9a-f]{8})")
_MAX_FILE_BYTES = 64 << 10
_OPENSSH = b"-----BEGIN OPENSSH PRIVATE KEY-----"
# How the public half of a key begins, in a line of OpenSSH, in PEM, and in the format of SSH2.
_PUBLIC = re.compile(rb"\s*(?:(?:sk-)?(?:ssh|ecdsa)-\w|-{4,5} ?BEGIN [A-Z0-9 ]*PUBLIC KEY)")
# What every signed text begins with, so that a signature is good for nothing else.
_SIGNED_BEFORE = "pie hello 1"


def check_key(key: str) -> str:
    """The API key, without what a file or a terminal adds.

    PieError `invalid-argument`, without the key, where it is damaged.
    """
    key = key.strip()
    match = _KEY.fullmatch(key)
    if match is None or hashlib.sha256(match[1].encode()).hexdigest()[:8] != match[2]:
        message = "this is not a whole API key: it begins with pie_, has 89 characters and ends with a checksum; copy it again"
        raise PieError("invalid-argument", message, {"argument": "key"})
    return key


def read_key(path: Path) -> str:
    """The API key in a file. PieError `invalid-argument` where it cannot be read or holds none."""
    try:
        return check_key(_read(path, "key").decode())
    except (PieError, UnicodeDecodeError) as error:
        reason = error.message if isinstance(error, PieError) else "it is not text"
        raise PieError("invalid-argument", f"the key file {str(path)!r} cannot be used: {reason}", {"argument": "key_file"}) from None


class PrivateKey:
    """A private key whose public half the operator of a server has added.

    It is Ed25519, ECDSA with P-256 or P-384, or RSA.
    """

    def __init__(self, key: PrivateKeyTypes) -> None:
        """Wraps a key of the package `cryptography`. PieError `invalid-argument` for one of another kind."""
        self._key = key
        self._sign = _signer(key)

    @classmethod
    def parse(cls, text: str | bytes) -> PrivateKey:
        """Reads a key in the format of OpenSSH, PKCS #8 or PKCS #1 (PEM), without a passphrase.

        Raises PieError `invalid-argument` where it is none or has a passphrase, `unsupported` where the package
        `cryptography` is missing.
        """
        data = text.encode() if isinstance(text, str) else text
        if _PUBLIC.match(data):
            half = "this is the public half of a key, which the operator of a server adds"
            message = f"{half}; give the private half, which lies in the file without .pub"
            raise PieError("invalid-argument", message, {"argument": "private_key"})
        try:
            from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415  # optional, and slow to import
            from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_ssh_private_key  # noqa: PLC0415
        except ImportError as error:
            message = "signing needs the package cryptography; install pie-engine[keys], or use an API key"
            raise PieError("unsupported", message) from error
        try:
            load = load_ssh_private_key if data.lstrip().startswith(_OPENSSH) else load_pem_private_key
            return cls(load(data.strip() + b"\n", password=None))
        except TypeError as error:
            message = "the private key has a passphrase; give one without (`ssh-keygen -p` removes it from a copy), or use an API key"
            raise PieError("invalid-argument", message, {"argument": "private_key"}) from error
        except (ValueError, UnsupportedAlgorithm) as error:
            message = "this is not a private key that can be read; give one that `ssh-keygen -t ed25519` makes"
            raise PieError("invalid-argument", message, {"argument": "private_key"}) from error

    @classmethod
    def load(cls, path: str | Path) -> PrivateKey:
        """Reads the key in a file; as `parse` otherwise."""
        return cls.parse(_read(Path(path), "private key"))

    @property
    def public_line(self) -> str:
        """The public half, as a line of OpenSSH."""
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat  # noqa: PLC0415

        return self._key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()

    def sign_hello(self, *, host: str, user: str, nonce: str) -> str:
        """The answer to a challenge of the server that was called `host`."""
        message = f"{_SIGNED_BEFORE}\n{host}\n{user}\n{nonce}\n"
        return base64.b64encode(self._sign(message.encode())).decode()


def _signer(key: PrivateKeyTypes) -> Callable[[bytes], bytes]:
    from cryptography.hazmat.primitives import hashes  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa  # noqa: PLC0415

    match key:
        case ed25519.Ed25519PrivateKey():
            return key.sign
        case rsa.RSAPrivateKey():
            return lambda message: key.sign(message, padding.PKCS1v15(), hashes.SHA256())
        case ec.EllipticCurvePrivateKey(curve=ec.SECP256R1()):
            return lambda message: key.sign(message, ec.ECDSA(hashes.SHA256()))
        case ec.EllipticCurvePrivateKey(curve=ec.SECP384R1()):
            return lambda message: key.sign(message, ec.ECDSA(hashes.SHA384()))
    message = f"a key of the kind {type(key).__name__} cannot be used; give Ed25519, ECDSA with P-256 or P-384, or RSA"
    raise PieError("invalid-argument", message, {"argument": "private_key"})


def _read(path: Path, what: str) -> bytes:
    try:
        if path.is_dir():
            raise PieError("invalid-argument", f"{str(path)!r} is a folder; give the file with the {what}")
        if not path.is_file():
            raise PieError("invalid-argument", f"there is no file {str(path)!r} with a {what}; check the path")
        with path.open("rb") as file:
            return file.read(_MAX_FILE_BYTES)
    except OSError as error:
        message = f"the {what} in {str(path)!r} cannot be read ({error.strerror}); check its permissions"
        raise PieError("invalid-argument", message) from error
