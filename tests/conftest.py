"""Shared fixtures."""

from pathlib import Path

# pytester drops what an inner run imports, and these can be loaded only once a process; numba imports them late, when
# it first compiles, which with a warm cache may be in an inner run.
import numba.core.boxing
import numba.core.runtime.context  # noqa: F401  # see above
import pytest
from hypothesis import settings

pytest_plugins = ["pytester"]


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The real histograms of the repository."""
    return Path(__file__).resolve().parents[1] / "data"


settings.register_profile("dpwitness", deadline=None, derandomize=True)  # tests assert no times, and repeat
settings.load_profile("dpwitness")
