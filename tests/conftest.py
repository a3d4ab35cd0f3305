"""Shared fixtures."""

import os
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
    """The real histograms, which are not part of the package."""
    beside = Path(__file__).resolve().parents[1] / "data"
    folder = Path(os.environ.get("DPWITNESS_DATA", beside))
    if not folder.is_dir():
        pytest.skip("the real histograms are not here: set DPWITNESS_DATA")
    return folder


settings.register_profile("dpwitness", deadline=None, derandomize=True)  # tests assert no times, and repeat
settings.load_profile("dpwitness")
