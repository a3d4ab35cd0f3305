"""What is asked in private threshold testing: a signed sum of cells → whether it reaches the threshold."""

from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from dpwitness.attacks.oracles.form import Form, as_flag

__all__ = ["FORM", "Cells", "Counts", "Oracle", "Signs"]

#: People a cell, shape (cells,).
Counts = NDArray[np.int64]
#: Numbers of cells, from 0.
Cells = NDArray[np.int64]
#: A question, shape (cells,): the coefficient of each cell, −1, 0 or 1, so that one person moves the sum by 1 at most.
Signs = NDArray[np.int8]


class Oracle(Protocol):
    """A system under attack: one call of private threshold testing, the user's own behind `--oracle` or simulated.

    All answers must be given under one noisy threshold. It may also be an object with `ask_all(questions)`, a list of
    questions → as many answers; and it may have `totals(parts)`, which Algorithm 4 buys: from the number of each cell's
    part, shape (cells,), to a noisy number of people for each part, shape (parts,).
    """

    def __call__(self, signs: Signs, /) -> bool:
        """⊤ (True) where the sum of the counts with coefficients `signs`, shape (cells,), reaches the threshold."""


def _written(signs: Signs) -> Any:
    """The cells with +1 and with −1, from 0, as files have them."""
    return {"plus": np.flatnonzero(signs > 0).tolist(), "minus": np.flatnonzero(signs < 0).tolist()}


FORM: Final[Form[Signs]] = Form(
    family="threshold_testing",
    answer="⊤ or ⊥ (1 or 0)",
    written=_written,
    handed=np.copy,
    read=as_flag,
    of_system=("cells",),
)
