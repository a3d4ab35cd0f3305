"""The command `doctor`: the versions, the machine and the compiler of this installation, and causes of slow checks."""

import time
import warnings
from importlib.metadata import version
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any, Final

from dpwitness.checks import class_and_text
from dpwitness.cli.command import Subcommand
from dpwitness.cli.console import NOT_REFUTED
from dpwitness.cli.options import printing

#: PACKAGES has the packages whose versions are shown besides the versions that a witness holds.
PACKAGES: Final = ("pandas", "polars", "pyarrow", "loky", "pytest", "distributed", "diffprivlib", "opendp", "python-dp")


def run(arguments: SimpleNamespace) -> int:
    """Print the diagnosis of this machine and environment; return the exit code."""
    from dpwitness.cli.output import hand_over

    found = diagnosis()
    return hand_over(arguments, NOT_REFUTED, lambda: found, lambda: text_of(found))


def diagnosis() -> dict[str, Any]:
    """The state of this machine and this environment, as JSON values; `slow` holds the causes of slow checks."""
    from dpwitness.checks import memory
    from dpwitness.machine import cache_folder
    from dpwitness.results.witness import versions
    from dpwitness.runs import default_workers

    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        folder = cache_folder()
    refused, sizes = [str(one.message) for one in warned], [file.stat().st_size for file in folder.rglob("*")]
    error, seconds = _compiler()
    slow = [f"mechanisms run as plain Python, hundreds of times slower: numba {error}"] if error else []
    if seconds > 5:
        slow.append(f"numba takes {seconds:.1f} s for a small function: is the machine busy?")
    return {
        "versions": versions() | {one: version(one) for one in PACKAGES if find_spec(one.replace("python-dp", "pydp"))},
        "cores": default_workers(),
        "memory": memory(),
        "cache": {"folder": str(folder), "files": len(sizes), "bytes": sum(sizes), "refused": refused},
        "compiler": {"works": not error, "seconds": round(seconds, 3), "error": error},
        "slow": [*slow, *refused],
    }


def _compiler() -> tuple[str, float]:
    """The reason why numba compiles no small function, or an empty text; the seconds of import and compilation."""
    began = time.monotonic()
    try:
        import numba

        works = numba.extending.is_jitted(numba.njit("float64(float64)")(lambda value: 2.0 * value))
    except Exception as error:  # a compiler that does not fit its surroundings raises anything
        return f"fails: {class_and_text(error)}", 0.0
    return "" if works else "is switched off (NUMBA_DISABLE_JIT)", time.monotonic() - began


def text_of(found: dict[str, Any]) -> str:
    """The diagnosis as text, a line for each fact."""
    from dpwitness.results.text import label

    cache, compiler = found["cache"], found["compiler"]
    rows = [
        *found["versions"].items(),
        ("cores", str(found["cores"])),
        ("memory", f"{found['memory'] / 1e9:.1f} GB"),
        ("cache", f"{cache['folder']}: {cache['files']:,} files, {cache['bytes'] / 1e6:.1f} MB"),
        ("compiler", f"numba {compiler['error'] or 'compiles'}, {compiler['seconds']:.1f} s with its import"),
    ]
    slow = [f"  slow: {text}" for text in found["slow"]] or ["  nothing here makes checks slow"]
    return "\n".join(["dpwitness doctor", *(label(name, text) for name, text in rows), *slow])


#: COMMAND is the command `doctor`.
COMMAND: Final = Subcommand(
    "doctor",
    summary="show versions, cores, cache and compiler, and what makes checks slow",
    run=run,
    parameters=printing(quiet=False),
    examples=("doctor", "doctor --json"),
)
