"""What an attack proposes: neighbours and, often, the event that gives them away."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpwitness.candidate import Candidate
from dpwitness.claims import Claim
from dpwitness.neighbours import Data

__all__ = ["Attack", "Candidate", "as_numbers", "is_histogram"]

#: A generator of candidates: from the mechanism's parameters, D if the user gave one, the claim and the planned paired
#: runs. It draws nothing at random and runs nothing; what it proposes is tried beside what the search finds.
Attack = Callable[[Mapping[str, Any], Data | None, Claim, int], Iterable[Candidate]]


def as_numbers(data: object) -> NDArray[Any] | None:
    """The data as an array of finite numbers; None where they are something else, such as records of text."""
    try:
        array = np.asarray(data)
    except ValueError:  # lists of several lengths
        return None
    return array if array.dtype.kind in "biuf" and np.isfinite(array).all() else None


def is_histogram(values: NDArray[Any]) -> bool:
    """Whether these are whole numbers of people, of shape (cells,)."""
    return values.ndim == 1 and not np.any(values < 0) and not np.any(values != np.floor(values))
