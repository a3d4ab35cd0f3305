"""Relations and events of every kind, drawn by hypothesis, for laws that all of them keep."""

import json
import math
from itertools import islice

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dpwitness import (
    InvalidNeighbours,
    bits,
    categories,
    flags,
    histogram,
    integers,
    numbers,
    pairs,
    queries,
    records,
    text,
)
from dpwitness.events import (
    FEATURES,
    LARGEST_FLOAT,
    Box,
    Feature,
    FeatureEvent,
    Interval,
    OutcomeSet,
    Outside,
    ScoreThreshold,
)
from dpwitness.events.encoding import NONE, TRUE
from dpwitness.neighbours import Pair, input_from_json, input_to_json

booleans = st.booleans()
lengths = st.integers(1, 6)
number_relations = st.one_of(
    st.builds(
        queries, lengths, st.sampled_from([1.0, 1, 0.5, 3.0, 0.1]), st.sampled_from(["all", "one"]),
        st.sampled_from(["any", "up"]), any_length=booleans,
    ),
    st.builds(histogram, lengths, any_length=booleans),
    st.builds(bits, lengths, any_length=booleans),
    st.sampled_from([pairs(([1, 1], [2, 0]), ([0.5], [1.5])), pairs((3, 4)), pairs(([[1, 2]], [[1, 3]]))]),
)  # fmt: skip

leaves = st.one_of(
    st.builds(
        numbers, st.sampled_from([0.0, -1.5, -1e300]), st.sampled_from([0.5, 5, 1e300]), clipped=booleans,
        missing=booleans,
    ),
    st.builds(integers, st.integers(-5, 0), st.integers(1, 2**40), clipped=booleans, missing=booleans),
    st.builds(categories, st.just("a"), st.just("b"), st.just("c"), other=booleans, missing=booleans),
    st.builds(categories, st.just(3), st.just(7), other=booleans),
    st.builds(flags),
    st.builds(text, st.sampled_from([1, 3, 40]), missing=booleans),
)  # fmt: skip
domains = st.one_of(
    leaves,
    st.lists(leaves, min_size=1, max_size=3).map(tuple),
    st.dictionaries(st.sampled_from(["age", "sex", "x"]), leaves, min_size=1, max_size=3),
    st.tuples(st.lists(leaves, min_size=1, max_size=2).map(tuple), leaves),
    st.lists(st.one_of(leaves, st.tuples(leaves)), min_size=1, max_size=2),
)
adjacencies = st.sampled_from(["add-remove", "replace-one", None])


@st.composite
def record_relations(draw):
    """Datasets of records of any domain, in any form that such records may have."""
    domain = draw(domains)
    settings = {"adjacency": draw(adjacencies), "size": draw(st.sampled_from([None, 1, 4, (0, 3), (2, 2), (1, 12)]))}
    forms = [None]
    for form in ("list", "array", "dataframe", "columns", "xy", "record"):
        try:
            records(domain, form=form, **settings)
        except InvalidNeighbours:
            continue
        forms.append(form)
    return records(domain, form=draw(st.sampled_from(forms)), **settings)


units = st.sampled_from([integers(1, 1000), integers(0, 3), categories("ann", "bob", "cid", "dan"), text(4)])
fields = st.sampled_from([integers(0, 120), flags(), numbers(0.0, 1.0, missing=True), categories("a", "b", other=True)])


@st.composite
def unit_relations(draw):
    """Datasets of units in any form that such records may have; the field of the unit has any place."""
    others = list(draw(st.dictionaries(st.sampled_from(["age", "member", "x"]), fields, max_size=2)).items())
    place = draw(st.integers(0, len(others)))
    domain = dict([*others[:place], ("person", draw(units)), *others[place:]])
    form = draw(st.sampled_from(["list", "dataframe", "columns", "tuples", "array"]))
    settings = {
        "adjacency": draw(adjacencies),
        "size": draw(st.sampled_from([None, 4, (0, 3), (1, 12)])),
        "at_most": draw(st.sampled_from([None, 1, 2, 3])),
    }
    if form in ("tuples", "array"):
        numeric = all(part.dtype in ("int64", "float64", "bool") for part in domain.values())
        own = "array" if form == "array" and numeric else "list"
        return records(tuple(domain.values()), unit=place, form=own, **settings)
    return records(domain, unit="person", form=form, **settings)


