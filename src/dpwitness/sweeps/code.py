"""The code that the results of a sweep are of, as digests of sources and versions of installed packages."""

import ast
import hashlib
import importlib.util
import sys
from collections.abc import Sequence
from functools import cache
from importlib.metadata import packages_distributions, version
from pathlib import Path
from typing import Final

from dpwitness.results.witness import versions

#: What digests begin with.
SHA: Final = "sha256:"
#: Folders of packages whose code changes with their version.
INSTALLED: Final = {"site-packages", "dist-packages"}


def code_of(modules: Sequence[str]) -> dict[str, str]:
    """What some modules run, by name: of each a digest of its source, or of that of its whole package.

    Of what these import, that is the version where it is installed, else the digest of its source, and so on. Of
    dpwitness itself it is the version.
    """
    found: dict[str, str] = {}
    ours = {"dpwitness": versions()["dpwitness"]}
    waiting = [name if name.endswith(".py") else name.partition(".")[0] for name in modules]
    swept = set(waiting)
    while waiting:
        name = waiting.pop()
        if name in found or name in sys.stdlib_module_names or (name in ours and name not in swept):
            continue
        files = files_of(name)
        release = release_of(name) if any(INSTALLED & set(file.parts) for file in files) else ""
        if release and name not in swept:
            found[name] = release
        elif files:
            sources = [file.read_bytes() for file in files]
            digest = hashlib.sha256()
            for file, source in zip(files, sources, strict=True):
                digest.update(f"{file.name} {len(source)}\n".encode() + source)
            found[name] = f"{release} {SHA}{digest.hexdigest()}".strip()
            waiting += {one for source in sources for one in imported(source)}
    return ours | found


def files_of(name: str) -> list[Path]:
    """The Python files of a file, a module or a package; none where there are none."""
    if name.endswith(".py"):
        return [Path(name).resolve()]
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):  # of a parent that fails, or of a module that was made by hand
        return []
    if spec is None:
        return []
    places = spec.submodule_search_locations
    if places is not None:
        return sorted(file for place in places for file in Path(place).rglob("*.py") if file.is_file())
    origin = Path(spec.origin or "")
    return [origin] if origin.suffix == ".py" and origin.is_file() else []  # no file within an archive


def imported(source: bytes) -> set[str]:
    """The modules that a source imports, by the first part of their names."""
    try:
        nodes = [*ast.walk(ast.parse(source))]
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # a template, or for another Python: it is not run
        return set()
    names = [one.name for node in nodes if isinstance(node, ast.Import) for one in node.names]
    names += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom) and not node.level]
    return {name.partition(".")[0] for name in names}


@cache
def _distributions() -> dict[str, list[str]]:
    return dict(packages_distributions())


def release_of(name: str) -> str:
    """The version of the package that a module is of; empty where it is of none."""
    found = _distributions().get(name)
    return version(found[0]) if found else ""
