"""Private threshold testing as an attack sees it: signed sums of a histogram's cells go in, ⊤'s come out."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpwitness.attacks.oracles.asking import Asking, Limits
from dpwitness.attacks.oracles.systems import system_of
from dpwitness.attacks.threshold_testing.questions import FORM, Cells, Counts, Oracle, Signs
from dpwitness.errors import InvalidData, InvalidParameter

__all__ = ["LARGEST", "Change", "Noise", "Queries", "check_histogram", "queries_of"]

#: Above this a count, or a sum of 10⁶ of them, would no longer be exact.
LARGEST: Final = 1 << 40

#: Questions in one: signs, and a change of the coefficient of one of these cells each.
Change: TypeAlias = tuple[Signs, Cells, int]
Totals: TypeAlias = Callable[[NDArray[np.int64]], NDArray[np.float64]]


def check_histogram(counts: object) -> Counts:
    """Counts per cell as an array. Raises `InvalidData` for fewer than two cells, negative or fractional counts."""
    values = np.asarray(counts)
    if values.ndim != 1 or values.dtype.kind not in "iuf":
        raise InvalidData(f"a histogram is a list of counts, not an array of shape {values.shape}, kind {values.dtype}")
    if len(values) < 2:
        raise InvalidData(f"a histogram of {len(values)} cell(s) has nothing to compare: give at least 2 cells")
    bad = np.flatnonzero(~((values >= 0) & (values == np.floor(values)) & (values <= LARGEST)))
    if len(bad):
        raise InvalidData(f"cell {bad[0] + 1} holds {values[bad[0]]:g}: a count must be a whole number of at least 0")
    return values.astype(np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """What is known of the noise of an `Oracle`; all in nats per unit of sensitivity.

    Parameters
    ----------
    epsilon1
        ε₁: the threshold's noise is Lap(1/ε₁); None: not known.
    epsilon2
        ε₂: each query's noise is Lap(1/ε₂); infinite: there is none.
    threshold
        θ.
    epsilon_totals
        Each total's noise is Lap(1/ε); None: not known.

    Raises `InvalidParameter` for ε's that are not positive, or an infinite ε₁.
    """

    epsilon1: float | None = None
    epsilon2: float = np.inf
    threshold: float = 0.0
    epsilon_totals: float | None = None

    def __post_init__(self) -> None:
        if self.epsilon1 is not None and not 0 < self.epsilon1 < np.inf:
            raise InvalidParameter(f"epsilon1={self.epsilon1!r} must be positive and finite")
        if not self.epsilon2 > 0:
            raise InvalidParameter(f"epsilon2={self.epsilon2!r} must be positive (inf: no noise on the queries)")
        if self.epsilon_totals is not None and not self.epsilon_totals > 0:
            raise InvalidParameter(f"epsilon_totals={self.epsilon_totals!r} must be positive")


class Queries:
    """All that the attacks of this family may do: ask an `Oracle`, many questions at a time, and count what was asked.

    Parameters
    ----------
    answers
        From questions, each of shape (cells,), to as many answers, 1 for ⊤ and 0 for ⊥; all of them may be asked at
        once. `Asking.ask` is one. None: a subclass answers `ask_all` and `ask_changes` itself.
    cells
        How many cells the histogram has; at least 2.
    noise
        What is known of its noise.
    totals
        From the number of each cell's part to noisy totals, as `Oracle` says; None: there are none to be had.

    Raises `InvalidParameter` for fewer than two cells.
    """

    def __init__(
        self,
        answers: Callable[[Iterable[Signs]], NDArray[np.float64]] | None,
        cells: int,
        noise: Noise | None = None,
        totals: Totals | None = None,
    ) -> None:
        if not cells >= 2:
            raise InvalidParameter(f"cells={cells!r} must be at least 2: one cell has nothing to be compared with")
        self.cells, self.noise, self.queries = cells, noise or Noise(), 0
        #: Questions asked at once where each depends on the answers before: more of them, and fewer rounds.
        self.together = 8
        self._answers, self._totals = answers, totals

    def ask(self, signs: Signs, copies: int = 1) -> int:
        """How many of `copies` repetitions of one question are answered ⊤; `signs`: −1, 0 or 1 for each cell."""
        return int(self.ask_all(signs[None], copies)[0])

    def ask_all(self, questions: Signs, copies: int = 1) -> Cells:
        """The same of several questions, shape (questions, cells); returns shape (questions,)."""
        return self._hits(iter(questions), copies)

    def ask_each(self, signs: Signs, cells: Cells, change: int, copies: int = 1) -> Cells:
        """The same of `signs` with `change` added to the coefficient of one of `cells` each; shape of `cells`."""
        return self.ask_changes([(signs, cells, change)], copies)[0]

    def ask_changes(self, changes: Sequence[Change], copies: int = 1) -> list[Cells]:
        """Several such sets of questions, all asked at once."""
        check_changes(changes)
        if not changes:
            return []
        hits = self._hits(_each(changes), copies)
        return np.split(hits, np.cumsum([len(cells) for _, cells, _ in changes])[:-1])

    def larger(self, copies: int = 1) -> Cells:
        """|larger(v)| of Algorithm 3: for how many cells u the majority of x_u − x_v's copies is ⊤; shape (cells,).

        cells² questions, x_v − x_v included, those of one v at once.
        """
        sizes, all_cells = np.zeros(self.cells, np.int64), np.arange(self.cells)
        for v in range(self.cells):
            signs = np.zeros(self.cells, np.int8)
            itself = self.ask(signs, copies)
            signs[v] = -1
            hits = np.append(self.ask_each(signs, np.delete(all_cells, v), 1, copies), itself)
            sizes[v] = np.count_nonzero(2 * hits > copies)
        return sizes

    @property
    def sells_totals(self) -> bool:
        """Whether there are noisy totals to be had."""
        return self._totals is not None

    def totals(self, parts: NDArray[np.int64]) -> NDArray[np.float64] | None:
        """Noisy totals of parts, from the number of each cell's part, shape (cells,); None where there are none."""
        return None if self._totals is None else np.asarray(self._totals(parts), np.float64)

    def _hits(self, questions: Iterator[Signs], copies: int) -> Cells:
        assert self._answers is not None
        answers = self._answers(one for one in questions for _ in range(copies))
        self.queries += len(answers)
        return np.asarray(np.asarray(answers).astype(np.int64).reshape(-1, copies).sum(axis=1))


def check_changes(changes: Sequence[Change]) -> None:
    """Raise `ValueError` for coefficients other than −1, 0 and 1."""
    for signs, cells, change in changes:
        if len(cells) and np.max(np.abs(signs[cells] + change)) > 1:
            raise ValueError("a coefficient outside −1, 0, 1 would raise the sensitivity above 1")


def _each(changes: Sequence[Change]) -> Iterator[Signs]:
    for signs, cells, change in changes:
        for cell in cells:
            question = signs.copy()
            question[cell] += change
            yield question


def queries_of(
    oracle: Oracle, cells: int, *, noise: Noise | None = None, limits: Limits | None = None, seed: int = 0
) -> Queries:
    """What an attack may ask of a system of yours.

    Parameters
    ----------
    oracle
        An `Oracle`, or what makes one, as `system_of` takes it.
    cells
        How many cells the histogram has.
    noise
        What is known of its noise; by default, that queries have none.
    limits
        Budget and rate; none by default.
    seed
        Of what makes an oracle.
    """
    asking = Asking(FORM, system_of(oracle, FORM, seed=seed), limits=limits)
    return Queries(asking.ask, cells, noise, totals=getattr(oracle, "totals", None))
