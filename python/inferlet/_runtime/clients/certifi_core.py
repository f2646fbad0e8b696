"""`certifi`, whose file of certificates lies nowhere that a program could read: the engine has those that count."""

from __future__ import annotations

from types import ModuleType


def adapt(module: ModuleType) -> None:
    """Names the file as it lies in the package, without looking for it."""
    module.where = lambda: "certifi/cacert.pem"  # type: ignore[attr-defined]
