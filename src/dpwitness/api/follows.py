"""Test whether a sampler draws independently from a law; the probability of a false refutation is at most alpha.

A partition divides the real line into cells, whose probabilities p follow from the law. The likelihood of the draws'
cells under a mixture of other probabilities, divided by their likelihood under the law, is a test martingale: under the
law each draw multiplies it by a factor with expectation at most 1, given all earlier draws. A weighted mean of these
e-values over several partitions refutes the law once it reaches 1/alpha; by Ville's inequality, a sampler that follows
the law is refuted with probability at most alpha, whenever the draws end. The mixture is Dirichlet(c·p) for c on a
grid: the bet of Krichevsky & Trofimov (1981), centred at the law. A partition with memory makes a bet of its own on the
draws after each cell, and so finds dependence on the draw before.
"""

import inspect
import math
import time
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import InitVar, dataclass, field
from numbers import Real
from typing import Any, Final

import numpy as np

from dpwitness.arrays import Floats, Integers
from dpwitness.checks import brief, probability, seconds, seed_or_new, whole
from dpwitness.errors import InvalidOutcome, InvalidParameter
from dpwitness.mechanisms.signature import GENERATOR_NAMES, SIZE_NAMES
from dpwitness.options import ALPHA
from dpwitness.results.goodness_of_fit import GoodnessOfFit

#: PROBABILITY_ERROR is added to each cell's probability, so that the level holds for cdfs in double precision. It is
#: also the largest probability of one value for which a repeated draw counts: a grid of 2^−40 scales is allowed.
PROBABILITY_ERROR: Final = 2.0**-36
#: BATCH_GROWTH is the ratio of the numbers of draws at two looks: a refutation takes at most a quarter more draws.
BATCH_GROWTH: Final = 1.25
#: SIMULATED_SAMPLES is the number of samples, each of all draws, by which the power for one size of fault is estimated.
SIMULATED_SAMPLES: Final = 200
#: REFUTED_SAMPLES is the least number of refuted samples that shows a power of 0.95: at this power 196 or more
#: samples are refuted with probability 0.03.
REFUTED_SAMPLES: Final = 196
#: MOST_INTEGERS is the number of integers around the median whose remainders modulo 4 are tested, which takes 0.1 s.
MOST_INTEGERS: Final = 1 << 17


@dataclass(slots=True)
class SymbolPartition:
    """Cells, each a union of symbols, with the counts of the draws so far.

    A symbol is a number from 0 on that encodes a draw: the number of an interval between two edges, or a remainder.
    """

    cells: Integers  # the cell of each symbol
    of_symbols: InitVar[Floats]  # an upper bound of each symbol's probability under the law
    text: Callable[[Integers], str]  # the text of the symbols of a cell
    weight: float  # the partition's share of the mean of all e-values
    memory: bool = False  # whether the bet depends on the cell of the draw before
    p: Floats = field(init=False)  # an upper bound of each cell's probability under the law
    counts: Integers = field(init=False)  # a row for each cell of the draw before; without memory one row

    def __post_init__(self, of_symbols: Floats) -> None:
        self.p = np.bincount(self.cells, of_symbols).astype(np.float64)
        self.counts = np.zeros((len(self.p) if self.memory else 1, len(self.p)), np.int64)

    def add(self, symbols: Integers) -> None:
        """Count a batch of draws by their symbols; with memory the first draw of a batch is not counted."""
        cells = self.cells[symbols]
        cells = cells[:-1] * len(self.p) + cells[1:] if self.memory else cells
        self.counts += np.bincount(cells, minlength=self.counts.size).reshape(self.counts.shape)

    def log_e_value(self, counts: Any, draws: int) -> Any:
        """The logarithm (nats) of the partition's weight times the e-value of counts, shape (…, rows, cells).

        The e-value is a mean over Dirichlet concentrations c: 4 and all larger powers of 4 below `draws`. Counts of
        several samples have leading axes, which the result keeps.
        """
        from scipy.special import gammaln

        c = 4.0 ** np.arange(1, max(math.ceil(math.log(draws, 4)), 2))[:, None, None]
        n, a = np.asarray(counts, np.float64)[..., None, :, :], c * self.p
        of_row, all_a = n.sum(axis=-1), a.sum(axis=-1)
        logs = (gammaln(n + a) - gammaln(a) - n * np.log(self.p)).sum(axis=-1)
        logs += gammaln(all_a) - gammaln(of_row + all_a)
        return np.logaddexp.reduce(logs.sum(axis=-1), axis=-1) + math.log(self.weight / len(c))

    def finding(self) -> str:
        """The sentence on the cell whose share of draws has the largest divergence from its probability."""
        from scipy.special import rel_entr

        n, p = self.counts.sum(axis=1, keepdims=True), np.minimum(self.p, 1 - PROBABILITY_ERROR)
        share = self.counts / np.maximum(n, 1)
        evidence = n * (rel_entr(share, p) + rel_entr(1 - share, 1 - p))
        row, cell = np.unravel_index(np.argmax(evidence), evidence.shape)
        before, here = (self.text(np.flatnonzero(self.cells == one)) for one in (row, cell))
        return (
            f"{here} have probability {p[cell]:.4g} under the law and came in {self.counts[row, cell]:,} of "
            f"{n[row, 0]:,} draws{f' after {before}' if self.memory else ''} ({share[row, cell]:.4g})"
        )


