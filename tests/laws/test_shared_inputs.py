"""Runs of plain Python share one input: what they return is what they would return of copies."""

import collections
import copy
import itertools
import pickle
import threading
import zlib

import numpy as np
import pandas as pd
import pytest

from dpwitness.errors import DependentRuns
from dpwitness.mechanisms.mechanism import PairedRuns
from dpwitness.mechanisms.python import COMPARISON_RUNS, PythonMechanism
from dpwitness.mechanisms.signature import Signature
from dpwitness.neighbours import Pair
from dpwitness.neighbours.inputs import copier, shared_input
from dpwitness.runs import Role
from dpwitness.runs.shards import OutcomeRows
from running import sampled, stream

RECORD, PAYS = np.dtype([("a", "i4"), ("b", "f8")]), np.dtype([("id", "i4"), ("pay", "O")])


class Held:
    def __init__(self, values):
        self.values = values


class Key:
    """A key of a dict that can be changed."""

    def __hash__(self):
        return 1

    def __eq__(self, other):
        return isinstance(other, Key)


def write(array):
    array.flat[0] += 1


def retype(values):
    values[0] = {int: float, float: bool, bool: int}[type(values[0])](values[0])


def attribute(frame):
    frame.note = 1


def renumber(values):
    values.flags.writeable = True  # so it is in older versions of pandas
    values[0] += 1


def cell(frame):
    frame.iloc[0, 0] += 1


def numbers(x):
    return np.array([x, 2.0, 3.0, 4.0])


def frame(x, **settings):
    return pd.DataFrame({"a": [x, 2.0], "b": ["p", "q"]}, **settings)


def indexed(x):
    return frame(x, index=np.array([5, 6]))


def lists(x):
    """pandas and NumPy do not copy them: a function that converts them in place was refuted."""
    return pd.Series([[x], [2], None], index=["a", "b", "b"], name="pay", dtype=object)


def categories(x):
    return pd.DataFrame({"a": [x, 2.0], "kind": pd.Categorical([5, 6])})


#: An input by a number in it, and a change in place.
CHANGES = {
    "list: append": (lambda x: [x, 2], lambda v: v.append(9)),
    "list: reverse": (lambda x: [x, 2, 3], list.reverse),
    "list: another type": (lambda x: [1, x], retype),
    "list of dicts": (lambda x: [{"a": x}, {"a": 2}], lambda v: v[1].update(a=v[1]["a"] + 1)),
    "list of lists: moved item": (lambda x: [[x, 2], [3]], lambda v: v[1].append(v[0].pop()) if v[0] else None),
    "list of records": (lambda x: [np.array([(1, x)], RECORD)[0]], lambda v: v[0].__setitem__("a", v[0]["a"] + 1)),
    "dict: order": (lambda x: {"a": x, "b": 2}, lambda v: v.update(a=v.pop("a"))),
    "dict: equal key": (lambda x: {1: x}, lambda v: v.update({True: v.pop(1)})),
    "dict: an attribute of a key": (lambda x: {Key(): x}, lambda v: setattr(next(iter(v)), "note", 1)),
    "set": (lambda x: {x, 100}, lambda v: v.symmetric_difference_update({-1})),
    "array: C": (numbers, write),
    "array: objects": (lambda x: np.array([x, [1]], object), lambda v: v[1].append(1)),
    "array: records": (lambda x: np.array([(1, x)], RECORD), lambda v: v["a"].__iadd__(1)),
    "array: dtype": (numbers, lambda v: setattr(v, "dtype", "i8" if v.dtype == float else "f8")),
    "array: flags": (numbers, lambda v: v.setflags(write=not v.flags.writeable)),
    "array: lists in records": (lambda x: np.array([(1, [x])], PAYS), lambda v: v["pay"][0].append(1)),
    "frame: a cell": (frame, cell),
    "frame: a list in a cell": (lambda x: pd.DataFrame({"a": lists(x), "n": 1.5}), lambda v: v["a"].iloc[0].append(1)),
    "series: a list": (lists, lambda v: v.iloc[0].append(1)),
    "frame: an attribute": (frame, attribute),
    "frame: attrs": (frame, lambda v: v.attrs.update(note=v.attrs.get("note", 0) + 1)),
    "frame: a column": (frame, lambda v: v.insert(0, len(v.columns), 1)),
    "frame: an index": (indexed, lambda v: renumber(v.index.values)),
    "frame: an attribute of the columns": (frame, lambda v: attribute(v.columns)),
    "frame: categories": (categories, lambda v: renumber(v["kind"].cat.categories.values)),
    "frame: an attribute of categories": (categories, lambda v: attribute(v["kind"].cat.categories)),
    "series: categories": (lambda x: categories(x)["kind"][x:], lambda v: renumber(v.cat.categories.values)),
    "series": (lambda x: pd.Series([x, 2.0]), lambda v: v.__setitem__(0, v[0] + 1)),
}  # fmt: skip
ALWAYS, LATE, NEIGHBOUR = "always", "late", "only on the neighbour"


def content(data):
    """A number for all that an input holds."""
    extra = (data.flags.writeable, data.strides) if isinstance(data, np.ndarray) else ()
    if isinstance(data, pd.DataFrame | pd.Series):
        kinds = data.dtypes if isinstance(data, pd.DataFrame) else [data.dtype]
        labels = [*data.axes, *(kind.categories for kind in kinds if isinstance(kind, pd.CategoricalDtype))]
        held = [(one.values.tolist(), hasattr(one, "note")) for one in labels]
        extra = (data.to_numpy().tolist(), held, [*vars(data)], [*data.attrs])
        data = None
    return zlib.crc32(pickle.dumps((data, extra)))


