"""Candidates against a mechanism of the user's that answers about secret bits, or reconstructs them."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from dpwitness.attacks.candidate import Candidate
from dpwitness.attacks.subset_sum.candidates import RECONSTRUCTED
from dpwitness.claims import Claim
from dpwitness.errors import InvalidParameter
from dpwitness.events import Interval
from dpwitness.neighbours import Data, make_pair

__all__ = ["own_mechanism"]


def own_mechanism(parameters: Mapping[str, Any], data: Data | None, claim: Claim, runs: int) -> Iterator[Candidate]:
    """One bit flipped, the first, the middle or the last: "what it gives for this person is above 1/2".

    For a mechanism from bits to what is made of them: one number for each person, as a reconstruction has it, or any
    other answers, for which the search finds the event. D is the data, or alternating bits. Raises `InvalidParameter`
    for data that are no list of bits.
    """
    base = np.arange(RECONSTRUCTED) % 2 if data is None else np.asarray(data)
    if base.ndim != 1 or not len(base) or not np.isin(base, (0, 1)).all():
        raise InvalidParameter(f"data of shape {base.shape} are no list of bits")
    for position in dict.fromkeys((0, len(base) // 2, len(base) - 1)):
        one, zero = base.astype(np.int64), base.astype(np.int64)
        one[position], zero[position] = 1, 0
        pair = make_pair(one, zero, f"bit {position + 1} flipped")
        yield Candidate(pair=pair, event=Interval(coordinate=position, low=0.5, high=np.inf))