class Hypothesis:
    """Independent draws from a law: its partitions, and the evidence against it.

    `draws`: the largest number of draws; `dtype`: the type to which draws are rounded.
    """

    def __init__(self, law: Any, draws: int, dtype: "np.dtype[Any]") -> None:
        self.law, self.draws, self.dtype, self.discrete = law, draws, dtype, hasattr(law, "pmf")
        self.count, self.outside, self.ties, self.seen = 0, "", 0, np.empty(0)
        levels = int(math.log2(draws))
        try:
            self.ends = np.array([float(end) for end in law.support()])
            equal = [law.ppf(np.arange(1, 2**k) / 2**k) for k in range(1, min(levels, 6) + 1)]
            tails = [law.ppf([2.0**-j, 1 - 2.0**-j]) for j in range(2, levels + 1)]
        except (AttributeError, TypeError, ValueError) as error:
            raise InvalidParameter(f"law={brief(law)} must be a law of scipy.stats, as laplace(scale=2)") from error
        points = np.concatenate([*equal, *tails])
        if not np.isfinite(points).all() or (self.discrete and np.any(points % 1)):
            raise InvalidParameter(f"law={law_text(law)} must have finite quantiles, whole ones if it is discrete")
        self.half, self.median = 0.5 * self.discrete, float(law.ppf(0.5))  # integers k are (k − ½, k + ½]
        families = [(equal, False), (tails, False), (equal[:3], True)]
        if self.discrete:
            low, high = np.clip(self.median + np.array([-0.5, 0.5]) * MOST_INTEGERS, *self.ends)
            self.near = np.arange(low, high + 1)
            pmf = law.pmf(self.near)
            likely = self.near[np.argsort(-pmf, kind="stable")[:16]]
            families.append(([np.union1d(likely - 1, likely)], False))
        self.edges = np.unique(np.concatenate([cuts for family, _ in families for cuts in family])) + self.half
        p = np.diff(self.cdf(self.edges), prepend=0.0, append=1.0) + PROBABILITY_ERROR
        if not self.discrete:  # rounding may move a draw over an edge, into the cell on either side
            p += np.append(self.atom(self.edges), 0.0) + np.insert(self.atom(self.edges), 0, 0.0)
        self.by_interval = [
            SymbolPartition(np.cumsum([0, *np.isin(self.edges, cuts + self.half)]), p, self._text, 1 / k, memory)
            for family, memory in families for k, cuts in enumerate(family, 1)
        ]  # fmt: skip
        self.by_bits: list[SymbolPartition] = []
        if self.discrete:
            sums = [float(pmf[self.near % 4 == k].sum()) for k in range(4)]
            rest = np.array([*sums, max(1 - sum(sums), 0.0)]) + PROBABILITY_ERROR
            texts = [*(f"integers with remainder {k} modulo 4" for k in range(4)), "integers far from the median"]
            self.by_bits = [SymbolPartition(np.arange(5), rest, lambda symbols: texts[symbols[0]], 1.0)]
        self.partitions = [*self.by_interval, *self.by_bits]
        self.tie_weight = 1 / (1 + sum(one.weight for one in self.partitions))
        for one in self.partitions:
            one.weight *= self.tie_weight

    def cdf(self, x: Floats) -> Floats:
        """P(X ≤ x); for a discrete law linear between the half-integers k + ½, where it is P(X ≤ k)."""
        k = np.floor(x - 0.5)
        return np.asarray(
            self.law.cdf(k) + (x - 0.5 - k) * self.law.pmf(k + 1) if self.discrete else self.law.cdf(x), np.float64
        )

    def atom(self, x: Floats) -> Floats:
        """An upper bound of the probability of each value of a continuous law whose draws are rounded to `dtype`."""
        step = np.spacing(np.abs(x).astype(self.dtype)).astype(np.float64)
        return np.asarray(self.law.cdf(x + step) - self.law.cdf(x - step), np.float64)

    def _text(self, symbols: Integers) -> str:
        """The text of a cell, "values from 1 to 2", by the numbers of its intervals."""
        low, high = symbols[0], symbols[-1]
        start = f"{self.edges[low - 1] + self.half:.6g}" if low else ""
        end = f"{self.edges[high] - self.half:.6g}" if high < len(self.edges) else ""
        if start and end:
            return f"values equal to {end}" if self.discrete and start == end else f"values from {start} to {end}"
        return f"values up to {end}" if end else f"values {'from' if self.discrete else 'above'} {start or '-inf'}"

    def add(self, x: Floats) -> None:
        """Count a batch of draws, given in double precision, up to the first draw that the law cannot have."""
        if self.discrete:
            values, places = np.unique(x, return_inverse=True)
            with np.errstate(invalid="ignore"):  # for infinite draws
                inside = (self.law.pmf(values) > 0)[places]
        else:
            step = 4 * np.spacing(np.abs(self.ends[np.isfinite(self.ends)]).max(initial=0.0).astype(self.dtype))
            inside = np.isfinite(x) & (x >= self.ends[0] - step) & (x <= self.ends[1] + step)
        first, before = int(np.argmin(inside)), self.count
        self.count += len(x)
        if not inside[first]:
            self.outside = f"draw {before + first + 1:,} is {x[first]:.6g}, which has probability 0 under the law"
            return
        symbols = np.searchsorted(self.edges, x)
        for one in self.by_interval:
            one.add(symbols)
        for one in self.by_bits:
            one.add(np.where((x >= self.near[0]) & (x <= self.near[-1]), x % 4, 4).astype(np.int64))
        if not self.discrete:
            self.seen = np.sort(np.concatenate([self.seen, np.sort(x)]), kind="stable")  # merges two sorted runs
            again = self.seen[1:][self.seen[1:] == self.seen[:-1]]
            self.ties = int((self.atom(again) <= PROBABILITY_ERROR).sum())

    @property
    def log_e_values(self) -> list[float]:
        """The logarithms (nats) of the weighted e-values: of each partition, then of repeated values."""
        # Draw t repeats one of t − 1 values with probability at most b_t = (t − 1)·PROBABILITY_ERROR. A repeat
        # multiplies the wealth by m, and each draw by exp(−(m − 1)·b_t): the factor has expectation at most 1.
        m = 8.0 ** np.arange(1, 11)
        of_ties = np.logaddexp.reduce(self.ties * np.log(m) - (m - 1) * self.expected_ties)
        of_cells = [float(one.log_e_value(one.counts, self.draws)) for one in self.partitions]
        return [*of_cells, float(of_ties) + math.log(self.tie_weight / len(m))]

    @property
    def expected_ties(self) -> float:
        """An upper bound of the expected number of draws that repeat an earlier value."""
        return PROBABILITY_ERROR * self.count * (self.count - 1) / 2

    @property
    def log_e_value(self) -> float:
        """The logarithm (nats) of the e-value against the law; infinite for a draw that the law cannot have."""
        return math.inf if self.outside else float(np.logaddexp.reduce(self.log_e_values))

    def finding(self) -> str:
        """The sentence on the largest part of the evidence."""
        if self.outside:
            return self.outside
        largest = int(np.argmax(self.log_e_values))
        if largest < len(self.partitions):
            return self.partitions[largest].finding()
        most = f"at most {self.expected_ties:.2g} are expected"
        return f"{self.ties:,} of {self.count:,} draws repeat an earlier value; {most}"

    def detectable(self, moved: Callable[[Floats, float], Floats], alpha: float, rng: np.random.Generator) -> float:
        """The smallest size of a fault that the same number of draws refutes with probability at least 0.95.

        Infinite if no size up to 2 is refuted. `moved(points, size)`: the points from which a fault, whose size is
        positive or negative, moves draws to the given points.
        """
        marginal = [one for one in self.by_interval if not one.memory]
        sums = [one.cells[:, None] == np.arange(len(one.p)) for one in marginal]
        ends = self.ends[0] - self.half, self.ends[1] + self.half

        def refuted(size: float) -> bool:
            low, high = (float(self.cdf(moved(end, size))) if math.isfinite(end) else float(end > 0) for end in ends)
            p = np.diff(self.cdf(moved(self.edges, size)), prepend=low, append=high)
            p = np.append(p, 1 - high + low).clip(0)  # the last cell lies outside the support
            drawn = rng.multinomial(self.count, p / p.sum(), SIMULATED_SAMPLES)
            found = [
                one.log_e_value((drawn[:, :-1] @ in_cell)[:, None, :], self.draws)
                for one, in_cell in zip(marginal, sums, strict=True)
            ]
            by_cells = np.logaddexp.reduce(found) >= -math.log(alpha)
            return int(np.sum(by_cells | (drawn[:, -1] > 0))) >= REFUTED_SAMPLES

        sizes = (2.0 ** (np.arange(-160, 9) / 8)).tolist()
        first = bisect_left(sizes, True, key=lambda size: refuted(size) and refuted(-size))
        return float(sizes[first]) if first < len(sizes) else math.inf


