"""Systems that answer whether signed sums of a histogram's cells reach a noisy threshold.

`QueryAccess` is an attack's access to a system, the user's own or the bundled `ThresholdOracle`: one call of private
threshold testing on a histogram of known counts. One noisy threshold must serve all answers.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from dpwitness.arrays import Floats, Integers
from dpwitness.errors import InvalidData, InvalidParameter
from dpwitness.exact import laplace_cdf
from dpwitness.reconstruction.people import LARGEST_COUNT
from dpwitness.reconstruction.transcript import Form, as_flag

#: Counts of people, shape (cells,).
CellCounts = Integers
#: Positions of cells, from 0; or one whole number for each cell or question.
CellIntegers = Integers
#: A question, shape (cells,): the coefficient of each cell, −1, 0 or 1, so that one person moves the sum by at most 1.
Signs = NDArray[np.int8]
#: A set of questions: common signs, the cell whose coefficient each question changes, and the change.
SignChange: TypeAlias = tuple[Signs, CellIntegers, int]

#: The number of questions in a round whose answers determine the next round: more questions take fewer rounds, but more
#: questions in all.
QUESTIONS_AT_ONCE: Final = 8

#: The form of the family's questions and answers.
FORM: Final[Form[Signs]] = Form(
    family="threshold_testing",
    answer="⊤ or ⊥ (1 or 0)",
    # The cells with +1 and with −1, from 0.
    written=lambda signs: {"plus": np.flatnonzero(signs > 0).tolist(), "minus": np.flatnonzero(signs < 0).tolist()},
    handed=np.copy,
    read=as_flag,
    of_system=("cells",),
)


def check_histogram(counts: object) -> CellCounts:
    """The counts as an array. Raises `InvalidData` for fewer than two cells, and for negative or fractional counts."""
    values = np.asarray(counts)
    if values.ndim != 1 or values.dtype.kind not in "iuf":
        raise InvalidData(f"a histogram is a list of counts, not an array of shape {values.shape}, kind {values.dtype}")
    if len(values) < 2:
        raise InvalidData(f"a histogram of {len(values)} cell(s) has nothing to compare: give at least 2 cells")
    bad = np.flatnonzero(~((values >= 0) & (values == np.floor(values)) & (values <= LARGEST_COUNT)))
    if len(bad):
        held = f"cell {bad[0] + 1} holds {values[bad[0]]:g}"
        raise InvalidData(f"{held}: a count must be a whole number from 0 to {LARGEST_COUNT:,}")
    return values.astype(np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """The known noise of a system; ε's are in nats per unit of sensitivity.

    Raises `InvalidParameter` for ε's that are not positive, or an infinite ε₁.
    """

    epsilon1: float | None = None  # the threshold's noise is Lap(1/ε₁); None: not known
    epsilon2: float = np.inf  # each query's noise is Lap(1/ε₂); infinite: queries have no noise
    threshold: float = 0.0  # θ, the threshold without noise, in counts

    def __post_init__(self) -> None:
        if self.epsilon1 is not None and not 0 < self.epsilon1 < np.inf:
            raise InvalidParameter(f"epsilon1={self.epsilon1!r} must be positive and finite")
        if not self.epsilon2 > 0:
            raise InvalidParameter(f"epsilon2={self.epsilon2!r} must be positive (inf: no noise on the queries)")


class QueryAccess:
    """An attack's access to a system, by many questions at a time, which are counted.

    Parameters
    ----------
    answers
        A function like `Asking.ask` from questions, each of shape (cells,), to as many answers, 1 for ⊤ and 0 for ⊥.
        None: a subclass answers `ask_all` and `ask_changes` itself.
    cells
        The number of the histogram's cells; at least 2.
    noise
        The system's noise, as far as it is known.
    totals
        A function from the number of each cell's part, shape (cells,), to a noisy number of people in each part, shape
        (parts,), for Algorithm 4; None: the system gives no totals.
    together
        The number of questions in a round (see `QUESTIONS_AT_ONCE`).
    """

    def __init__(
        self,
        answers: Callable[[Iterable[Signs]], Floats] | None,
        cells: int,
        noise: Noise | None = None,
        totals: Callable[[CellIntegers], Floats] | None = None,
        together: int = QUESTIONS_AT_ONCE,
    ) -> None:
        self.cells, self.noise, self.totals, self.together = cells, noise or Noise(), totals, together
        self.queries = 0
        self._answers = answers

    def ask_all(self, questions: Signs, copies: int = 1) -> CellIntegers:
        """The number of ⊤ answers to each question, shape (questions,); `questions` has shape (questions, cells)."""
        return self._count_tops(iter(questions), copies)

    def ask_changes(self, changes: Sequence[SignChange], copies: int = 1) -> list[CellIntegers]:
        """The number of ⊤ answers to each question of several sets, one array a set, asked at once."""
        if not changes:
            return []
        tops = self._count_tops(_questions(changes), copies)
        return np.split(tops, np.cumsum([len(cells) for _, cells, _ in changes])[:-1])

    def _count_tops(self, questions: Iterator[Signs], copies: int) -> CellIntegers:
        assert self._answers is not None
        answers = self._answers(one for one in questions for _ in range(copies))
        self.queries += len(answers)
        return np.asarray(np.asarray(answers).astype(np.int64).reshape(-1, copies).sum(axis=1))


def _questions(changes: Sequence[SignChange]) -> Iterator[Signs]:
    for signs, cells, change in changes:
        for cell in cells:
            question = signs.copy()
            question[cell] += change
            yield question


class ThresholdOracle(QueryAccess):
    """One call of generalised private threshold testing (Chen & Machanavajjhala 2015, Alg. 2) on a histogram.

    The noisy threshold z = threshold + Lap(1/epsilon1) is drawn once. A query is a sum of cells with coefficients
    −1, 0, +1, of sensitivity 1; its answer is ⊤ where its value + Lap(1/epsilon2) ≥ z. An attack may use only the
    methods of `QueryAccess`. Given z, copies of a query are independent, so their number of ⊤'s is drawn as a binomial.

    `Noise` explains the ε's; the noise of totals is Lap(1/epsilon_totals), and without this ε there are no totals.
    Raises `InvalidData` for counts that are not a histogram, `InvalidParameter` for ε₁ and ε₂ as `Noise` does.
    """

    def __init__(
        self,
        counts: CellCounts,
        rng: np.random.Generator,
        *,
        epsilon1: float,
        epsilon2: float = np.inf,
        threshold: float = 0.0,
        epsilon_totals: float | None = None,
    ) -> None:
        totals = None if epsilon_totals is None else partial(self._noisy_totals, 1 / epsilon_totals)
        self._counts = check_histogram(counts).astype(np.float64)  # exact below 2⁵³
        noise = Noise(epsilon1=epsilon1, epsilon2=epsilon2, threshold=threshold)
        super().__init__(None, len(self._counts), noise, totals)
        self._rng = rng
        self._z = threshold + rng.laplace(0.0, 1 / epsilon1)

    @override
    def ask_all(self, questions: Signs, copies: int = 1) -> CellIntegers:
        return self._answer(questions @ self._counts, copies)

    @override
    def ask_changes(self, changes: Sequence[SignChange], copies: int = 1) -> list[CellIntegers]:
        return [
            self._answer(float(signs @ self._counts) + change * self._counts[cells], copies)
            for signs, cells, change in changes
        ]

    def _answer(self, values: Floats, copies: int) -> CellIntegers:
        self.queries += copies * len(values)
        if self.noise.epsilon2 == np.inf:
            return copies * (values >= self._z)
        return self._rng.binomial(copies, laplace_cdf(self.noise.epsilon2 * (values - self._z)))

    def _noisy_totals(self, scale: float, parts: CellIntegers) -> Floats:
        exact = np.bincount(parts, weights=self._counts)
        return np.asarray(exact + self._rng.laplace(0.0, scale, len(exact)))
