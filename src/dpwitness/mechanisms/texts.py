"""Texts that hardly ever repeat, as those with an id or with noise in them: what is read of each.

A text is one code: of two that differ nothing is alike. Where they repeat this is all that events need; where they do
not, no event would come twice. There a layout has entries for what stands within each text besides (`READ`), and rows
that are laid out by it have them. Whether texts repeat is seen in a few runs, before any that are learned from.
"""

import math
import re
from collections.abc import Mapping
from functools import lru_cache
from itertools import islice
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.events.encoding import entries, is_text, symbol

#: How an entry of a text is said, by the word of the step to it and its number.
READ: Final[Mapping[str, str]] = {
    "length of text": "length of the text",
    "character": "character {} of the text",
    "last character": "character {} from the end of the text",
    "number in text": "number {} in the text",
}
LENGTH, FIRST, LAST, NUMBER = READ
#: Characters at the beginning and at the end, and numbers, that have an entry each.
CHARACTERS: Final = 8
NUMBERS: Final = 4
_NUMBER: Final = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")

#: Texts of a place that came only once, at least, and the share of all texts there that they are.
ONCE: Final = 8
SHARE: Final = 1 / 4
#: Places of an outcome whose texts are read, at most.
PLACES: Final = 16
#: Of what takes up to so many seconds a run, paired runs that are looked at: a second at most, so of slower ones none.
#: A few numbers, so that rows are the same though the measured seconds vary a little.
RUNS: Final = ((500e-6, 256), (4e-3, 32), (0.02, 8), (0.125, ONCE // 2))

#: The steps to all that is read of a text, in the order of `read`.
PARTS: Final = tuple(
    (word, (float(place),))
    for word, most in ((LENGTH, 1), (FIRST, CHARACTERS), (LAST, CHARACTERS), (NUMBER, NUMBERS))
    for place in range(1, most + 1)
)


def read(text: str) -> tuple[list[float], list[tuple[float, str]]]:
    """What is read of a text, in the order of `PARTS`, NaN for what it lacks; and the characters behind entries."""
    ends = [[_character(one) for one in part] for part in (text[:CHARACTERS], text[: -CHARACTERS - 1 : -1])]
    numbers = [float(found.group()) for found in islice(_NUMBER.finditer(text), NUMBERS)]
    numbers = [entries(number)[0] if math.isfinite(number) else math.nan for number in numbers]
    found = [float(len(text))]
    for known, most in (*(([code for code, _ in end], CHARACTERS) for end in ends), (numbers, NUMBERS)):
        found += known
        found += [math.nan] * (most - len(known))
    return found, ends[0] + ends[1]


@lru_cache(1 << 12)
def _character(character: str) -> tuple[float, str]:
    return symbol("character", character), repr(character)


def runs_to_look_at(seconds_per_run: float) -> int:
    """How many paired runs are looked at of a mechanism whose run takes so long."""
    return next((runs for seconds, runs in RUNS if seconds_per_run <= seconds), 0)


def may_be_fresh(labels: Mapping[float, str], runs: int) -> bool:
    """Whether so many runs gave so many texts that it is worth a look whether they repeat."""
    texts = sum(bool(is_text(code)) for code in labels)
    return texts >= min(0.75 * runs, ONCE)


def fresh(column: NDArray[np.float64]) -> bool:
    """Whether the texts among the entries of one place hardly ever repeat."""
    texts = column[is_text(column)]
    once = np.count_nonzero(np.unique(texts, return_counts=True)[1] == 1)
    return bool(once >= max(ONCE, SHARE * len(texts)))
