"""The reference back end: torch, one plain line an operation.

The truth that the others are tested against, and slow.
"""

from pie.backends.base import DriverOptions
from pie.backends.reference.driver import ReferenceDriver, open_driver

OPTIONS = DriverOptions
"""What `open_driver` takes: it has no options of its own."""

__all__ = ["OPTIONS", "ReferenceDriver", "open_driver"]
