"""The averaging attack as a source of witnesses: one person fewer, and "the attack returns the true count"."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from dpwitness.attacks.candidate import Candidate, as_numbers
from dpwitness.claims import Claim
from dpwitness.events import Interval
from dpwitness.neighbours import Data, make_pair
from dpwitness.neighbours.pair import ATTACK

__all__ = ["whole_count"]


def whole_count(parameters: Mapping[str, Any], data: Data | None, claim: Claim, runs: int) -> Iterator[Candidate]:
    """One candidate: D the table, D′ without one person of its fullest cell, S "the attack counts everybody right".

    For the targets of `dpwitness.algorithms.table_builder`, whose runs end with the attack's count of everybody.
    Their `suppression`, `base` and `partitions` are among `parameters`. D is the data, people with each value, or ten
    times the suppression in each of `base` cells. No candidate for a table on which the attack cannot run.
    """
    suppression, base = int(parameters["suppression"]), int(parameters["base"])
    given = np.full(base, 10 * suppression) if data is None else as_numbers(data)
    if given is None:
        return
    table = given.astype(np.int64)
    if table.ndim != 1 or np.count_nonzero(table > suppression) < 2:
        return
    fewer = table.copy()
    fewer[np.argmax(table)] -= 1
    people = float(table.sum())
    place = len(table) + 2 * int(parameters["partitions"])
    whose = "people with each value" + ("" if data is None else ", as in the data")
    label = (
        f"{ATTACK}D: {whose}; D′: one person fewer with value {int(np.argmax(table)) + 1}; count {place + 1} is the "
        f"attack's total of everybody, and the event that it is {people:.0f}, as on D"
    )
    pair = make_pair(table, fewer, label)
    yield Candidate(pair=pair, event=Interval(coordinate=place, low=people - 0.5, high=people + 0.5))
