"""The reference back end: torch, one plain line an operation.

The truth that the others are tested against, and slow.
"""

from pie.backends.reference.driver import ReferenceDriver, open_driver

__all__ = ["ReferenceDriver", "open_driver"]
