"""Drivers: what runs a batch on a device."""