def made(function, pair, *, copies=False, runs=COMPARISON_RUNS + 22, batches=2, coupled=True):
    """Rows of several batches, and the mechanism."""
    mechanism = PythonMechanism(Signature.of(function, {}))
    mechanism.copies = copies
    rows = []
    for number in range(batches):
        order = np.random.default_rng(number).integers(0, 2, runs).astype(np.uint8)
        part = PairedRuns(pair=pair, order=order, coupled=coupled, start=number * runs)
        rows.append(mechanism.pair_outcomes(part, stream(number)))
    return np.concatenate(rows, axis=1), mechanism


TABLES = [kind for kind in CHANGES if "frame" in kind or "series" in kind if kind != "frame: a cell"]
#: Of tables one kind at every time, else always and on D′ alone: 300 looks at a table take seconds.
MOMENTS = [
    *((kind, when) for kind in CHANGES for when in (ALWAYS, LATE, NEIGHBOUR) if when != LATE or kind not in TABLES),
    *(pytest.param(kind, LATE, marks=pytest.mark.campaign) for kind in sampled(TABLES, 4)),
]


@pytest.mark.parametrize(("kind", "when"), MOMENTS)
def test_runs_are_those_of_copies(kind, when):
    """Of every container, changed always, once in 300 runs, or on D′ alone."""
    make, change = CHANGES[kind]
    pair = Pair(data=make(1), neighbour=make(0))
    whole = content(copier(pair.neighbour)())
    runs = COMPARISON_RUNS + 22 if when == LATE else 6
    coupled = when != NEIGHBOUR
    drawn, _ = made(lambda data, rng: rng.random(), pair, runs=runs, coupled=coupled)
    least = drawn.min() if when == LATE else 1.0

    def mechanism(data, rng):
        seen = content(data)
        noise = rng.random()
        if noise <= least and (when != NEIGHBOUR or seen == whole):
            change(data)
        return seen, noise

    expected, _ = made(mechanism, pair, copies=True, runs=runs, coupled=coupled)
    rows, _ = made(mechanism, pair, runs=runs, coupled=coupled)
    np.testing.assert_array_equal(rows, expected)
    assert len(np.unique(rows[0, :, 0])) == 1


def test_turned_round_twice_in_a_batch():
    """Between the two the input is another one: a look at the end of the batch alone would not see it."""
    calls, turned = itertools.count(1), Pair(data=[1, 2], neighbour=[1, 2, 3])

    def mechanism(data):
        seen = data[0]
        if len(data) == 2 and next(calls) in (3, 3 + 2 * COMPARISON_RUNS):
            data.reverse()
        return seen

    rows, shared = made(mechanism, turned, runs=4 * COMPARISON_RUNS, batches=1)
    assert shared.copies
    np.testing.assert_array_equal(rows, 1)


@pytest.mark.parametrize("role", [Role.SEARCH, Role.COMPARISON, Role.EPOCH, Role.CONFIRM], ids=lambda role: role.name)
@pytest.mark.parametrize("seeded", [False, True])
def test_a_late_change_in_runs_that_are_evidence(role, seeded):
    """Runs that no seed repeats cannot be made again where they count."""
    own = stream(1)

    def with_seed(data, rng):
        seen = len(data)
        if rng.random() < 0.05:
            data.append(1)
        return seen

    mechanism = PythonMechanism(Signature.of(with_seed if seeded else lambda data: with_seed(data, own), {}))
    pair = Pair(data=[1.0], neighbour=[1.0, 2.0])
    work = OutcomeRows(mechanism=mechanism, pair=pair, seed=0, role=role, runs=400, size=200, width=1)
    if role in (Role.CONFIRM, Role.EPOCH) and not seeded:
        with pytest.raises(DependentRuns, match="changed its input in place"):
            work(0)
    else:
        work(0)
    assert mechanism.copies
    _, rows, _ = work(1)  # from now on each run gets a copy
    np.testing.assert_array_equal(rows[:, :, 0], [[1.0] * 200, [2.0] * 200])


def test_a_run_that_hangs_keeps_its_input():
    """The runs after it get another object: it may stop in the middle of a change that it takes back."""
    inside, go_on = threading.Event(), threading.Event()

    def mechanism(data, rng):
        if not inside.is_set():
            data.append(5)
            inside.set()
            go_on.wait()
            data.pop()
        return len(data)

    pair = Pair(data=[1], neighbour=[1, 2])
    shared = PythonMechanism(Signature.of(mechanism, {}))
    runs = PairedRuns.d_first(pair, 5, coupled=True)
    behind = threading.Thread(target=shared.pair_outcomes, args=(runs, stream(0)))
    behind.start()
    try:
        assert inside.wait(60)
        rows = shared.pair_outcomes(runs, stream(1))
    finally:
        go_on.set()
        behind.join()
    np.testing.assert_array_equal(rows[:, :, 0], [[1.0] * 5, [2.0] * 5])
    assert not shared.copies


def test_what_cannot_be_seen_is_not_shared():
    deep = []
    for _ in range(100):
        deep = [deep]
    for data in (deep, Held([1]), bytearray(b"a"), collections.defaultdict(list), np.array([[1], 2], object)):
        assert shared_input(data) is None
    shared = shared_input([1, 2])
    shared.value.append(shared.value)  # it holds itself
    assert shared.changed
    assert not shared_input(copy.deepcopy([{"a": (1, "b")}])).changed
