"""Adapters of back ends: reading and writing them, their noise, and what a driver has loaded."""
