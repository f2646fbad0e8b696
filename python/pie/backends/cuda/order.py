"""What the process of a rank is started with."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Order:
    """What a rank has to know."""

    folder: str
    """The model."""
    options: Mapping[str, Any]
    """Those of the driver."""
    rank: int
    parent: int
    """The process of the first rank."""
    meeting: str
    """The file by which ranks find each other."""
    connection: int
    """The socket to the first rank."""
    path: Sequence[str]
    """Where modules are imported from."""

    def written(self) -> str:
        """As an argument of the command line."""
        return json.dumps(asdict(self))
