"""An event in runs whose noise was drawn from another law: every run has a weight, see `evidence.weighted`."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from dpwitness.checks import whole
from dpwitness.errors import InvalidParameter
from dpwitness.events.encoding import Rows
from dpwitness.events.event import (
    NAMED,
    NUMBERS,
    Event,
    Label,
    Partition,
    Statistic,
    in_event,
    is_partition,
    register_event,
    row_of_numbers,
    statistic_of,
)

#: The share τ of the runs whose noise is drawn from the shifted law. No weight exceeds 1/(1 − τ), which the evidence of
#: a run is divided by; the variance of the weights is of the order of 1/τ.
SHARE: Final = 0.1
#: The values that (1 − τ) times a weight is rounded to, at random and right in the mean: 0, and half again as much from
#: one to the next. The variance that this adds is at most 4 % of the mean square.
LEVELS: Final = np.append(0.0, np.exp2(-0.6 * np.arange(31, -1, -1)))
#: Draws of a run that may be shifted, and by so many scales of the noise at most: beyond that weights are 0 or 1 in a
#: double.
MOST_DRAWS: Final = 64
FARTHEST: Final = 300.0
#: Columns before the draws in the row of a weighted run: the level, the length of what follows, whether the shifted law
#: was drawn from, how many draws there were, and the logarithm of their likelihood ratio.
LEADING: Final = 5


@register_event
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Weighted(Event, Partition):
    """An event of a mechanism whose noise is drawn from the shifted law in `SHARE` of the runs.

    The rows are those of `mechanisms.tilted`, in which the outcome stands behind the weight. Cell 0 holds the outcomes
    outside of the event, cell k those inside of it whose weight was rounded to `LEVELS[k]`.

    Attributes
    ----------
    event
        Of the mechanism's own outcomes.
    shifts
        By how many scales of the noise each draw of a run is shifted, in the order of draws; of exponential noise the
        logarithm of the factor. At most `MOST_DRAWS` numbers of at most `FARTHEST`; further draws are not shifted.
    offset
        The column at which an outcome begins.

    Raises `InvalidParameter` for what cannot be these.
    """

    kind: ClassVar[str] = "weighted"

    event: Event
    shifts: Annotated[Rows, NUMBERS]
    offset: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "shifts", row_of_numbers("shifts", self.shifts))
        if is_partition(self.event):
            raise InvalidParameter(f"event={self.event!r:.200} is made of cells already")
        if len(self.shifts) > MOST_DRAWS or not np.all(np.abs(self.shifts) <= FARTHEST):
            raise InvalidParameter(
                f"shifts={self.shifts.tolist()!r:.200} must be at most {MOST_DRAWS} numbers between −{FARTHEST:g} and "
                f"{FARTHEST:g}"
            )
        least = LEADING + len(self.shifts)
        object.__setattr__(self, "offset", whole("offset", self.offset, least, least + 1))

    @property
    @override
    def cells(self) -> int:
        return len(LEVELS)

    @property
    @override
    def inside(self) -> NDArray[np.bool_]:
        return LEVELS > 0

    @property
    @override
    def width(self) -> int:
        return self.offset + self.event.width

    @property
    def complexity(self) -> tuple[int, int]:
        """That of the event."""
        return self.event.complexity

    @override
    def cell_of(self, rows: Rows) -> NDArray[np.int64]:
        return np.where(in_event(self.event, rows[:, self.offset :]), rows[:, 0], 0.0).astype(np.int64)

    @override
    def contains(self, rows: Rows) -> NDArray[np.bool_]:
        return self.cell_of(rows) > 0

    @property
    def how(self) -> str:
        """How its runs are made, for people."""
        named = ", ".join(f"{shift:.3g}".replace("-", "−") for shift in self.shifts[:NAMED])
        more = ", …" if len(self.shifts) > NAMED else ""
        return f"in {SHARE:.0%} of the runs the noise was shifted, by {named}{more} scales; every run has its weight"

    def statistic(self) -> Statistic | None:
        """That of the event, by outcomes of the mechanism itself."""
        return statistic_of(self.event)

    @override
    def describe(self, noun: str = "value", label: Label | None = None) -> str:
        return self.event.describe(noun, label)


def weighted_of(event: Event) -> Weighted | None:
    """An event of weighted runs; None for all others."""
    return event if isinstance(event, Weighted) else None


def of_outcomes(event: Event) -> Event:
    """The event of the mechanism's own outcomes."""
    return event.event if isinstance(event, Weighted) else event
