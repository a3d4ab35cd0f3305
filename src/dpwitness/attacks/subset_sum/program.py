"""The linear program of Theorem 3, solved by an interior-point method on the constraints that bind.

Dinur & Nissim, PODS 2003, Theorem 3. Mehrotra, On the implementation of a primal-dual interior point method, SIAM J.
Optim. 2(4), 1992. With n people one step costs one matrix of n × n, whatever the number of constraints.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.errors import InvalidParameter

__all__ = ["smallest_error"]

Floats = NDArray[np.float64]

#: Relative gap between the program and its dual at which it is solved.
GAP: Final = 1e-7
REST: Final = 1e-5
#: Steps at most; 12 to 20 are what it takes.
STEPS: Final = 100
#: Added to the diagonal, in parts of its largest entry: near a solution weights differ by more than a float resolves.
RIDGE: Final = 1e-13
#: How much of the way to the border a step goes.
STEP: Final = 0.995


@dataclass(slots=True)
class _Point:
    """A solution inside: values x, the error E, slacks s ≥ 0 of all inequalities and their multipliers z ≥ 0.

    The inequalities, in this order: E ≥ Qx − a and E ≥ a − Qx, one a row each; x ≥ 0 and 1 − x ≥ 0, one a person.
    """

    x: Floats
    error: float
    s: Floats
    z: Floats


def smallest_error(matrix: Floats, answers: Floats) -> tuple[Floats, float]:
    """Solve: the smallest E with |matrix·x − answers| ≤ E for an x in [0, 1]ⁿ.

    Parameters
    ----------
    matrix
        Who is in which subset, ones and zeros, shape (t, n).
    answers
        In counts, shape (t,).

    Returns
    -------
    tuple
        x, shape (n,), and E. Where many x have that E, this one is amid them.

    Raises `InvalidParameter` where rounding errors keep the method from an end.
    """
    rows, people = matrix.shape
    x = np.full(people, 0.5)
    error = float(np.abs(matrix @ x - answers).max()) * 1.1 + 1.0
    multipliers = np.concatenate([np.full(2 * rows, 0.5 / rows), np.full(2 * people, 1.0 / people)])
    point = _Point(x, error, _slacks(matrix, answers, x, error), multipliers)
    failure = InvalidParameter(
        f"the linear program of {rows} answers was not solved: are they of a size with the sums?"
    )
    for _ in range(STEPS):
        try:
            if _step(matrix, answers, point):
                return np.clip(point.x, 0.0, 1.0), point.error
        except np.linalg.LinAlgError as error:
            raise failure from error
    raise failure


def _slacks(matrix: Floats, answers: Floats, x: Floats, error: float) -> Floats:
    residual = matrix @ x - answers
    return np.concatenate([error - residual, error + residual, x, 1 - x])


def _step(matrix: Floats, answers: Floats, point: _Point) -> bool:
    """One predictor and corrector step in place; or True, where the point is a solution."""
    from scipy.linalg import cho_factor, cho_solve  # 0.3 s

    rows, people = matrix.shape
    s, z = point.s, point.z
    above, below, low, high = np.split(z, [rows, 2 * rows, 2 * rows + people])
    # What is left of the derivatives of E − z·s by x and by E, which vanish at a solution.
    by_x, by_error = matrix.T @ (above - below) - low + high, 1 - above.sum() - below.sum()
    gap = float(s @ z)
    # No solution has a smaller error than this one by more than the gap and what x, in [0, 1], and E make of the rest,
    # which rounding errors keep from 0, and which grows with every step that is too many.
    rest, scale = float(np.abs(by_x).sum()) + abs(by_error) * point.error, max(1.0, point.error)
    if gap <= GAP * scale and (rest <= REST * scale or gap <= 1e-3 * GAP * scale):
        return True
    weights = z / s
    w_above, w_below, w_low, w_high = np.split(weights, [rows, 2 * rows, 2 * rows + people])
    normal = (matrix.T * (w_above + w_below)) @ matrix
    diagonal = np.diag_indices(people)
    normal[diagonal] += w_low + w_high
    normal[diagonal] += RIDGE * normal[diagonal].max()
    factor = cho_factor(normal, check_finite=False)
    column = -(matrix.T @ (w_above - w_below))  # of E beside the matrix of x
    solved = cho_solve(factor, column, check_finite=False)
    corner = (w_above + w_below).sum() - column @ solved

    def towards(target: Floats) -> tuple[Floats, float, Floats, Floats]:
        """The step after which s·z, to first order, has moved by `target`: of x, E, s and z."""
        q = target / s
        q_above, q_below, q_low, q_high = np.split(q, [rows, 2 * rows, 2 * rows + people])
        right = -(matrix.T @ (q_above - q_below)) + q_low - q_high - by_x
        first = cho_solve(factor, right, check_finite=False)
        error = float((q_above.sum() + q_below.sum() - by_error - column @ first) / corner)
        x = first - solved * error
        moved = matrix @ x
        slacks = np.concatenate([error - moved, error + moved, x, -x])
        return x, error, slacks, q - weights * slacks

    _, _, ds, dz = towards(-s * z)
    reached = float((s + _longest(s, ds) * ds) @ (z + _longest(z, dz) * dz))
    aim = (reached / gap) ** 3 * gap / len(s)
    dx, d_error, ds, dz = towards(aim - s * z - ds * dz)
    length = min(1.0, STEP * _longest(s, ds))
    point.x = point.x + length * dx
    point.error += length * d_error
    point.s = _slacks(matrix, answers, point.x, point.error)  # afresh: rounding errors do not add up
    point.z = z + min(1.0, STEP * _longest(z, dz)) * dz
    return False


def _longest(values: Floats, change: Floats) -> float:
    """How far one may go, at most 1, until a value is 0."""
    falling = change < 0
    return min(1.0, float((-values[falling] / change[falling]).min())) if falling.any() else 1.0