def law_text(law: Any) -> str:
    """The name and the parameters of a law of scipy.stats, as in "laplace(scale=2)"."""
    values = [f"{one:g}" for one in getattr(law, "args", ())]
    values += [f"{name}={one:g}" for name, one in getattr(law, "kwds", {}).items()]
    name = str(getattr(getattr(law, "dist", law), "name", type(law).__name__))
    return f"{name}({', '.join(values)})" if values else name


def drawing(sampler: Any) -> Callable[[np.random.Generator, int, float], Any]:
    """A function that returns an array of draws of a sampler, whatever parameters the sampler has.

    It takes a generator, a number of draws and a time of `time.monotonic` (s); a sampler of single draws returns fewer
    draws, at least one, if the time is over. Raises `InvalidParameter` for a parameter that needs a value; the function
    raises `InvalidOutcome` for draws that are not numbers.
    """
    try:
        declared = dict(inspect.signature(sampler).parameters)
    except ValueError:  # a builtin without a signature
        declared = {}
    except TypeError as error:
        raise InvalidParameter(f"sampler={brief(sampler)} must be a function that returns draws") from error
    generators, sizes = GENERATOR_NAMES & set(declared), SIZE_NAMES & set(declared)
    variable = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
    needed = {name for name, one in declared.items() if one.default is one.empty and one.kind not in variable}
    for name in needed - generators - sizes:
        raise InvalidParameter(f"sampler: {name!r} needs a value: give lambda rng, size: sampler(…) with all values")

    def draw(rng: np.random.Generator, n: int, deadline: float) -> Any:
        given = dict.fromkeys(generators, rng) | dict.fromkeys(sizes, n)
        values: Any = sampler(**given) if sizes else [sampler(**given)]
        while not sizes and len(values) < n and time.monotonic() < deadline:
            values.append(sampler(**given))
        try:
            x = np.asarray(values)
            if x.dtype.kind == "O" and all(isinstance(one, Real) for one in x.flat):
                x = x.astype(np.float64)
        except (ValueError, TypeError, OverflowError):
            x = np.empty(0, "O")
        if x.dtype.kind not in "biuf" or x.shape != (n if sizes else len(values),):
            wanted = f"an array of {n} numbers for size={n}" if sizes else "one number"
            raise InvalidOutcome(f"sampler returned {brief(values if sizes else values[-1])}: it must return {wanted}")
        return x

    return draw


