"""An environment for each release: a folder with a Python of its own, made with pip when it is first needed."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from platformdirs import user_cache_path

#: Pins of scientific packages, with NumPy 2.
SCIENTIFIC: Final = ("numpy==2.2.6", "scipy==1.15.3", "pandas==2.3.3", "scikit-learn==1.7.2")
#: Pins of scientific packages, with NumPy 1.
OLD_NUMPY: Final = ("numpy==1.26.4", "scipy==1.13.1", "pandas==2.2.3")
#: Pins of all releases of pure-ldp.
PURE_LDP: Final = (
    *("numpy==1.26.4", "scipy==1.13.1", "pandas==2.2.3", "statsmodels==0.14.4", "scikit-learn==1.5.2"),
    *("xxhash==3.5.0", "bitstring==4.2.3", "bitarray==2.9.3"),
)
#: Pins of releases of opendp from 0.14 on.
OPENDP: Final = ("deprecated==1.2.18",)

#: The packages that are installed beside each release, by release. The release itself is installed without its
#: dependencies: some dependencies take gigabytes, and the mechanisms never use them.
PINS: Final[dict[str, tuple[str, ...]]] = {
    "DataSynthesizer==0.1.13": (*OLD_NUMPY, "scikit-learn==1.5.2", "python-dateutil==2.9.0.post0"),
    "DiffPriv==1.0.3": ("numpy==2.2.6",),
    "cloakdb==1.0.0": (
        *("pydantic==2.11.7", "pyyaml==6.0.2", "faker==37.4.0", "rich==14.0.0", "cryptography==45.0.5"),
        "sqlalchemy==2.0.41",
    ),
    "diff-priv-laplace-python==1.0.5": ("numpy==1.26.4",),
    "diffpriv-pure==0.1.0": (),
    "diffprivlib==0.3.0": (*OLD_NUMPY[:2], "scikit-learn==1.4.2", "joblib==1.5.1", "setuptools==80.9.0"),
    "diffprivlib==0.6.6": (*SCIENTIFIC[:2], "scikit-learn==1.6.1", "joblib==1.5.1", "setuptools==80.9.0"),
    "dwork==0.0.13": SCIENTIFIC[::2],
    "eeprivacy==0.0.5": ("click==8.2.1", *OLD_NUMPY),
    "healthpipe==0.1.0": (*SCIENTIFIC[::2], "pydantic==2.0.3", "httpx==0.28.1"),
    "hll-py==0.1.13": (),
    "inf-tda==0.1": ("opendp==0.12.0", "pandas==2.3.3", "numpy==2.2.6"),
    "ldp-toolbox==0.1.3": (*SCIENTIFIC, "numba==0.61.2", "xxhash==3.5.0", "tqdm==4.67.1"),
    "multi-freq-ldpy==0.2.5": ("numpy==2.2.6", "numba==0.61.2", "xxhash==3.5.0"),
    "numpy==2.2.6": (),
    "opendp==0.14.1": OPENDP,
    "opendp==0.14.2": OPENDP,
    "opendp==0.16.0": (*OPENDP, "polars==1.36.1", "pyarrow==21.0.0"),
    "opendp==0.3.0": (),
    "opendp==0.4.0": (),
    "opendp==0.5.0": (),
    "ornl-presto==0.1.29": ("numpy==2.2.6", "scipy==1.15.3", "pandas==2.3.3"),
    "pipeline-dp==0.2.1": ("numpy==1.26.4", "scipy==1.13.1", "python-dp==1.1.5"),
    "pure-ldp==1.1.2": PURE_LDP,
    "pure-ldp==1.2.0": PURE_LDP,
    "python-dp==1.1.5": (),
    "smartnoise-synth==1.0.5": OLD_NUMPY,
    "smartnoise-synth==1.0.6": OLD_NUMPY,
    "smartnoise-synth==1.0.8": OLD_NUMPY,
    "trasgodp==2.1.0": ("numpy==2.0.2", "scipy==1.15.3", "pandas==2.3.3"),
}
#: The name of the file in a complete environment that lists the installed release and pins, a line each.
COMPLETE: Final = "museum.txt"


class EnvironmentFailed(Exception):
    """The error of an environment that could not be made; the message has the failed command and its last output."""


def usual_folder() -> Path:
    """The folder of all environments if the user names no folder."""
    return user_cache_path("dpwitness") / "museum"


def interpreter(release: str, folder: Path) -> Path:
    """Return the Python of a release's environment, which is made if it is not there or has other pins.

    Raises `EnvironmentFailed`.
    """
    return environment(folder / release.replace("==", "-"), PINS[release], release)


def environment(place: Path, pins: tuple[str, ...], release: str | None = None) -> Path:
    """Return the Python of an environment, which is made if it is not there or has other pins.

    A release is installed without its dependencies, the pins with theirs. Raises `EnvironmentFailed`.
    """
    wanted = "\n".join((*filter(None, (release,)), *pins, ""))
    complete = place / COMPLETE
    if not complete.is_file() or complete.read_text(encoding="utf-8") != wanted:
        place.parent.mkdir(parents=True, exist_ok=True)
        _make(place, pins, release)
        complete.write_text(wanted, encoding="utf-8")
    return _python(place)


def _python(place: Path) -> Path:
    return place / "Scripts" / "python.exe" if os.name == "nt" else place / "bin" / "python"


def _make(place: Path, pins: tuple[str, ...], release: str | None) -> None:
    shutil.rmtree(place, ignore_errors=True)
    _run(sys.executable, "-m", "venv", str(place))
    pip = (str(_python(place)), "-m", "pip", "--disable-pip-version-check", "install", "--quiet")
    if pins:
        _run(*pip, *pins)
    if release is not None:
        _run(*pip, "--no-deps", release)


def _run(*command: str) -> None:
    with tempfile.TemporaryFile() as output:
        done = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, check=False)
        output.seek(0)
        lines = output.read().decode(errors="replace").strip().splitlines()
    if done.returncode:
        raise EnvironmentFailed(f"{' '.join(command)}: {lines[-1] if lines else f'exit code {done.returncode}'}")
