"""Jobs whose files are URLs of fsspec: a worker downloads the source, converts it, and uploads the result."""

from __future__ import annotations

import os
import posixpath
import tempfile
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tonnx import _core
from tonnx._cluster.jobs import once
from tonnx._error import Error, translated
from tonnx._limits import Limits


@dataclass(frozen=True)
class StagedJob:
    """One source and one target, with their options in the file."""

    source: str
    target: str
    options: Mapping[str, Any] = field(default_factory=dict)


def _is_url(text: object) -> bool:
    return isinstance(text, str) and "://" in text


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list) else [value]


def staged_jobs(config: str) -> list[StagedJob] | None:
    """The jobs of a file that names URLs; None if it names only files, which the core reads itself."""
    config = os.path.abspath(config)
    try:
        text = Path(config).read_text()
    except OSError as e:
        raise Error(f"cannot open '{config}': {e.strerror}", "bad_file") from None
    if "://" not in text:
        return None
    try:
        import fsspec
        import yaml
    except ImportError:
        raise Error("URLs need fsspec: pip install tonnx[dask]", "unsupported") from None
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError as e:
        raise Error(f"'{config}' is not YAML: {str(e).splitlines()[0]}", "invalid_model") from None
    if not isinstance(found, dict) or not isinstance(found.get("models"), list):
        raise Error(f"'{config}' has no list 'models'", "invalid_model")
    defaults, shapes = found.get("defaults") or {}, found.get("input_shapes") or {}
    folder = os.path.dirname(config)
    jobs = []
    for model in found["models"]:
        options = {**defaults, **model}
        targets = _listed(options.pop("targets", None) or options.pop("target", None) or [])
        for source in _sources(fsspec, folder, _listed(options.pop("source", None) or [])):
            own = {**options, **({"input_shapes": shapes[source]} if source in shapes else {})}
            jobs += [StagedJob(source, _expanded(folder, target, source), own) for target in targets]
    if not jobs:
        raise Error(f"'{config}' has no model with a source and a target", "invalid_model")
    _require_own_targets(jobs)
    return jobs


def _require_own_targets(jobs: list[StagedJob]) -> None:
    writers: dict[str, str] = {}
    for job in jobs:
        other = writers.setdefault(job.target, job.source)
        if other != job.source or job.target == job.source:
            raise Error(f"'{job.target}' is written from '{job.source}', and from '{other}'", "invalid_model")


def _sources(fsspec: Any, folder: str, patterns: list[Any]) -> Iterator[str]:
    for pattern in patterns:
        url = pattern if _is_url(pattern) else os.path.join(folder, str(pattern))
        files, path = fsspec.core.url_to_fs(url)
        found = sorted(files.glob(path)) if any(c in path for c in "*?[") else [path] if files.exists(path) else []
        if not found:
            raise Error(f"there is no file '{pattern}'", "invalid_model")
        scheme = url.partition("://")[0] if _is_url(url) else ""
        for name in found:
            yield f"{scheme}://{name.removeprefix(f'{scheme}://')}" if scheme else name


def _expanded(folder: str, target: str, source: str) -> str:
    stem, _ = posixpath.splitext(posixpath.basename(source))
    parts = {"{stem}": stem, "{name}": posixpath.basename(source), "{dir}": posixpath.dirname(source)}
    for word, value in parts.items():
        target = target.replace(word, value)
    return target if _is_url(target) else os.path.join(folder, target)


def run_staged(job: StagedJob, verifies: bool, limits: Limits, record: str) -> str:
    """The report of one job as JSON, with the URLs of the file."""
    return once(record, lambda: _run(job, verifies, limits))


def _run(job: StagedJob, verifies: bool, limits: Limits) -> str:
    import fsspec
    import yaml

    from tonnx import _compare
    from tonnx._limits import numbers_of

    with tempfile.TemporaryDirectory(prefix="tonnx-") as folder:
        inside, outside = Path(folder) / "in", Path(folder) / "out"
        inside.mkdir()
        outside.mkdir()
        source = inside / posixpath.basename(job.source)
        _bring(fsspec, job.source, source)
        target = outside / posixpath.basename(job.target)
        config = Path(folder) / "job.yml"
        model = {**job.options, "source": str(source), "target": str(target)}
        config.write_text(yaml.safe_dump({"models": [model]}))
        with translated():
            text = _core.BatchPlan(str(config), verifies, False, folder).run(
                0, numbers_of(limits), _compare.compare_for_cli
            )
        for made in sorted(outside.iterdir()):
            _take(fsspec, made, posixpath.join(posixpath.dirname(job.target), made.name))
        return text.replace(str(source), job.source).replace(str(target), job.target)


def _bring(fsspec: Any, url: str, path: Path) -> None:
    """Downloads the file, and the external data beside it if there is any."""
    files, name = fsspec.core.url_to_fs(url)
    _get(files, name, str(path))
    if files.exists(f"{name}.data"):
        _get(files, f"{name}.data", f"{path}.data")


# Some file systems, such as fsspec's memory, share one file handle with one position, and several threads of a worker
# may read the same source: readers of a name wait for each other.
_READERS = [threading.Lock() for _ in range(64)]


def _get(files: Any, name: str, path: str) -> None:
    with _READERS[hash(name) % len(_READERS)]:
        files.get_file(name, path)


def _take(fsspec: Any, path: Path, url: str) -> None:
    """Uploads a whole file or nothing: object stores do so by themselves, on a disk it is renamed into place."""
    files, name = fsspec.core.url_to_fs(url)
    files.makedirs(posixpath.dirname(name), exist_ok=True)
    if "file" in (files.protocol if isinstance(files.protocol, tuple) else (files.protocol,)):
        temporary = posixpath.join(posixpath.dirname(name), f".tonnx-{os.urandom(8).hex()}.tmp")
        files.put_file(str(path), temporary)
        os.replace(temporary, name)
    else:
        files.put_file(str(path), name)
