"""Candidates of the family `subset_sum`, and its entry point: a bit is 1 in D, 0 in D′, and the attack recovers a 1.

`check` tries these candidates against the bundled target that reconstructs a bit, and against the user's own mechanism,
which answers questions about secret bits or reconstructs them.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from dpwitness.arrays import Integers
from dpwitness.claims import Claim
from dpwitness.errors import InvalidParameter
from dpwitness.events import Interval, OutcomeSet
from dpwitness.neighbours import Data, Pair, bits, make_pair
from dpwitness.neighbours.pair import ATTACK_PREFIX
from dpwitness.proposals import AttackFamily, Candidate, Commands

#: Number of bits of an input without data: a run of 720 queries and a linear program takes 0.02 s; 128 bits take 0.2 s.
DEFAULT_BITS: Final = 48


def flipped_bit(parameters: Mapping[str, Any], data: Data | None, claim: Claim, runs: int) -> Iterator[Candidate]:
    """Propose the event that the attack recovers a 1 for the bit at `position`, which is 1 in D and 0 in D′.

    The mechanism is `subset_sum_reconstruction`, whose outcome is the recovered bit; its `position` is among
    `parameters`. D is the data, or alternating bits, with a 1 at the position. Raises `InvalidParameter` for data that
    are no list of bits, and a position outside of them.
    """
    base, position = _list_of_bits(data), int(parameters["position"])
    check_position(position, len(base))
    label = (
        f"{ATTACK_PREFIX}D: {'alternating bits' if data is None else 'the data'}, with a 1 for person {position + 1}, "
        "and 0 on D′; the event: the attack recovers the 1"
    )
    yield Candidate(pair=_flip(base, position, label), event=OutcomeSet([[1.0]]))


def check_position(position: int, size: int) -> None:
    """Raise `InvalidParameter` unless the position of a bit is at least 0 and below `size`."""
    if not 0 <= position < size:
        raise InvalidParameter(f"position={position} must be one of the {size} bits, counted from 0")


def own_mechanism(parameters: Mapping[str, object], data: Data | None, claim: Claim, runs: int) -> Iterator[Candidate]:
    """Propose pairs that differ in the first, middle or last bit, and the event "this person's output is above 1/2".

    The mechanism takes bits and returns a number for each person, as a reconstruction does, or other answers, for which
    the search finds an event. D is the data, or alternating bits. Raises `InvalidParameter` for data that are no list
    of bits.
    """
    base = _list_of_bits(data)
    for position in dict.fromkeys((0, len(base) // 2, len(base) - 1)):
        pair = _flip(base, position, f"bit {position + 1} flipped")
        yield Candidate(pair=pair, event=Interval(coordinate=position, low=0.5, high=np.inf))


def _list_of_bits(data: Data | None) -> Integers:
    base = np.arange(DEFAULT_BITS) % 2 if data is None else np.asarray(data)
    if base.ndim != 1 or not len(base) or not np.isin(base, (0, 1)).all():
        raise InvalidParameter(f"data of shape {base.shape} are no list of bits")
    return base.astype(np.int64)


def _flip(base: Integers, position: int, label: str) -> Pair:
    """The pair of the bits with a 1, and with a 0, at the position."""
    one, zero = base.copy(), base.copy()
    one[position], zero[position] = 1, 0
    return make_pair(one, zero, label)


def _add_command(commands: Commands) -> None:
    from dpwitness.reconstruction.subset_sum.command import add_command  # `check` needs no command line

    add_command(commands, FAMILY)


#: Entry point of the attack `subset_sum` for `check --attack` and `dpwitness attack`.
FAMILY: Final = AttackFamily(
    name="subset_sum",
    summary="reconstruct secret bits from noisy subset sums (Dinur & Nissim 2003)",
    generators={"flipped_bit": flipped_bit, "own_mechanism": own_mechanism},
    default="own_mechanism",
    relation=bits(48, any_length=True),
    add_command=_add_command,
)