RELATIONS = {"numbers": number_relations, "records": record_relations(), "units": unit_relations()}


def small(pairs, most=20):
    """The first `most` pairs."""
    return list(islice(pairs, most))


def through_a_file(data):
    """An input, written to JSON and read again."""
    return input_from_json(json.loads(json.dumps(input_to_json(data), allow_nan=False)))


def pair_through_a_file(pair):
    return Pair(*map(through_a_file, pair.sides))


def rows_of(entries):
    """A strategy of outcomes as rows of the given entries."""
    return hnp.arrays(np.float64, st.tuples(st.integers(1, 20), st.integers(1, 4)), elements=st.sampled_from(entries))


rows = rows_of([0.0, 1.0, -1.5, 2.0, np.nan])
real_rows = rows_of([0.0, 1.0, -1.5, LARGEST_FLOAT, -LARGEST_FLOAT, np.inf, -np.inf, np.nan])
coordinates = st.integers(0, 3)
ends = st.lists(st.floats(-3, 3), min_size=2, max_size=2, unique=True).map(sorted)
intervals = st.one_of(
    st.builds(lambda c, e: Interval(coordinate=c, low=e[0], high=e[1]), coordinates, ends),
    st.builds(lambda c, x: Interval(coordinate=c, low=x), coordinates, st.floats(-3, 3)),
    st.builds(lambda c, x: Interval(coordinate=c, high=x), coordinates, st.floats(-3, 3)),
    st.builds(lambda c: Interval(coordinate=c), coordinates),
    st.builds(lambda c: Interval(coordinate=c, low=np.inf), coordinates),
    st.builds(lambda c: Interval(coordinate=c, high=-LARGEST_FLOAT), coordinates),
)


@st.composite
def scores(draw):
    used = draw(st.lists(coordinates, min_size=1, max_size=4, unique=True))
    ends = st.one_of(st.floats(-3, 3), st.sampled_from([-np.inf, np.inf]))
    edges = [sorted(draw(st.lists(ends, max_size=3, unique=True))) for _ in used]
    weights = [draw(st.lists(st.floats(-5, 5), min_size=len(e) + 2, max_size=len(e) + 2)) for e in edges]
    return ScoreThreshold(used, edges, weights, draw(st.floats(-5, 5)))


@st.composite
def features(draw):
    name = draw(st.sampled_from(sorted(FEATURES)))
    kind = FEATURES[name]
    count = kind.entries or 1
    columns = draw(st.lists(coordinates, min_size=count, max_size=count, unique=True))
    number = {
        "": st.just(math.nan),
        "value": st.sampled_from([0.0, 1.0, 2.0, TRUE, NONE, math.inf]),
        "positive": st.sampled_from([1.0, 2.0, 3.0, 10.0, 0.5, 2.0**-20, 1e6]),
        "power": st.integers(1, 52).map(float),
        "place": st.integers(1, columns[0] + 1).map(float),
    }[kind.number]
    return Feature(name=name, columns=tuple(columns), number=draw(number))


one_column = st.one_of(
    st.builds(lambda e: Interval(coordinate=0, low=e[0], high=e[1]), ends),
    st.builds(lambda x: Interval(coordinate=0, low=x), st.floats(-3, 3)),
    st.builds(lambda x: Interval(coordinate=0, high=x), st.floats(-3, 3)),
    st.just(Interval(coordinate=0)),
    st.builds(lambda v: OutcomeSet([[x] for x in v]), st.lists(st.integers(-2, 5), min_size=1, max_size=12)),
)
EVENTS = {
    "interval": intervals,
    "outside": st.builds(Outside, interval=intervals),
    "box": st.builds(lambda sides: Box(tuple(sides)), st.lists(intervals, min_size=1, max_size=3)),
    "outcomes": st.builds(OutcomeSet, rows),
    "score": scores(),
    "feature": st.builds(lambda feature, within: FeatureEvent(feature=feature, within=within), features(), one_column),
}
