"""Paths of Python files behind the folders that they are imported from: a file that is written tells no others."""

from __future__ import annotations

import functools
import os
import re
import sys

_FILE = re.compile(r'(?<=File ")[^"]+(?=")')


class SourcePaths:
    """Stack traces without the folders of this machine, as far as sys.path tells; the core knows the usual ones."""

    def __init__(self) -> None:
        roots = {os.path.join(os.path.abspath(folder), "") for folder in sys.path if folder}
        self._roots = sorted(roots, key=len, reverse=True)
        self._here = os.path.join(os.getcwd(), "")
        self._cut = functools.cache(self._cut_path)

    def shortened(self, trace: str) -> str:
        return _FILE.sub(lambda found: self._cut(found[0]), trace)

    def _cut_path(self, path: str) -> str:
        if path.startswith(self._here) or "-packages" in path:
            return path
        root = next((root for root in self._roots if path.startswith(root)), "")
        return path[len(root) :]
