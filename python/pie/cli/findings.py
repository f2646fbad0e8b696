"""What a look at one thing found: a line of `pie doctor`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Literal

from pie.cli.terminal import plain, styled

Verdict = Literal["ok", "warn", "fail"]

_STYLES = {"ok": "green", "warn": "bold yellow", "fail": "bold red"}


@dataclass(frozen=True)
class Finding:
    """What a look at one thing found; the detail of one that is not ok ends with the remedy."""

    verdict: Verdict
    what: str
    detail: str

    def tell(self) -> None:
        """Prints it as a line, in the colour of its verdict where a terminal has some."""
        verdict = styled(f"{self.verdict:4}", _STYLES[self.verdict], sys.stdout)
        print(f"{verdict}  {self.what:14}  {plain(self.detail)}", flush=True)
