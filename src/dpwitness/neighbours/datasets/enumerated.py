"""Domains that are a list of records: those that a hypothesis strategy draws, or examples of any kind."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from dpwitness.checks import brief
from dpwitness.errors import InvalidNeighbours
from dpwitness.neighbours.datasets.choices import DTYPES
from dpwitness.neighbours.datasets.domain import NOT_IN_DOMAIN, key_of, plain

__all__ = ["Examples", "drawn", "is_strategy"]

#: Examples that are tried in one place.
TRIED: Final = 8
#: Records that are drawn from a hypothesis strategy.
DRAWN: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Examples:
    """Records of any kind, those given and no others: what a hypothesis strategy drew, for example."""

    values: tuple[Any, ...]
    source: str = "examples"
    _known: dict[Any, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        known: dict[Any, int] = {}
        for place, value in enumerate(self.values):
            known.setdefault(key_of(value), place)
        if len(known) < 2:
            raise InvalidNeighbours(f"{self.source}: give at least two records that differ, not {len(known)}")
        object.__setattr__(self, "_known", known)

    def __str__(self) -> str:
        """Where they come from, and how many."""
        return f"{len(self._known)} {self.source}"

    @property
    def dtype(self) -> str:
        """That of the values, where all are numbers or flags."""
        kinds = {type(value) for value in self.values}
        return DTYPES.get(kinds.pop(), "object") if len(kinds) == 1 else "object"

    def ends(self) -> tuple[Any, ...]:
        """The last (hypothesis draws the simplest first), the first, and some between."""
        distinct = [self.values[place] for place in self._known.values()]
        return (distinct[-1], distinct[0], *distinct[-2:0:-1])[:TRIED]

    def inside(self, end: Any) -> Any:
        """The end itself."""
        return end

    def odd(self) -> tuple[Any, ...]:
        """None: which of them are odd is not known."""
        return ()

    def middle(self) -> Any:
        """The first."""
        return self.values[0]

    def draw(self, rng: np.random.Generator) -> Any:
        """Any of them."""
        return self.values[int(rng.integers(len(self.values)))]

    def near(self, value: Any) -> Iterator[Any]:
        """The neighbours in the order in which they were given, and others."""
        place = self._known.get(key_of(value), 0)
        yield from self.values[max(place - TRIED // 2, 0) : place + TRIED // 2]

    def simpler(self, value: Any) -> Iterator[Any]:
        """Those given earlier."""
        yield from self.values[: min(self._known.get(key_of(value), 0), TRIED)]

    def read(self, value: Any) -> Any:
        """The given record that is equal to it."""
        place = self._known.get(key_of(plain(value)))
        return NOT_IN_DOMAIN if place is None else self.values[place]

    def to_json(self) -> None:
        """None: a record of any kind has no form in JSON."""


def is_strategy(value: Any) -> bool:
    """Whether it is a hypothesis strategy; hypothesis is not imported for the question."""
    return any(kind.__name__ == "SearchStrategy" for kind in type(value).__mro__)


def drawn(strategy: Any) -> Examples:
    """Records drawn from a hypothesis strategy, the same ones every time, numbers in their order.

    Raises `InvalidNeighbours` where hypothesis finds none, or is not installed.
    """
    try:
        from hypothesis import HealthCheck, Phase, given, settings
        from hypothesis.errors import HypothesisException
    except ImportError as error:  # a foreign class of that name
        raise InvalidNeighbours(
            f"domain {brief(strategy)} looks like a hypothesis strategy: install hypothesis, or give like(examples)"
        ) from error
    found: list[Any] = []

    @settings(
        derandomize=True, database=None, max_examples=DRAWN, phases=[Phase.generate], deadline=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(strategy)
    def collect(value: Any) -> None:
        found.append(value)

    try:
        collect()
    except HypothesisException as error:
        raise InvalidNeighbours(f"domain {brief(strategy)}: hypothesis cannot draw from it ({error})") from error
    distinct = list({key_of(value): value for value in found}.values())
    if {type(value) for value in distinct} in ({int}, {float}):
        distinct.sort(key=lambda value: (value == value, np.float64(value)))
    return Examples(values=tuple(distinct), source=f"records drawn from {brief(strategy)}")
