"""Drivers: what runs a batch on a device."""

from pie.backends.opening import BACKENDS, check_own, open_driver

__all__ = ["BACKENDS", "check_own", "open_driver"]
