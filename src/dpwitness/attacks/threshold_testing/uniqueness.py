"""Whether answers leave room for other counts: the cone of all counts that explain them, by linear programming."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.attacks.threshold_testing.questions import Cells, Signs

__all__ = ["another_explanation", "another_whole"]

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
        What explains the answers already; the largest count is the scale, and stays: relative to a count of one all
        others are known to within their own size at best.
    rng
        For the directions in which others are looked for.
    """
    from scipy.optimize import linprog  # 0.2 s

    k = len(counts)
    side = np.where(above, -1.0, 1.0)[:, None]
    limits = side * np.hstack([asked, -np.ones((len(asked), 1))])  # ≤ 0
    bounds = [(max(0.0, x - FAR), x + FAR) for x in [*counts.tolist(), gap]]
    bounds[-1] = (max(0.0, gap - 1 - FAR), gap + FAR)
    scale = int(np.argmax(counts))
    bounds[scale] = (float(counts[scale]), float(counts[scale]))
    signs = 2.0 * rng.integers(0, 2, (DIRECTIONS, k)) - 1
    for direction in np.vstack([np.ones(k), signs]):
        for sense in (1.0, -1.0):
            found = linprog(np.append(sense * direction, 0.0), A_ub=limits, b_ub=np.zeros(len(limits)), bounds=bounds)
            if found.x is not None and np.max(np.abs(found.x[:-1] - counts)) >= NEAR:
                return np.asarray(found.x[:-1], np.float64), float(found.x[-1])
    return another_whole(asked, above, counts, rng)


def another_whole(asked: Signs, above: Flags, counts: Cells, rng: np.random.Generator) -> tuple[Floats, float] | None:
    """Whole numbers a unit away at most that explain all answers, the largest count's among them; None if none does.

    Of two whole vectors one has more of a random weight, so that a largest and a smallest one show any other.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    k = len(counts)
    rows = np.hstack([asked, -np.ones((len(asked), 1))])
    # Above: at least the gap; else at least 1 below it. Twice the counts are no other explanation.
    limits = [
        LinearConstraint(rows, np.where(above, 0.0, -np.inf), np.where(above, np.inf, -1.0)),
        LinearConstraint(np.append(np.ones(k), 0.0)[None], -np.inf, 2.0 * counts.sum() - 1),
    ]
    box = Bounds(np.append(np.maximum(counts - 1.0, 1.0), 1.0), np.append(counts + 1.0, np.inf))
    weight = np.append(rng.normal(size=k), 0.0)
    for sense in (1.0, -1.0):
        found = milp(sense * weight, integrality=np.ones(k + 1, np.int64), bounds=box, constraints=limits)
        if found.x is not None and np.any(np.rint(found.x[:-1]) != counts):
            return np.rint(found.x[:-1]), float(np.rint(found.x[-1])) - 0.5
    return None
