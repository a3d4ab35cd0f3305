"""What is asked of a system that answers subset sums: a set of people → the sum of their secret bits, with errors."""

from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from dpwitness.attacks.oracles.form import Form, as_number

__all__ = ["FORM", "Oracle", "Subset"]

Subset = NDArray[np.bool_]


class Oracle(Protocol):
    """A system under attack: the user's own, behind `--oracle`.

    It may also be an object with `ask_all(questions)`, a list of subsets → as many answers.
    """

    def __call__(self, subset: NDArray[np.bool_], /) -> float:
        """The noisy sum of the secret bits of the people who are True in `subset`, shape (people,)."""


def _written(subset: Subset) -> Any:
    """The people of the subset, from 0, as files have them."""
    return np.flatnonzero(subset).tolist()


FORM: Final[Form[Subset]] = Form(
    family="subset_sum",
    answer="a finite number",
    written=_written,
    handed=np.copy,
    read=as_number,
    of_system=("size",),
)
