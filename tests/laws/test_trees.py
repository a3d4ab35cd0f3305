"""Scores of trees: what they are, that they are scikit-learn's to the last bit, and that no file makes more of them."""

import json
import math
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from dpwitness.errors import InvalidParameter, InvalidWitness
from dpwitness.events import LARGEST, Noun, Tree, TreeScore, event_from_json, thresholds_of
from dpwitness.events.encoding import FALSE, NEGATIVE_ZERO, NESTED, NONE, NOT_A_NUMBER, TRUE, text_code
from dpwitness.events.features import numbers
from dpwitness.events.trees import MOST_TREES
from dpwitness.search.learners import trees

ENTRIES = [0.0, 1.0, -2.5, math.nan, math.inf, -math.inf, LARGEST, TRUE, FALSE, NEGATIVE_ZERO, NOT_A_NUMBER, NONE]
ENTRIES += [NESTED, text_code("a")]


def random_score(rng, depth):
    """A score of three trees over entries 0 and 2 and the difference of entries 3 and 1."""
    splits = 2**depth - 1

    def tree():
        cuts = rng.choice([*rng.normal(size=4), math.inf, -math.inf, 0.0], splits)
        return Tree(
            inputs=tuple(rng.integers(0, 3, splits).tolist()), cuts=tuple(cuts.tolist()),
            absent_left=tuple((rng.random(splits) < 0.5).tolist()), leaves=tuple(rng.normal(size=splits + 1).tolist()),
        )  # fmt: skip

    return TreeScore(
        inputs=((0,), (2,), (3, 1)), trees=(tree(), tree(), tree()), start=0.25, threshold=float(rng.normal())
    )


def random_rows(rng, n, width=4):
    return np.where(rng.random((n, width)) < 0.5, rng.normal(size=(n, width)), rng.choice(ENTRIES, (n, width)))


def walked(event, row):
    """The score of a row, slowly: down each tree by its splits."""
    plain = numbers(np.append(row, np.full(8, math.nan)))
    score = event.start
    for tree in event.trees:
        place = 0
        while place < len(tree.cuts):
            one = event.inputs[tree.inputs[place]]
            value = plain[one[0]] - (plain[one[1]] if len(one) == 2 else 0.0)
            left = tree.absent_left[place] if math.isnan(value) else value <= tree.cuts[place]
            place = 2 * place + (1 if left else 2)
        score += tree.leaves[place - len(tree.cuts)]
    return score


@pytest.mark.filterwarnings("ignore:invalid value encountered")  # ∞ − ∞ in `walked`
@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_a_score_is_that_of_a_walk_down_each_tree(depth):
    rng = np.random.default_rng(depth)
    for width in (1, 4, 6):
        event, rows = random_score(rng, depth), random_rows(rng, 300, width)
        expected = [walked(event, row) for row in rows]
        assert event.score(rows).tolist() == expected
        assert event.contains(rows).tolist() == [score > event.threshold for score in expected]


def test_a_score_is_read_back_and_needs_no_scikit_learn(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)  # an import raises
    rng = np.random.default_rng(5)
    event, rows = random_score(rng, 3), random_rows(rng, 300)
    again = event_from_json(json.loads(json.dumps(event.to_json(), allow_nan=False)))
    assert again == event
    assert hash(again) == hash(event)
    assert again.score(rows).tolist() == event.score(rows).tolist()


def test_nested_and_opposite_events():
    rng = np.random.default_rng(6)
    event, rows = random_score(rng, 3), random_rows(rng, 300)
    scores = event.score(rows)
    assert event.opposite().score(rows).tolist() == (-scores).tolist()
    upper, lower = thresholds_of(event)
    cut = float(np.median(scores))
    assert upper.above(cut).contains(rows).tolist() == (upper.value(rows) >= cut).tolist() == (scores >= cut).tolist()
    assert lower.above(-cut).contains(rows).tolist() == (scores <= cut).tolist()
    assert [len(simpler.trees) for simpler in event.simpler()] == [1]
    assert not replace(event, trees=event.trees[:1]).simpler()
    assert [rounded.threshold for rounded in replace(event, threshold=0.12345).rounded()] == [0.1, 0.12, 0.123]


