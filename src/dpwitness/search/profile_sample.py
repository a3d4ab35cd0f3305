"""How often each of many events happens in search runs that did not propose them: single ones, and nested ones."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.errors import MechanismTimeout
from dpwitness.events import Event, Thresholds, cells_of, thresholds_of
from dpwitness.neighbours import Pair
from dpwitness.runs import Role, Runner
from dpwitness.search.learners import RatedEvent
from dpwitness.search.samples import Sample

__all__ = ["Chain", "counted_chains"]

Floats = NDArray[np.float64]
Rows = NDArray[np.float64]

#: Numbers that a part of the runs may hold in memory.
ROOM: Final = 1 << 21
#: Quantiles at which nested events are cut, evenly spaced in log-odds.
SHARES: Final = 1 / (1 + np.exp(-np.linspace(-14.0, 14.0, 401)))
#: How many families of nested events are looked at.
FAMILIES: Final = 8


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """k events, and the share of the runs in each cell (1,0), (1,1), (0,1), (0,0); shape (k, 4).

    `nested`: each lies in the one before, at the next of many cuts, so that neighbours differ by little.
    """

    event: Callable[[int], Event]
    cells: Floats
    nested: bool
    swapped: bool = False

    def turned(self) -> "Chain":
        """The same events with D and D′ exchanged."""
        return Chain(self.event, self.cells[:, [2, 1, 0, 3]], self.nested, not self.swapped)


def counted_chains(
    runner: Runner, pair: Pair, sample: Sample, learned: Sequence[RatedEvent], runs: int
) -> tuple[list[Chain], int]:
    """The learned events, and all that those of them which are nested belong to, counted on fresh search runs.

    Returns them in the direction of the pair, and how many runs they were counted on: `runs`, or as many as there was
    time for; where that was none, the learned events alone with the estimates that they have.
    """
    events = list({str(found.event.to_json()): found.event for found in learned}.values())
    families = _families(events, sample.outcomes)
    totals = [np.zeros((4, len(events)), np.int64), *(np.zeros((4, len(cuts)), np.int64) for _, cuts in families)]
    done = 0
    for counted, cells in _parts(runner, pair, runs, lambda x, y: _cells(events, families, x, y)):
        done += counted
        for total, part in zip(totals, cells, strict=True):
            total += part
    if not done:
        return [_of_estimates(learned)], max(sample.test_runs, 1)
    chains = [Chain(events.__getitem__, totals[0].T / done, nested=False)]
    for (family, cuts), total in zip(families, totals[1:], strict=True):
        chains.append(Chain(_maker(family, cuts), total.T / done, nested=True))
    return chains, done


def _cells(
    events: Sequence[Event], families: Sequence[tuple[Thresholds[Any], Floats]], x: Rows, y: Rows
) -> list[NDArray[np.int64]]:
    """The four cells of every event, and of every cut of each family, in paired runs."""
    nested = [_nested_cells(family.value(x), family.value(y), cuts) for family, cuts in families]
    return [cells_of(events, x, y), *nested]


def _maker(family: Thresholds[Any], cuts: Floats) -> Callable[[int], Event]:
    return lambda k: family.above(float(cuts[k]))


def _families(events: Sequence[Event], outcomes: Rows) -> list[tuple[Thresholds[Any], Floats]]:
    """The families of nested events that any of the events belongs to, and their cuts."""
    found: dict[str, tuple[Thresholds[Any], Floats]] = {}
    for event in events:
        for family in thresholds_of(event):
            key = str(family.above(1.0).to_json())
            if key not in found and len(found) < FAMILIES:
                values = family.value(outcomes)
                values = np.sort(values[np.isfinite(values)])
                if len(values):
                    spots = values[np.minimum((SHARES * len(values)).astype(np.int64), len(values) - 1)]
                    found[key] = family, np.unique(spots)
    return list(found.values())


def _parts(
    runner: Runner, pair: Pair, runs: int, count: Callable[[Rows, Rows], list[NDArray[np.int64]]]
) -> Iterator[tuple[int, list[NDArray[np.int64]]]]:
    """What is counted of fresh paired search runs, part by part, until they are done or the time is over.

    Each part comes with how many runs it holds. Parts of compiled code are drawn and counted beside each other.
    """
    each = max(min(ROOM // (2 * max(runner.mechanism.cost.width, 1)), runs), 1)
    spread = runner.mechanism.threads and runner.pool is None
    drawing = runner.alone() if spread else runner

    def part(number: int) -> tuple[int, list[NDArray[np.int64]]]:
        asked = min(each, runs - number * each)
        try:
            x, y = drawing.sample(pair, asked, Role.ESTIMATE, number, partial_too=True)
        except MechanismTimeout:
            return 0, []
        return len(x), count(x, y)

    done, tasks = 0, (partial(part, number) for number in range(-(-runs // each)))
    results = runner.each(tasks, workers=runner.workers) if spread else (task() for task in tasks)
    for found in results:
        if found is None or not found[0]:
            return
        yield found
        done += found[0]
        runner.report("search", done, runs, "events counted")
        if done < runs and found[0] < each:
            return


def _nested_cells(x: Floats, y: Floats, cuts: Floats) -> NDArray[np.int64]:
    """The four cells of {value ≥ cut} for every cut, ascending; shape (4, k)."""
    a, b = (np.searchsorted(cuts, values, side="right") for values in (x, y))
    hits, others, both = (
        np.bincount(places, minlength=len(cuts) + 1)[::-1].cumsum()[::-1][1:] for places in (a, b, np.minimum(a, b))
    )
    return np.stack([hits - both, both, others - both, len(x) - hits - others + both])


def _of_estimates(learned: Sequence[RatedEvent]) -> Chain:
    """The learned events with the estimates that they have."""
    cells = []
    for found in learned:
        p, q = found.estimate.p, found.estimate.q
        both = p * q if found.estimate.both is None else found.estimate.both
        row = [p - both, both, q - both, max(1 - p - q + both, 0.0)]
        cells.append([row[2], row[1], row[0], row[3]] if found.swapped else row)
    return Chain(lambda k: learned[k].event, np.maximum(np.array(cells), 0.0), nested=False)
