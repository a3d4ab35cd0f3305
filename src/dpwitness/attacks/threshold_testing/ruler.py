"""Query noise as a ruler: how often a query is ⊤ measures how far it is from the noisy threshold.

With finite ε₂ the answer to a query of value q is ⊤ with probability F(ε₂(q − z)), F the Laplace distribution
function, anew for each copy. The share of ⊤'s among t copies therefore measures q − z, with standard error
√((2·exp(ε₂|q − z|) − 1)/t)/ε₂, wherever q is within a few 1/ε₂ of z. Theorem 3.5's majority throws this away: it keeps
the sign of q − z alone.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.attacks.threshold_testing.comparing import Scales, lay_base
from dpwitness.attacks.threshold_testing.oracle import Queries
from dpwitness.attacks.threshold_testing.questions import Cells, Signs
from dpwitness.attacks.threshold_testing.theory import MOST_COPIES
from dpwitness.errors import InvalidParameter

__all__ = ["REACH", "Ruler", "votings"]

Floats = NDArray[np.float64]

#: Copies of each query by which the base is laid.
ROUGH: Final = 15
#: Standard error of the base's own reading, in counts: small beside the half count that rounding allows.
BASE_ERROR: Final = 0.02
#: Standard error, in counts, of the reading of the empty sum that decides the sense.
SENSE_ERROR: Final = 0.05
#: Readings further than this from z say only on which side z is: in 1/ε₂.
REACH: Final = 2.0
#: From this ε₂ on, ln 2/ε₂, by which F falls from 1/2 to 1/4, is at most a quarter of a count.
SHARP: Final = 4 * float(np.log(2))
#: With so many, shares that differ by 1/8 from the cut stand 6 standard errors from it.
SHARP_COPIES: Final = 576


class Ruler:
    """Readings of q − z, turned round where z is negative."""

    def __init__(self, oracle: Queries, rng: np.random.Generator) -> None:
        self.oracle = oracle
        self.unit = 1 / oracle.noise.epsilon2
        self.reach = REACH * self.unit
        self.copies(BASE_ERROR)  # refused before anything is asked, not after it
        # In a sense in which z is positive, or about 0; the base is kept a little below.
        negated = Scales(oracle, copies=self.copies(SENSE_ERROR)).negated
        self.sense = -1 if negated else 1
        self.laid = lay_base(Scales(oracle, copies=ROUGH, cut=0.25, negated=negated), rng)
        self.base = self.laid.signs

    def copies(self, error: float) -> int:
        """How many copies read a query at z with that standard error, in counts.

        Raises `InvalidParameter` for more than 10^12.
        """
        ratio = self.unit / error
        if not ratio * ratio <= MOST_COPIES:
            raise InvalidParameter(
                f"epsilon2={self.oracle.noise.epsilon2:g} is too small: to read a query takes {ratio * ratio:.2g} "
                "copies of it, more than 10^12; give a larger one"
            )
        return int(np.ceil(ratio * ratio))

    def hits(self, signs: Signs, cells: Cells, change: int, copies: int) -> Cells:
        """How many copies are above, for S with `change` added to the coefficient of one cell each."""
        hits = self.oracle.ask_each(self.sense * signs, cells, self.sense * change, copies)
        return hits if self.sense > 0 else copies - hits

    def distance(self, hits: Cells, copies: int) -> Floats:
        """Estimate q − z."""
        share = (hits + 0.5) / (copies + 1)
        return np.asarray(np.sign(share - 0.5) * -np.log(2 * np.minimum(share, 1 - share)) * self.unit)

    def read(self, signs: Signs) -> float:
        """The reading of a sum, to `BASE_ERROR` where it is near z."""
        copies = self.copies(BASE_ERROR)
        return float(self.distance(self.hits(signs, np.zeros(1, np.int64), 0, copies), copies)[0])

    def read_base(self) -> float:
        """The reading of S itself, to `BASE_ERROR`."""
        nowhere = np.zeros(1, np.int64)
        copies = self.copies(BASE_ERROR)
        y = self.distance(self.hits(self.base, nowhere, 0, copies), copies)[0]
        # The second time with as many copies as its distance from z asks for.
        copies = int(min(copies * (2 * np.exp(abs(y) / self.unit) - 1), MOST_COPIES))
        return float(self.distance(self.hits(self.base, nowhere, 0, copies), copies)[0])


def votings(ruler: Ruler, copies: int | None = None) -> Iterator[Scales]:
    """Scales that take the query noise away, a vote among copies of each query; one of them does.

    A query counts as above where more copies say so than would for one half-way between the whole numbers around z.
    Shares of whole-numbered queries lie clearly on either side of that, even where z is nearly whole and a majority,
    that is a cut at 1/2, would not tell. Where the base is too far from z to be read, one of two cuts half a count
    apart is at least a quarter of a count from all whole numbers. From ε₂ = 4·ln 2 on, F rises from 1/4 to 3/4 within
    half a count, and of cuts there one has a whole number nowhere between 1/8 and 1/2, or 1/2 and 7/8.

    Parameters
    ----------
    ruler
        Of the oracle.
    copies
        By default so many that whole numbers stand 6 standard errors from the cut.
    """
    epsilon2 = ruler.oracle.noise.epsilon2
    if epsilon2 >= SHARP:  # the noise is so small that copies that tell two places in it apart grow with exp(ε₂)
        for cut in (0.25, 0.75):
            yield Scales(ruler.oracle, copies=copies or SHARP_COPIES, cut=cut, negated=ruler.sense < 0)
        return
    y = ruler.read_base()
    near = abs(y) <= REACH * ruler.unit
    # The base counts as below, even where it was laid a little above.
    for shift in (y + 0.5 + max(0.0, np.floor(-y)),) if near else (0.25, -0.25):
        x = epsilon2 * shift
        cut = float(np.exp(x) / 2 if x < 0 else 1 - np.exp(-x) / 2)
        # Within a count of z, F rises by at least ε₂ exp(−ε₂)/2 a count.
        rise = epsilon2 * np.exp(-epsilon2) / 2 * (0.5 if near else 0.25)
        yield Scales(ruler.oracle, copies=copies or int(np.ceil((3 / rise) ** 2)), cut=cut, negated=ruler.sense < 0)
