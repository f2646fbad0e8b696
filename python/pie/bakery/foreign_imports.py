"""What a Python program imports from elsewhere: neither of the standard library, nor of its own files."""

from __future__ import annotations

import sys
from pathlib import PurePosixPath

from pie.imports import python_imports
from pie.programs import Source

# The Python that runs this may be older than that of programs: modules that came since, and those that are gone.
_ADDED = frozenset({"annotationlib", "compression"})
_REMOVED_NAMES = """
    aifc asynchat asyncore audioop cgi cgitb chunk crypt distutils imghdr imp lib2to3 mailcap msilib nis nntplib ossaudiodev pipes smtpd
    sndhdr spwd sunau telnetlib uu xdrlib
"""
_REMOVED = frozenset(_REMOVED_NAMES.split())
_PROVIDED = frozenset({"inferlet"})
_STANDARD = ((sys.stdlib_module_names | _ADDED) - _REMOVED) | _PROVIDED


def foreign_imports(source: Source) -> list[str]:
    """The top-level modules that a program imports from elsewhere, under conditions too, sorted."""
    paths = [(PurePosixPath(name), content) for name, content in source.files if name.endswith(".py")]
    own = {path.parts[0].removesuffix(".py") for path, _ in paths}
    found: set[str] = set()
    for path, content in paths:
        found.update(name.partition(".")[0] for name in python_imports(path, content.decode("utf-8", "replace")))
    return sorted(name for name in found - own - _STANDARD if name.isidentifier())