def test_a_score_is_said_with_the_inputs_that_matter_most():
    small, large = (
        Tree(inputs=(k,), cuts=(0.0,), absent_left=(True,), leaves=(0.0, leaf)) for k, leaf in ((0, 1.0), (2, 2.0))
    )
    event = TreeScore(inputs=((0,), (1,), (4,)), trees=(small, large, small), start=0.0, threshold=0.41)
    assert event.importance().tolist() == [2.0, 0.0, 2.0]
    assert event.describe("answer") == "score of 3 trees over answers 1, 5 above 0.41"
    assert (
        replace(event, trees=(small,) * 2 + (large,) * 2).describe() == "score of 4 trees over values 5, 1 above 0.41"
    )
    assert event.complexity == (3, 3)
    noun = Noun("value", {0: "key 'a'", 4: "key 'b'"})
    assert event.describe(noun) == "score of 3 trees over key 'a', key 'b' above 0.41"
    event = replace(event, inputs=((1, 0), (1,), (4,)))
    assert event.describe("answer") == "score of 3 trees over second answer − first answer, fifth answer above 0.41"


TREE = Tree(inputs=(0, 0, 0), cuts=(0.0, -1.0, math.inf), absent_left=(True, False, True), leaves=(0.0, 1.0, 2.0, 3.0))
EVENT = TreeScore(inputs=((0,), (2, 1)), trees=(TREE, TREE), start=0.0, threshold=1.5)
HOSTILE = {
    "inputs": [
        None, [], [[]], [[0, 1, 2]], [[-1]], [[16384]], [[0.0]], [[True]], ["0"], [{"0": 0}], [[[0]]], {}, "00",
        [[0]] * 65, [[2**70]],
    ],
    "trees": [
        None, [], {}, "x", [None], [[]], [{}], [TREE.to_json()] * (MOST_TREES + 1),
        [TREE.to_json(), {"inputs": [0], "cuts": [0.0], "absent_left": [True], "leaves": [0.0, 1.0]}],
    ],
    "start": [None, "inf", "nan", True, [], {}, 10**400],
    "threshold": [None, "-inf", False, [0], 10**400],
}  # fmt: skip
HOSTILE_TREES = {
    "inputs": [None, [0], [0, 0, 2], [0, 0, -1], [0, 0, 0, 0], [0, 0, True], [0, 0, 1.0], [[0], [0], [0]], 2**70],
    "cuts": [None, [0.0], ["nan", 0, 0], [None, 0, 0], [True, 0, 0], [0, 0, 10**400], "000", [[0]] * 3],
    "absent_left": [None, [True], [1, 0, 1], ["true"] * 3, [None] * 3, {"0": True}],
    "leaves": [None, [], [0.0], [0.0] * 3, [0.0] * 32, [0, 1, 2, "inf"], [0, 1, 2, None], [0, 1, 2, True], "0123"],
}  # fmt: skip


@pytest.mark.parametrize("key", [*HOSTILE, *(f"tree {name}" for name in HOSTILE_TREES)])
def test_hostile_trees_are_refused(key):
    """Nothing in a file leads out of the arrays that the kernel reads, which checks nothing."""
    written, name = EVENT.to_json(), key.removeprefix("tree ")
    of_tree = key != name
    for value in HOSTILE_TREES[name] if of_tree else HOSTILE[name]:
        tree = {**TREE.to_json(), name: value}
        damaged = {**written, "trees": [TREE.to_json(), tree]} if of_tree else {**written, name: value}
        with pytest.raises(InvalidWitness, match="event of kind 'trees' is damaged") as caught:
            event_from_json(damaged)
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 400
    part = {k: v for k, v in (TREE.to_json() if of_tree else written).items() if k != name}
    with pytest.raises(InvalidWitness, match=f"'{name}' is missing"):
        event_from_json({**written, "trees": [part]} if of_tree else part)


def test_wrong_arguments_are_named():
    for change, message in (
        ({"inputs": ((0,),), "trees": (replace(TREE, inputs=(0, 1, 0)),)}, "there are 1"),
        ({"trees": (TREE, {})}, "must be 1 to 64 Trees"),
        ({"start": math.inf}, "start=inf must be finite"),
        ({"threshold": math.nan}, "threshold=nan must be finite"),
        ({"trees": (TREE, Tree(inputs=(0,), cuts=(0,), absent_left=(True,), leaves=(0, 1)))}, "as many leaves"),
    ):
        with pytest.raises(InvalidParameter, match=message):
            replace(EVENT, **change)


def fitted(rows, sides, **settings):
    ensemble = pytest.importorskip("sklearn.ensemble")
    model = ensemble.HistGradientBoostingClassifier(
        max_iter=12, max_depth=trees.DEPTH, max_leaf_nodes=2**trees.DEPTH, early_stopping=False, random_state=0,
        **settings,
    )  # fmt: skip
    with trees._controller().limit(limits=1, user_api="openmp"):  # on a busy machine threads wait for each other
        return model.fit(rows, sides)


