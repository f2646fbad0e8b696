"""Drivers: what runs a batch on a device."""

from pie.backends.opening import BACKENDS, open_driver

__all__ = ["BACKENDS", "open_driver"]
