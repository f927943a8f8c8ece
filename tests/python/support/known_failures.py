"""Lists of ONNX node tests that do not pass yet: one `name<TAB>reason` per line, sorted by name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

import tonnx

CHANCE = "a random draw"  # how the reason begins where nobody can say whether the test passes


def read(path: Path) -> dict[str, str]:
    """{name: reason}; an entry without a reason, or named twice, is an error."""
    listed: dict[str, str] = {}
    if not path.exists():
        return listed
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, tab, reason = line.partition("\t")
        if not tab or not reason.strip():
            raise ValueError(f"{path.name}:{number}: no reason given for {name}")
        if name in listed:
            raise ValueError(f"{path.name}:{number}: {name} is listed twice")
        listed[name] = reason.strip()
    return listed


def update(listed: Mapping[str, str], results: Mapping[str, str | None]) -> dict[str, str]:
    """The list after a run: reasons already written are kept, tests that were not run stay as they are."""
    after = dict(listed)
    for name, why in results.items():
        if why is None:
            after.pop(name, None)
        else:
            after.setdefault(name, why)
    return after


def write(path: Path, listed: Mapping[str, str], head: str) -> None:
    path.write_text(f"# {head}\n" + "".join(f"{name}\t{listed[name]}\n" for name in sorted(listed)))


def first_line(error: BaseException) -> str:
    text = (str(error).strip() or type(error).__name__).splitlines()[0].replace("\t", " ")
    return text[:160] if isinstance(error, tonnx.Error) else f"{type(error).__name__}: {text}"[:160]


def judge(why: str | None, reason: str | None) -> None:
    """Ends a test that fails as `why` says, where `reason` is what the list of known failures has for it."""
    if reason is None:
        assert why is None, why
    elif why is None and not reason.startswith(CHANCE):
        pytest.fail("now passes: remove it from the list of known failures")
    else:
        pytest.xfail(reason)
