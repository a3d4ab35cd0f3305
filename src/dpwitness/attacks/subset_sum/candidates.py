"""The reconstruction of one bit as a source of witnesses: the bit is 1 in D, 0 in D′, and the attack says 1."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from dpwitness.attacks.candidate import Candidate
from dpwitness.claims import Claim
from dpwitness.errors import InvalidParameter
from dpwitness.events import OutcomeSet
from dpwitness.neighbours import Data, make_pair
from dpwitness.neighbours.pair import ATTACK

__all__ = ["RECONSTRUCTED", "check_position", "flipped_bit"]

#: Bits of an input where no data are given: 720 queries and a linear program, some 0.02 s a run; 128 bits take 0.2 s.
RECONSTRUCTED: Final = 48


def flipped_bit(parameters: Mapping[str, Any], data: Data | None, claim: Claim, runs: int) -> Iterator[Candidate]:
    """Propose that the bit at `position`, 1 in D and 0 in D′, is recovered as 1.

    For `subset_sum_reconstruction`, whose outcome is the recovered bit; its `position` is among `parameters`. D is the
    data, or alternating bits, with a 1 there. Raises `InvalidParameter` for a position outside of the data.
    """
    position = int(parameters["position"])
    base = np.arange(RECONSTRUCTED) % 2 if data is None else np.array(data, np.int64)
    if base.ndim != 1:
        raise InvalidParameter(f"data of shape {base.shape} are no list of bits")
    check_position(position, len(base))
    one, zero = base.copy(), base.copy()
    one[position], zero[position] = 1, 0
    whose = "alternating bits" if data is None else "the data"
    label = f"{ATTACK}D: {whose}, with a 1 for person {position + 1}, and 0 on D′; the event: the attack recovers the 1"
    pair = make_pair(one, zero, label)
    yield Candidate(pair=pair, event=OutcomeSet([[1.0]]))


def check_position(position: int, size: int) -> None:
    """Raise `InvalidParameter` unless the position, counted from 0, is that of one of `size` bits."""
    if not 0 <= position < size:
        raise InvalidParameter(f"position={position} must be one of the {size} bits, counted from 0")
