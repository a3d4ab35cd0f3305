"""Candidates against a mechanism of the user's that publishes counts with bounded noise."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from dpwitness.attacks.candidate import Candidate, as_numbers, is_histogram
from dpwitness.attacks.table_builder.candidates import whole_count
from dpwitness.claims import Claim
from dpwitness.events import Interval
from dpwitness.neighbours import Data, make_pair

__all__ = ["own_mechanism"]

#: People in each cell where no data are given, above any suppression; and cells.
PEOPLE: Final = 100
CELLS: Final = 7
#: Parameters of a mechanism that answers the averaging attack's own questions.
ASKED: Final = ("suppression", "base", "partitions")


def own_mechanism(parameters: Mapping[str, Any], data: Data | None, claim: Claim, runs: int) -> Iterator[Candidate]:
    """One person fewer in the fullest cell: "its answer is as large as only one more person makes it".

    For a mechanism from counts to noisy counts, the cells' own first; the search finds better events, as of sums of
    them. Where its parameters are those of `dpwitness.algorithms.table_builder`, the averaging attack's event is
    proposed as well. A `perturbation` among them is the bound of the noise, else 0. D is the data, or 100 people in
    each cell. Nothing is proposed for what are no counts.
    """
    if all(name in parameters for name in ASKED):
        yield from whole_count(parameters, data, claim, runs)
    table = np.full(CELLS, PEOPLE) if data is None else as_numbers(data)
    if table is None or not is_histogram(table) or not table.any():
        return
    bound = parameters.get("perturbation", 0)
    place, fewer = int(np.argmax(table)), table.astype(np.int64)
    fewer[place] -= 1
    pair = make_pair(table.astype(np.int64), fewer, "one fewer in the fullest cell")
    low = float(table[place]) + (float(bound) if isinstance(bound, int | float) else 0.0) - 0.5
    yield Candidate(pair=pair, event=Interval(coordinate=place, low=low, high=np.inf))
