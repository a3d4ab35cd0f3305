"""Candidates against private threshold testing, and the family's entry point.

The candidates come from Theorem 4.7 of Chen & Machanavajjhala (2015): copies of two queries around the threshold
that change places on D′; and without query noise, the event that Algorithm 3 gives a cell its true count.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import numpy as np

from dpwitness.arrays import Integers
from dpwitness.claims import Claim
from dpwitness.events import OutcomeSet
from dpwitness.neighbours import Data, make_pair, queries
from dpwitness.neighbours.pair import ATTACK_PREFIX
from dpwitness.proposals import Attack, AttackFamily, Candidate, Commands, as_numbers, is_histogram
from dpwitness.reconstruction.threshold_testing.theory import mirrored_probabilities

#: The largest number of copies of a query: with more copies the event is too rare for usual numbers of runs.
MOST_TRIED_COPIES: Final = 40


def promising_copies(
    epsilon1: float, epsilon2: float, *, threshold: float, base: float, claim: Claim, runs: int
) -> list[int]:
    """The numbers t of copies with the most expected evidence and with the best lower bound from `runs` paired runs.

    The result has one or two numbers, at most `MOST_TRIED_COPIES`, in ascending order; without query noise one copy
    suffices. ε₁, ε₂, threshold and base, in units of the sensitivity: see `mirrored_probabilities`.
    """
    if epsilon2 == np.inf:
        return [1]
    evidence, bound, plane = [], [], claim.half_plane()
    for t in range(1, MOST_TRIED_COPIES + 1):
        v, w = mirrored_probabilities(t, epsilon1, epsilon2, threshold=threshold, base=base)
        if t > 1 and v * runs < 20:  # an event with fewer expected hits shows little
            break
        if not w > 0:  # the event is nearly impossible on D′: its probability is too small for a double
            return [t]
        # The drift of X = 1[D] − slope·1[D′] − intercept in standard deviations, and log(V/V′) less its noise.
        evidence.append((v - plane.slope * w - plane.intercept) / np.sqrt(v + plane.slope**2 * w))
        # log(1/α) + log 2 = 7.6 for a bound with confidence 0.999
        bound.append(np.log(v / w) - np.sqrt(2 * 7.6 / runs * (1 / v + 1 / w)))
    return sorted({int(np.argmax(evidence)) + 1, int(np.argmax(bound)) + 1})


def _attack(split: Callable[[Mapping[str, Any]], tuple[float, float]]) -> Attack:
    """The attack on a mechanism of private threshold testing; `split` gives ε₁ and ε₂ from its parameters."""

    def propose(parameters: Mapping[str, Any], data: Data | None, claim: Claim, runs: int) -> Iterator[Candidate]:
        sensitivity = float(parameters["sensitivity"])
        # ε, threshold and base are in units of the sensitivity, so that one person moves a query by 1.
        epsilon1, epsilon2 = split(parameters)
        threshold = float(parameters["threshold"]) / sensitivity
        base = float(np.floor(threshold))
        inputs = "D: the true answers to t copies of each of two queries, which change places on D′"
        if data is not None:
            people = as_numbers(data)
            if sensitivity != 1 or people is None or not is_histogram(people):
                return  # the data are no counts of people, so neighbours and queries on them are not known
            counts = people.astype(np.int64)
            cell = _find_mirror_cell(counts, int(base))
            if cell is None:
                return
            inputs = (
                f"D: the true answers to t copies of each of two differences to cell {cell + 1} of the data; D′: one "
                "person fewer in it"
            )
        for t in promising_copies(epsilon1, epsilon2, threshold=threshold, base=base, claim=claim, runs=runs):
            answers = np.repeat([0.0, 1.0], t)
            first, second = (base + answers) * sensitivity, (base + 1 - answers) * sensitivity
            label = f"{ATTACK_PREFIX}{inputs}; t = {t} (Theorem 4.7)"
            yield Candidate(pair=make_pair(first, second, label), event=OutcomeSet(answers[None]))

    return propose


#: The attack on generalised private threshold testing.
gptt = _attack(lambda p: (float(p["epsilon1"]), float(p["epsilon2"])))
#: The attack on the mechanism of Lee & Clifton.
gptt_lee_clifton = _attack(lambda p: (float(p["epsilon"]) / 4, 3 * float(p["epsilon"]) / 4))
#: The attack on the mechanism of Chen et al.
gptt_chen = _attack(lambda p: (float(p["epsilon"]) / 2, float(p["epsilon"]) / 2))
#: The attack on the mechanism of Stoddard et al., which has no query noise.
gptt_stoddard = _attack(lambda p: (float(p["epsilon"]), np.inf))


def _find_mirror_cell(counts: Integers, base: int) -> int | None:
    """A cell v with x_a − x_v = base and x_v − x_b = base + 1 for two other cells a and b, or None.

    With one person fewer in v the two differences change places, as in Theorem 4.7.
    """
    tally = dict(zip(*(part.tolist() for part in np.unique(counts, return_counts=True)), strict=True))
    for v, count in enumerate(counts.tolist()):
        others = tally | {count: tally[count] - 1}
        if count > 0 and others.get(count + base, 0) and others.get(count - base - 1, 0):
            return v
    return None


def own_mechanism(parameters: Mapping[str, object], data: Data | None, claim: Claim, runs: int) -> Iterator[Candidate]:
    """Propose the candidates of Theorem 4.7 of Chen & Machanavajjhala (2015) for every published split of ε.

    The mechanism maps query answers to as many flags, ⊤ or ⊥. Its parameters `epsilon1`, `epsilon2`, `epsilon`,
    `threshold` (or `theta`, `T`, `t`) and `sensitivity` are used if it has them; defaults are the claim's ε, 0 and 1.
    """
    numbers = {name: float(value) for name, value in parameters.items() if isinstance(value, int | float)}
    epsilon = numbers.get("epsilon") or claim.parameter or 1.0
    known = {
        "sensitivity": numbers.get("sensitivity", 1.0),
        "threshold": next((numbers[name] for name in ("threshold", "theta", "T", "t") if name in numbers), 0.0),
    }
    # The budgets of threshold and queries in the published mechanisms, the last one without query noise.
    splits = [(epsilon / 2, epsilon / 2), (epsilon / 4, 3 * epsilon / 4), (epsilon, np.inf)]
    if numbers.get("epsilon1") and numbers.get("epsilon2"):
        splits = [(numbers["epsilon1"], numbers["epsilon2"])]
    for epsilon1, epsilon2 in splits:
        yield from gptt(known | {"epsilon1": epsilon1, "epsilon2": epsilon2}, data, claim, runs)


def _add_command(commands: Commands) -> None:
    from dpwitness.reconstruction.threshold_testing.command import add_command  # `check` needs no command line

    add_command(commands, FAMILY)


#: Entry point of the attack `threshold_testing` for `check --attack` and `dpwitness attack`.
FAMILY: Final = AttackFamily(
    name="threshold_testing",
    summary="counts of a histogram through private threshold testing (Chen & Machanavajjhala 2015)",
    generators={
        "gptt": gptt,
        "gptt_lee_clifton": gptt_lee_clifton,
        "gptt_chen": gptt_chen,
        "gptt_stoddard": gptt_stoddard,
        "own_mechanism": own_mechanism,
    },
    default="own_mechanism",
    relation=queries(10, any_length=True),
    add_command=_add_command,
)
