"""The processes of a sweep: of this interpreter, or of an environment's interpreter that may lack dpwitness.

The other interpreter imports its own packages first, then dpwitness and its dependencies as they are installed here.
Compiled packages load only if both interpreters have the same minor version.
"""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Final

from dpwitness.errors import InvalidParameter
from dpwitness.mechanisms.child import Child
from dpwitness.mechanisms.remote import REMOTE_SECONDS
from dpwitness.runs.executors import THREAD_VARIABLES

#: PROBE is a program, of Python 2 or 3, whose argument is a JSON list of folders. It prints its interpreter's version,
#: its path, and the first module that neither its path nor the folders after it provide, with the class of the error;
#: this text is empty if all modules can be imported.
PROBE: Final = """
import importlib, json, sys
path, why = list(sys.path), ""
sys.path += json.loads(sys.argv[1])
try:
    for name in ("numpy", "scipy", "numba", "dpwitness.sweeps.worker", "dpwitness.api.check"):
        importlib.import_module(name)
except Exception as error:
    why = name + ": " + type(error).__name__
print("\\n" + json.dumps([list(sys.version_info[:2]), path, why]))
"""


def start_worker(python: str | None) -> Child:
    """A new process of `dpwitness.sweeps.worker` in the interpreter `python`; None: in this interpreter.

    Raises the errors of `path_of`.
    """
    path = sys.path if python is None else path_of(python)
    # One core a case: libraries of linear algebra take all cores, and cases run side by side.
    environment = {**dict.fromkeys(THREAD_VARIABLES, "1"), **os.environ}
    environment["PYTHONPATH"] = os.pathsep.join([os.getcwd(), *filter(None, path)])
    return Child([python or sys.executable, "-m", "dpwitness.sweeps.worker"], env=environment)


@cache
def path_of(python: str) -> tuple[str, ...]:
    """The import folders of a process of another interpreter: its own folders, then the folders of this interpreter.

    Raises `InvalidParameter` for a program that is no Python, a version before 3.11, and one that cannot import
    dpwitness.
    """
    own = [str(Path(__file__).parents[2]), *filter(None, sys.path)]
    try:
        done = subprocess.run(
            [python, "-c", PROBE, json.dumps(own)], capture_output=True, text=True, timeout=REMOTE_SECONDS, check=True
        )
        version, theirs, why = json.loads(done.stdout.splitlines()[-1])
        said = f"python={python!r} is Python {version[0]}.{version[1]}"
    except (OSError, subprocess.SubprocessError, ValueError, LookupError, TypeError) as error:
        raise InvalidParameter(f"python={python!r} is not an interpreter of Python that runs") from error
    if version < [3, 11]:
        raise InvalidParameter(f"{said}: a sweep needs 3.11 or later; `dpwitness check --python` runs one function")
    if why:
        here = f"{sys.version_info[0]}.{sys.version_info[1]}"
        raise InvalidParameter(f"{said} and cannot import {why}: install dpwitness there, or take Python {here}")
    return (*theirs, *own)
