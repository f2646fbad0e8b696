"""The command line."""

from pie.cli.app import main

__all__ = ["main"]
