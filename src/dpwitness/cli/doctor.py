"""The command `doctor`: what this installation runs on, whether its compiler works, and what makes checks slow."""

import argparse
import os
import time
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from dpwitness.checks import class_and_text
from dpwitness.cli.console import NOT_REFUTED
from dpwitness.cli.options import printing
from dpwitness.cli.parser import command

#: Packages whose versions matter besides those of a witness.
OTHERS: Final = (
    "pandas",
    "polars",
    "pyarrow",
    "loky",
    "matplotlib",
    "pytest",
    "distributed",
    "diffprivlib",
    "opendp",
    "python-dp",
)
#: Seconds from which compiling a function of three lines is slow.
SLOW_COMPILER: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cache:
    """The folder of machine code: its size in bytes, and why another one is not used."""

    folder: str
    files: int
    bytes: int
    writable: bool
    kept: bool  # False: it is of this process alone
    refused: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiler:
    """Whether numba compiles; seconds of its import and of a small function, and what it said where it failed."""

    works: bool
    import_seconds: float
    seconds: float
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What `doctor` found; `slow` says what costs time, and what helps."""

    versions: Mapping[str, str]
    cores: int
    memory: int  # bytes
    cache: Cache
    compiler: Compiler
    settings: Mapping[str, str]  # environment variables that change something
    slow: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)

    def __str__(self) -> str:
        from dpwitness.results.text import label

        cache, compiler = self.cache, self.compiler
        state = "writable" if cache.writable else "not writable"
        took = f"import {compiler.import_seconds:.1f} s, a small function {compiler.seconds:.1f} s"
        return "\n".join(
            [
                "dpwitness doctor",
                *(label(name, version) for name, version in self.versions.items()),
                label("cores", f"{self.cores}"),
                label("memory", f"{self.memory / 1e9:.1f} GB"),
                label("cache", f"{cache.folder}: {cache.files:,} files, {cache.bytes / 1e6:.1f} MB, {state}"),
                label("compiler", f"numba compiles ({took})" if compiler.works else f"fails: {compiler.error}"),
                *(label("set", f"{name}={value}") for name, value in self.settings.items()),
                *(f"  slow: {text}" for text in self.slow),
                *([] if self.slow else ["  nothing here makes checks slow"]),
            ]
        )


def add(commands: argparse._SubParsersAction) -> None:  # type: ignore[type-arg]  # generic for type checkers only
    """Declare it."""
    below = command(
        commands,
        "doctor",
        summary="show versions, cores, cache and compiler, and what makes checks slow",
        run=run,
        examples=("doctor", "doctor --json"),
    )
    printing(below, quiet=False)


def run(arguments: argparse.Namespace) -> int:
    """Print the diagnosis."""
    from dpwitness.cli.output import check_places, hand_over

    check_places(arguments)
    found = diagnosis()
    return hand_over(arguments, NOT_REFUTED, found.to_json, lambda: str(found))


def diagnosis() -> Diagnosis:
    """Look at this machine and this environment."""
    from importlib.metadata import PackageNotFoundError, version

    from dpwitness.checks import memory
    from dpwitness.results.witness import versions
    from dpwitness.runs import default_workers

    compiler, cache = _compiler(), _cache()
    found = versions()
    for name in OTHERS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    names = ("DPWITNESS_CACHE_DIR", "NUMBA_CACHE_DIR", "NUMBA_DISABLE_JIT", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS")
    settings = {name: os.environ[name] for name in names if name in os.environ}
    cores = default_workers()
    return Diagnosis(
        versions=found,
        cores=cores,
        memory=memory(),
        cache=cache,
        compiler=compiler,
        settings=settings,
        slow=_slow(cores, cache, compiler),
    )


def _cache() -> Cache:
    from dpwitness.machine import cache_folder, private_folder

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        folder = cache_folder()
    sizes = []
    for path in folder.rglob("*"):
        try:
            sizes += [path.stat().st_size] if path.is_file() else []
        except OSError:  # removed meanwhile
            continue
    return Cache(
        folder=str(folder),
        files=len(sizes),
        bytes=sum(sizes),
        writable=os.access(folder, os.W_OK),
        kept=folder != private_folder() if said else True,
        refused=tuple(str(one.message) for one in said),
    )


def _compiler() -> Compiler:
    """Compile a function of three lines, as numba does a mechanism; nothing of it is kept."""
    began = time.monotonic()
    try:
        import numba
        import numpy as np

        imported = time.monotonic()

        def noisy(rng: Any, value: float) -> float:
            total = value
            for _ in range(3):
                total += rng.laplace(0.0, 1.0)
            return total

        compiled = numba.njit(noisy)
        compiled(np.random.default_rng(0), 1.0)
        works = numba.extending.is_jitted(compiled) and bool(compiled.signatures)
    except Exception as error:  # whatever a compiler that does not fit its surroundings raises
        return Compiler(works=False, import_seconds=0.0, seconds=0.0, error=class_and_text(error))
    seconds = round(time.monotonic() - imported, 3)
    why = "" if works else "it is switched off (NUMBA_DISABLE_JIT)"
    return Compiler(works=works, import_seconds=round(imported - began, 3), seconds=seconds, error=why)


def _slow(cores: int, cache: Cache, compiler: Compiler) -> tuple[str, ...]:
    """What costs time here, and what helps."""
    found = []
    if not compiler.works:
        found.append("mechanisms run as plain Python, hundreds of times slower, since numba does not compile")
    elif compiler.seconds > SLOW_COMPILER:
        found.append(f"numba takes {compiler.seconds:.1f} s for a small function: is the machine busy?")
    found += cache.refused
    if not cache.kept:
        found.append("every process compiles each mechanism anew, since no cache folder can be used")
    if cores == 1:
        found.append("there is one core: plain Python mechanisms run in one process")
    return tuple(found)