@pytest.mark.campaign
def test_the_score_is_scikit_learns_decision_function_to_the_last_bit():
    rng = np.random.default_rng(7)
    rows = rng.normal(size=(6_000, 4))
    rows[rng.random(rows.shape) < 0.1] = np.nan
    rows[:, 3] = np.where(rng.random(6_000) < 0.5, rows[:, 0] * rows[:, 1], np.nan)  # splits by presence alone
    sides = (rows[:, 0] * rows[:, 1] > rng.normal(size=6_000)) ^ np.isnan(rows[:, 3])
    model = fitted(rows, sides)
    event = trees.trees_of(model, [(j,) for j in range(4)])
    fresh = random_rows(rng, 20_000)
    plain = numbers(fresh)
    assert np.isnan(plain).any()
    assert np.isinf(plain).any()
    assert len({split for tree in event.trees for split in zip(tree.cuts, tree.absent_left, strict=True)}) > 20
    assert any(math.isinf(cut) for tree in event.trees for cut in tree.cuts)
    assert event.score(fresh).tolist() == model.decision_function(plain).tolist()


def test_early_leaves_are_completed():
    rng = np.random.default_rng(8)
    rows = rng.normal(size=(2_000, 2))
    model = fitted(rows, rows[:, 0] > 0, min_samples_leaf=700)  # room for one split
    event = trees.trees_of(model, [(0,), (1,)])
    assert len(event.trees[0].leaves) == 2**trees.DEPTH
    assert event.score(rows).tolist() == model.decision_function(rows).tolist()


def test_steps_are_the_bins_of_one_input():
    """Bins hold their upper edge; what is absent has a weight of its own."""
    tree = trees._steps(0, np.array([1.0, 2.0]), np.array([10.0, 20.0, 30.0, -5.0]))
    event = TreeScore(inputs=((0,),), trees=(tree,), start=0.0, threshold=0.0)
    values = np.array([-math.inf, 1.0, 1.5, 2.0, 2.5, math.inf, math.nan, NONE])
    assert event.score(values[:, None]).tolist() == [10, 10, 20, 20, 30, 30, -5, -5]
    edges, weights = np.arange(1.0, 8.0), np.arange(9.0)
    event = replace(event, trees=(trees._steps(0, edges, weights),))
    assert event.score(np.append(np.arange(0.5, 8.0), math.nan)[:, None]).tolist() == weights.tolist()


def test_entries_that_are_never_numbers_do_not_stop_the_trees():
    """A code that says what a dict is stands in every row; an entry of one run may be among those that teach nothing.

    The two others tell the sides apart together.
    """
    pytest.importorskip("sklearn")
    from dpwitness.claims import ApproxDP
    from dpwitness.search.learners import learn_events
    from dpwitness.search.objectives import GrowthAt

    rng = np.random.default_rng(9)
    x, y = np.full((2, 10_000, 4), text_code("a dict"))
    x[:, 1:3], y[:, 1:3] = rng.normal(size=(2, 10_000, 2))
    x[:, 2] = np.where(rng.random(10_000) < 0.6, np.abs(x[:, 2]) * np.sign(x[:, 1]), x[:, 2])
    x[:, 3] = y[:, 3] = math.nan
    x[trees.KEPT - 1, 3] = 1.0
    found = [found.event for found in learn_events(x, y, GrowthAt(claim=ApproxDP(0.2)))]
    assert any(isinstance(event, TreeScore) for event in found)


@pytest.mark.campaign
def test_several_threads_learn_the_same():
    pytest.importorskip("sklearn")
    from dpwitness.claims import ApproxDP
    from dpwitness.search.learners import learn_events
    from dpwitness.search.objectives import GrowthAt

    rng = np.random.default_rng(9)
    x, y = rng.normal(size=(2, 10_000, 2))
    x[:, 1] = np.where(rng.random(10_000) < 0.6, np.abs(x[:, 1]) * np.sign(x[:, 0]), x[:, 1])

    def learned(_):
        return [found.event.to_json() for found in learn_events(x, y, GrowthAt(claim=ApproxDP(0.2)))]

    alone = learned(0)
    assert any(event["kind"] == "trees" for event in alone)
    with ThreadPoolExecutor(3) as pool:
        assert all(found == alone for found in pool.map(learned, range(3)))