def follows(
    sampler: Callable[..., Any],
    law: Any,
    *,
    draws: int = 1_000_000,
    alpha: float = ALPHA,
    seed: int | None = None,
    max_time: float | str = 10.0,
) -> GoodnessOfFit:
    """Test whether a sampler draws independently from a law; a sampler that does is refuted with probability ≤ alpha.

    The faults tested: wrong probabilities of intervals (down to 1/draws), of likely integers and of remainders modulo
    4; dependence on the draw before; repeated values; values outside the support.

    Parameters
    ----------
    sampler
        A function `f()` or `f(rng)` that returns one draw, or `f(size)` or `f(rng, size)` that returns an array of
        draws, which is faster. Parameters are recognised by name: `rng` or `random_state`, `size` or `n_samples`; other
        parameters need a default. A method is a function too: `scipy.stats.norm().rvs`, `default_rng().laplace`.
    law
        A law of scipy.stats with its parameters, continuous as `laplace(scale=2)`, or discrete on the integers as
        `dlaplace(1 / scale)`; or `dpwitness.laws.discrete_gaussian(scale)`. The level needs a cdf that is exact to
        10⁻¹¹. Draws of a continuous law may be rounded to their floating-point type, or to a grid on which no value has
        a probability above 2⁻³⁶.
    draws
        The largest number of draws, at least 16. A refutation may need fewer draws.
    alpha
        The largest probability that a sampler that follows the law is refuted. A refutation at 0.05 needs about half as
        many draws as at the default.
    seed
        The seed of the generator that the sampler gets (default: a new seed).
    max_time
        The time limit of the draws in seconds, or a text such as "2m"; the power of a pass is estimated after it.

    Raises `InvalidParameter` for other arguments, and `InvalidOutcome` for draws that are not numbers. Exceptions of
    the sampler are passed on.
    """
    began, draws, max_time = time.monotonic(), whole("draws", draws, 16, 1 << 40), seconds("max_time", max_time)
    seed, alpha = seed_or_new(seed), probability("alpha", alpha)
    own, simulated = (np.random.default_rng(one) for one in np.random.SeedSequence(seed).spawn(2))
    draw, needed, deadline = drawing(sampler), -math.log(alpha), began + max_time
    x = draw(own, 16, deadline)
    tested = Hypothesis(law, draws, x.dtype if x.dtype.kind == "f" else np.dtype(np.float64))
    tested.add(x.astype(np.float64))
    log_e = tested.log_e_value
    while log_e < needed and tested.count < draws and (left := deadline - time.monotonic()) > 0:
        in_time = int(tested.count * left / (time.monotonic() - began))
        n = min(math.ceil(tested.count * (BATCH_GROWTH - 1)), draws - tested.count, in_time)
        tested.add(draw(own, max(n, 1), deadline).astype(np.float64))
        log_e = max(log_e, tested.log_e_value)
    scale = shift = math.inf
    if log_e < needed:
        centre = tested.ends[0] - tested.half if math.isfinite(tested.ends[0]) else tested.median
        unit = max(float(np.subtract(*law.ppf([0.75, 0.25]))), 2 * tested.half)
        scale = tested.detectable(
            lambda x, size: centre + (x - centre) * (1 - size if size < 0 else 1 / (1 + size)), alpha, simulated
        )
        shift = unit * tested.detectable(lambda x, size: x - size * unit, alpha, simulated)
    return GoodnessOfFit(
        law=law_text(law), alpha=alpha, log_e_value=log_e, draws=tested.count,
        finding=tested.finding() if log_e >= needed else "",
        detectable_scale=scale, detectable_shift=shift, seed=seed, seconds=time.monotonic() - began,
    )  # fmt: skip
