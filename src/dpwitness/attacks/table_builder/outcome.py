"""What an averaging attack found, as the values of its report: known without the truth, and compared with it."""

from collections.abc import Sequence
from typing import Any

from dpwitness.attacks.table_builder.confidence import parameter_right
from dpwitness.attacks.table_builder.histogram import Histogram
from dpwitness.attacks.table_builder.noise_laws import NoiseLaw
from dpwitness.attacks.table_builder.perturbation import Perturbation
from dpwitness.attacks.table_builder.theory import expected_right_of, histogram_bound, perturbation_found

__all__ = ["compared", "found_histogram", "found_parameter", "predicted"]

#: Noises × bound, beyond which the exact law is not computed: its transform would take gigabytes.
LARGEST_LAW = 1 << 25


def found_histogram(found: Histogram) -> dict[str, Any]:
    """What the attack knows: counts and how sure it is of each.

    `confidence` is null where no sums could differ, and where `failed_checks` says what contradicts the assumptions.
    """
    sure = found.variance is not None and found.variance > 0 and not found.failed_checks
    return {
        "attribute": found.attribute,
        "values": list(found.values),
        "published": list(found.noisy),
        "recovered": list(found.counts),
        "confidence": list(found.confidence) if sure else None,
        "probably_right": sum(found.confidence) if sure else None,
        "base": list(found.base),
        "base_partitions": sum(k for _, k in found.base_kinds),
        "partitions": found.partitions,
        "noise_variance": found.variance,
        "workarounds": list(found.workarounds),
        "failed_checks": list(found.failed_checks),
        "queries": found.queries,
    }


def compared(true: Sequence[int], found: Histogram, suppression: int | None) -> dict[str, Any]:
    """How many published and recovered counts are right; of the suppressed ones where it is known which these are."""
    pairs = list(zip(true, found.counts, found.noisy, strict=True))
    hidden = [(t, c) for t, c, shown in pairs if t > 0 and (t <= suppression if suppression is not None else not shown)]
    return {
        "true": list(true),
        "right": sum(t == c for t, c, _ in pairs),
        "right_as_published": sum(t == shown for t, _, shown in pairs),
        "suppressed": len(hidden),
        "suppressed_right": sum(t == c for t, c in hidden),
    }


def predicted(law: NoiseLaw | None, found: Histogram, true: Sequence[int]) -> dict[str, Any]:
    """What the theory says of such a run: null where the noise's law is not known, or a count has no sum at all.

    `all_right_at_least`: the union bound, often 0; `expected_right`: the exact expectation.
    """
    kinds = {*found.kinds, found.base_kinds}
    noises = max(sum(parts * k for parts, k in one) for one in kinds)
    if law is None or () in kinds or noises * 2 * law.bound > LARGEST_LAW:
        return {"all_right_at_least": None, "expected_right": None}
    fewest = min(kinds, key=lambda one: sum(k / parts for parts, k in one))
    return {
        "all_right_at_least": histogram_bound(law, fewest, len(true)),
        "expected_right": expected_right_of(law, found.base_kinds, found.kinds, [t == 0 for t in true]),
    }


def found_parameter(found: Perturbation, law: NoiseLaw | None) -> dict[str, Any]:
    """The guess for r, and how sure one may be of it.

    `confidence`: the probability that it is right, as `parameter_right` has it; null where the sums are not those of
    independent noise around 0. `larger_excluded`: with this probability uniform noise of a larger r would have shown.
    `probability`: with which such an attack finds the r of the simulated `law`, null without one; `probability_a_sum`:
    with which one sum gives it away, or without a law uniform noise of an r that is larger by 1.
    """
    shape = {"plus": found.plus, "minus": found.minus}
    return {
        "guess": found.guess,
        "confidence": parameter_right(found.seen, found.guess, **shape),
        "larger_excluded": perturbation_found(found.guess + 1, found.sums, **shape),
        "right": None if law is None else found.guess == law.bound,
        "smallest_sum": found.smallest,
        "largest_sum": found.largest,
        "sums": found.sums,
        "answers_a_sum": found.plus + found.minus,
        "probability_a_sum": perturbation_found(found.guess + 1 if law is None else law, 1, **shape),
        "probability": None if law is None else perturbation_found(law, found.sums, **shape),
    }
