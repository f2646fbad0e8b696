"""What waits for the engine, by the name of older programs; it stands in `inferlet._wait`."""

from __future__ import annotations

from inferlet._wait import EventLoop, block_on, resolve, resolve_or_block

__all__ = ["EventLoop", "block_on", "resolve", "resolve_or_block"]
