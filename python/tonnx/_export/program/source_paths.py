"""Shortens the paths of Python files to those below sys.path, so that written files name no folders of the user."""

from __future__ import annotations

import functools
import os
import re
import sys

_FILE = re.compile(r'(?<=File ")[^"]+(?=")')


class SourcePaths:
    """Shortens stack traces by the folders in sys.path; the core shortens paths in site-packages."""

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
