"""Whether answers leave room for other counts: the cone of all counts that explain them, by linear programming."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.attacks.threshold_testing.questions import Cells, Signs

__all__ = ["another_explanation"]

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

#: Random directions in which the cone is measured, beside that of all counts at once.
DIRECTIONS: Final = 3
#: So far another explanation is looked for, in units.
FAR: Final = 1.0
#: Whole numbers other than these differ by 1 somewhere; the rest is for rounding errors.
NEAR: Final = 0.99


def another_explanation(
    asked: Signs, above: Flags, counts: Cells, gap: int, rng: np.random.Generator
) -> tuple[Floats, float] | None:
    """Counts and a gap that explain all answers as well, one of them a unit away; None where none was found.

    Parameters
    ----------
    asked, above
        Signed sums, shape (questions, cells), and which of them reached the gap.
    counts, gap
        What explains the answers already; the first count is the scale, and stays.
    rng
        For the directions in which others are looked for.
    """
    from scipy.optimize import linprog  # 0.2 s

    k = len(counts)
    side = np.where(above, -1.0, 1.0)[:, None]
    limits = side * np.hstack([asked, -np.ones((len(asked), 1))])  # ≤ 0
    bounds = [(float(counts[0]), float(counts[0]))]
    bounds += [(max(0.0, x - FAR), x + FAR) for x in counts[1:].tolist()]
    bounds += [(max(0.0, gap - 1 - FAR), gap + FAR)]
    signs = 2.0 * rng.integers(0, 2, (DIRECTIONS, k)) - 1
    for direction in np.vstack([np.ones(k), signs]):
        for sense in (1.0, -1.0):
            found = linprog(np.append(sense * direction, 0.0), A_ub=limits, b_ub=np.zeros(len(limits)), bounds=bounds)
            if found.x is not None and np.max(np.abs(found.x[:-1] - counts)) >= NEAR:
                return np.asarray(found.x[:-1], np.float64), float(found.x[-1])
    return None
