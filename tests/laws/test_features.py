"""Features of outcomes: what they compute, by a slow definition of each; their text; their JSON."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dpwitness.errors import InvalidWitness
from dpwitness.events import Feature, FeatureEvent, Interval, OutcomeSet, event_from_json
from dpwitness.events.encoding import FALSE, NEGATIVE_ZERO, NONE, NOT_A_NUMBER, TRUE, nested
from drawn import EVENTS, features

SPECIAL = [np.nan, np.inf, -np.inf, TRUE, FALSE, NEGATIVE_ZERO, NOT_A_NUMBER, NONE, nested(3)]
entries = st.one_of(
    st.sampled_from([0.0, 1.0, -1.5, 2.0, 10.0, 12.5, -7.0, 1e6 + 3, *SPECIAL]), st.floats(-1e9, 1e9, width=64)
)
rows = hnp.arrays(np.float64, st.tuples(st.integers(1, 12), st.integers(1, 5)), elements=entries)


def plain(x):
    """An entry as a number; NaN for what is none."""
    if math.isnan(x) or x in (NOT_A_NUMBER, NONE, nested(3)):
        return math.nan
    return {TRUE: 1.0, FALSE: 0.0, NEGATIVE_ZERO: 0.0}.get(x, x)


def significand(x):
    """The whole number of 53 bits, and the power of 2 that it is multiplied by; None where there is none."""
    if not math.isfinite(x) or x == 0:
        return None
    fraction, exponent = math.frexp(abs(x))
    return int(Fraction(fraction) * 2**53), exponent - 53


def zeros(whole):
    return len(f"{whole:b}") - len(f"{whole:b}".rstrip("0"))


def of_entries(name, raw, number):
    """Features of one or two entries."""
    values = [plain(x) for x in raw]
    first, second = values[0], values[-1]
    if name == "present":
        return float(not math.isnan(raw[0]))
    if name == "order":
        return math.nan if any(map(math.isnan, raw)) else float((raw[0] > raw[1]) - (raw[0] < raw[1]))
    if name in ("difference", "sum of two"):
        return first - second if name == "difference" else first + second
    if name == "distance":
        return abs(first - second)
    if name == "ratio":
        with np.errstate(all="ignore"):
            return float(np.float64(first) / np.float64(second))
    if name == "residue":
        if not math.isfinite(first):
            return math.nan
        return float(Fraction(first) % Fraction(number))
    parts = significand(first)
    if parts is None:
        return math.nan
    if name == "power of two":
        return float(zeros(parts[0]) + parts[1])
    return float(zeros(parts[0])) if name == "trailing zeros" else float(parts[0] % 2 ** int(number))


def of_all(name, raw, number):
    """Features of all entries."""
    there = [x for x in raw if not math.isnan(x)]
    values = [plain(x) for x in raw]
    real = [x for x in values if not math.isnan(x)]
    if name == "length":
        return float(len(there))
    if name == "different":
        return float(len(set(there)))
    if name == "count":
        return float(there.count(number))
    if name in ("first place", "last place"):
        places = [place for place, x in enumerate(raw, 1) if x == number]
        return float(places[0 if name == "first place" else -1]) if places else math.nan
    if name == "first place above":
        return next((place for place, x in enumerate(values, 1) if x > number), math.nan)
    if name == "rank":
        own = values[int(number) - 1]
        return math.nan if math.isnan(own) else 1.0 + sum(x < own for x in real)
    rises = [b - a for a, b in zip([0.0, *values], values, strict=False)]
    rises = [x for x in rises[name.endswith(("difference", "differences", "differences above")) :] if x == x]
    if name in ("above", "steps above", "differences above"):
        return float(sum(x > number for x in (real if name == "above" else rises)))
    if "difference" in name or "step" in name:
        real = [abs(x) for x in rises] if name.startswith("sum") else rises
    if name == "sum of absolute values":
        real = [abs(x) for x in real]
    ranked = sorted(real)
    if name == "order statistic":
        return ranked[int(number) - 1] if number <= len(ranked) else math.nan
    if name in ("range", "gap"):
        less = ranked[:1] if name == "range" else ranked[-2:-1]
        return ranked[-1] - less[0] if less else math.nan
    if not real:
        return math.nan
    if name.startswith(("sum", "smallest", "largest")) and len(name.split()) > 1:
        return sum(real) if name.startswith("sum") else max(real) if name.startswith("largest") else min(real)
    extreme = min if name.endswith("smallest") else max
    if name in ("largest", "smallest"):
        return extreme(real)
    return sum(real) if name == "sum" else values.index(extreme(real)) + 1.0


@settings(max_examples=60)
@given(features(), rows)
@example(Feature(name="sum", columns=(1,)), np.array([[np.inf, -np.inf]]))
@example(Feature(name="residue", columns=(0,), number=0.1), np.array([[0.3], [0.1 + 0.2], [-0.1], [0.25]]))
@example(Feature(name="power of two", columns=(0,)), np.array([[5e-324], [2.0**-53], [3 * 2.0**40], [0.1]]))
def test_a_feature_is_what_its_slow_definition_says(feature, outcomes):
    definition = of_all if feature.kind.entries is None else of_entries
    values = feature.values(outcomes)
    for row, value in zip(outcomes.tolist(), values.tolist(), strict=True):
        row += [math.nan] * (feature.width - len(row))
        looked_at = row[: feature.width] if feature.kind.entries is None else [row[c] for c in feature.columns]
        expected = definition(feature.name, looked_at, feature.number)
        if feature.name == "residue" and not math.isnan(expected):  # rounded, and 0 where it comes near the modulus
            assert 0 <= value < feature.number
            around = abs(value - expected)
            assert min(around, feature.number - around) <= 1e-8 * feature.number
        else:
            assert value == pytest.approx(expected, rel=1e-12, nan_ok=True)


@settings(max_examples=40)
@given(EVENTS["feature"], rows)
def test_a_feature_event_holds_where_the_value_is_within(event, outcomes):
    values = event.feature.values(outcomes)
    inside = event.within.contains(values[:, None])
    assert np.array_equal(event.contains(outcomes), inside)
    assert not inside[np.isnan(values)].any()
    assert event.complexity > Interval(coordinate=3, low=0, high=1).complexity


def event(name, *columns, number=math.nan, low=-np.inf, high=np.inf, values=None):
    inside = Interval(coordinate=0, low=low, high=high) if values is None else OutcomeSet([[v] for v in values])
    return FeatureEvent(feature=Feature(name=name, columns=columns, number=number), within=inside)


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (event("difference", 0, 2, low=0.2), "first value − third value at least 0.2"),
        (event("sum of two", 0, 11, low=0, high=2.5), "first value + value 12 from 0 to below 2.5"),
        (event("order", 0, 1, high=0), "first value below second value"),
        (event("order", 0, 1, values=[-1, 1]), "sign of first value − second value one of −1, 1"),
        (event("present", 1, values=[0]), "second value absent"), (event("present", 1, low=1), "second value present"),
        (event("residue", 1, number=10, values=[0]), "second value is a multiple of 10"),
        (event("power of two", 0, low=-53), "first value is a multiple of 2^−53"),
        (event("trailing zeros", 0, low=11), "the last 11 bits of first value are zero"),
        (event("length", 4, high=3), "number of the first 5 values present up to 2"),
        (event("count", 4, number=TRUE, low=2, high=3), "number of the first 5 values equal to ⊤ is 2"),
        (event("place of largest", 4, values=[1, 3]), "place of the largest of the first 5 values one of 1, 3"),
        (event("low bits", 0, number=2, values=[3]), "last 2 bits of first value is 3"),
        (event("order statistic", 19, number=12, high=1), "12-th smallest of the first 20 values below 1"),
    ],
)  # fmt: skip
def test_features_in_plain_english(found, text):
    assert found.describe() == text


def residue(name="residue", columns=(0,), number=10, **within):
    return {
        "kind": "feature",
        "feature": {"name": name, "columns": list(columns), "number": number},
        "within": {"kind": "outcomes", "rows": [[0]]} | within,
    }


@pytest.mark.parametrize(
    ("written", "named"),
    [
        (residue("eval"), "'eval' is unknown"), (residue(["sum"]), "text"),
        (residue("sum", (0, 1), None), "sum needs 1"), (residue("order", (1, 1), None), "order needs 2"),
        (residue("order", (0, -1), None), "columns=-1"), (residue(number=0), "positive number"),
        (residue("low bits", number=1.5), "1 to 52 bits"), (residue("sum", number=2), "no number"),
        (residue("rank", (3,), 5), "1 to 4"), (residue("count", number=None), "a value"),
        ({**residue(), "within": residue()}, "interval or outcomes"), (residue(rows=[[0, 1]]), "first column"),
        ({**residue(), "within": {"kind": "interval", "coordinate": 1, "low": 0, "high": 1}}, "first column"),
    ],
)  # fmt: skip
def test_a_damaged_feature_is_named(written, named):
    assert event_from_json(residue()).to_json()["feature"]["name"] == "residue"
    with pytest.raises(InvalidWitness, match=named):
        event_from_json(written)
