"""Candidates of the family `table_builder`, against mechanisms that publish noisy counts, and its entry point.

D and D′ differ by one person, and bounded noise does not hide the event: the averaging attack returns the true count,
or an answer is too large to be possible on D′.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from dpwitness.claims import Claim
from dpwitness.events import Interval
from dpwitness.neighbours import Data, histogram, make_pair
from dpwitness.neighbours.pair import ATTACK_PREFIX
from dpwitness.proposals import AttackFamily, Candidate, Commands, as_numbers, is_histogram


def whole_count(parameters: Mapping[str, Any], data: Data | None, claim: Claim, runs: int) -> Iterator[Candidate]:
    """Propose the event "the attack's total is the number of people in D"; D′ has one person fewer in the fullest cell.

    The mechanisms are the targets of `dpwitness.algorithms.table_builder`, the last number of whose outcome is the
    attack's total; their `suppression`, `base` and `partitions` are among `parameters`. D is the data, the number of
    people with each value, or ten times the suppression in each of `base` cells. Tables on which the attack cannot run
    have no candidate.
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
        f"{ATTACK_PREFIX}D: {whose}; D′: one person fewer with value {int(np.argmax(table)) + 1}; count {place + 1} is "
        f"the attack's total of everybody, and the event that it is {people:.0f}, as on D"
    )
    pair = make_pair(table, fewer, label)
    yield Candidate(pair=pair, event=Interval(coordinate=place, low=people - 0.5, high=people + 0.5))


def own_mechanism(parameters: Mapping[str, object], data: Data | None, claim: Claim, runs: int) -> Iterator[Candidate]:
    """Propose the event "the answer for the fullest cell is too large for D′", which has one person fewer in this cell.

    The mechanism takes counts and returns noisy counts, the cells' own first; the search finds better events, such as
    events of sums. If its parameters equal the parameters of `dpwitness.algorithms.table_builder`, the averaging
    attack's event is proposed as well. The parameter `perturbation`, or 0, is the bound of the noise. D is the data, or
    100 people in each of 7 cells, above any usual suppression. Data other than counts have no candidate.
    """
    if {"suppression", "base", "partitions"} <= parameters.keys():
        yield from whole_count(parameters, data, claim, runs)
    table = np.full(7, 100) if data is None else as_numbers(data)
    if table is None or not is_histogram(table) or not table.any():
        return
    bound = parameters.get("perturbation", 0)
    place, fewer = int(np.argmax(table)), table.astype(np.int64)
    fewer[place] -= 1
    pair = make_pair(table.astype(np.int64), fewer, "one fewer in the fullest cell")
    low = float(table[place]) + (float(bound) if isinstance(bound, int | float) else 0.0) - 0.5
    yield Candidate(pair=pair, event=Interval(coordinate=place, low=low, high=np.inf))


def _add_command(commands: Commands) -> None:
    from dpwitness.reconstruction.table_builder.command import add_command  # `check` needs no command line

    add_command(commands, FAMILY)


#: Entry point of the attack `table_builder` for `check --attack` and `dpwitness attack`.
FAMILY: Final = AttackFamily(
    name="table_builder",
    summary="counts behind noise or suppression, or the size of the noise (TableBuilder; Asghar & Kaafar 2020)",
    generators={"whole_count": whole_count, "own_mechanism": own_mechanism},
    default="own_mechanism",
    relation=histogram(7, any_length=True),
    add_command=_add_command,
)
