"""The command `doctor`: what this installation runs on, whether its compiler works, and what makes checks slow."""

import os
import time
import warnings
from importlib.metadata import PackageNotFoundError, version
from types import SimpleNamespace
from typing import Any, Final

from dpwitness.checks import class_and_text
from dpwitness.cli.command import Command
from dpwitness.cli.console import NOT_REFUTED
from dpwitness.cli.options import printing

#: Packages whose versions matter besides those of a witness.
OTHERS: Final = ("pandas", "polars", "pyarrow", "loky", "matplotlib", "pytest", "distributed", "diffprivlib", "opendp",
                 "python-dp")  # fmt: skip
#: Environment variables that change something.
VARIABLES: Final = ("DPWITNESS_CACHE_DIR", "NUMBA_CACHE_DIR", "NUMBA_DISABLE_JIT", "NUMBA_NUM_THREADS",
                    "OMP_NUM_THREADS")  # fmt: skip
#: Seconds from which compiling a function of three lines is slow.
SLOW_COMPILER: Final = 5.0


def run(arguments: SimpleNamespace) -> int:
    """Print the diagnosis."""
    from dpwitness.cli.output import check_places, hand_over

    check_places(arguments)
    found = diagnosis()
    return hand_over(arguments, NOT_REFUTED, lambda: found, lambda: text_of(found))


def diagnosis() -> dict[str, Any]:
    """What there is of this machine and this environment, as JSON values; `slow` says what costs time."""
    from dpwitness.checks import memory
    from dpwitness.machine import cache_folder
    from dpwitness.results.witness import versions
    from dpwitness.runs import default_workers

    found = versions()
    for name in OTHERS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        folder = cache_folder()
    refused = [str(one.message) for one in said]
    sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    writable = os.access(folder, os.W_OK)
    cache = {"folder": str(folder), "files": len(sizes), "bytes": sum(sizes), "writable": writable, "refused": refused}
    error, seconds = _compiler()
    slow = [f"mechanisms run as plain Python, hundreds of times slower: numba {error}"] if error else []
    slow += [f"numba takes {seconds:.1f} s for a small function: is the machine busy?"] * (seconds > SLOW_COMPILER)
    return {
        "versions": found,
        "cores": default_workers(),
        "memory": memory(),
        "cache": cache,
        "compiler": {"works": not error, "seconds": round(seconds, 3), "error": error},
        "settings": {name: os.environ[name] for name in VARIABLES if name in os.environ},
        "slow": [*slow, *refused],
    }


def _compiler() -> tuple[str, float]:
    """Why numba does not compile a small function; empty where it does, and the seconds of import and compiling."""
    began = time.monotonic()
    try:
        import numba

        works = numba.extending.is_jitted(numba.njit("float64(float64)")(lambda value: 2.0 * value))
    except Exception as error:  # whatever a compiler that does not fit its surroundings raises
        return f"fails: {class_and_text(error)}", 0.0
    return "" if works else "is switched off (NUMBA_DISABLE_JIT)", time.monotonic() - began


def text_of(found: dict[str, Any]) -> str:
    """The diagnosis as lines."""
    from dpwitness.results.text import label

    cache, compiler = found["cache"], found["compiler"]
    state = f"{cache['files']:,} files, {cache['bytes'] / 1e6:.1f} MB, {'' if cache['writable'] else 'not '}writable"
    lines = [label(name, text) for name, text in found["versions"].items()]
    lines += [
        label("cores", str(found["cores"])),
        label("memory", f"{found['memory'] / 1e9:.1f} GB"),
        label("cache", f"{cache['folder']}: {state}"),
        label("compiler", f"numba {compiler['error'] or 'compiles'}, {compiler['seconds']:.1f} s with its import"),
        *(label("set", f"{name}={value}") for name, value in found["settings"].items()),
        *(f"  slow: {text}" for text in found["slow"] or ["nothing found"]),
    ]
    return "\n".join(["dpwitness doctor", *lines])


COMMAND: Final = Command(
    "doctor",
    summary="show versions, cores, cache and compiler, and what makes checks slow",
    run=run,
    parameters=printing(quiet=False),
    examples=("doctor", "doctor --json"),
)
