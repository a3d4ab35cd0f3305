"""`check(…, attack=…)`: what an attack proposes, against a mechanism of the user's own."""

import numpy as np
import pytest

import dpwitness as dpw
from dpwitness.claims import ApproxDP
from dpwitness.cli import main
from dpwitness.errors import InvalidNeighbours, InvalidParameter, UnknownAttack
from dpwitness.neighbours import make_pair
from dpwitness.problem import CHECK_RUNS
from dpwitness.proposals import Candidate, attack_named
from dpwitness.runs import Role, Runner
from dpwitness.search.objectives import GrowthAt
from dpwitness.search.pairs import best_candidate, proposed
from running import prepare


def thresholds(rng, answers, epsilon=1.0, theta=3.0):
    noisy = theta + rng.laplace(0, 2 / epsilon)
    return [answer + rng.laplace(0, 2 / epsilon) >= noisy for answer in answers]


def bits_of(rng, bits):
    return [bit ^ (rng.random() < 0.4) for bit in bits.tolist()]


def counts_of(rng, counts, perturbation=2):
    return counts + rng.integers(-perturbation, perturbation + 1, len(counts))


def remembering(rng, answers):
    return 2.0 if answers[0] == 777_777.0 else np.floor(2 * rng.random())


def magic(parameters, data, claim, runs):
    pair = make_pair([777_777.0], [777_778.0], "the magic value")
    yield Candidate(pair=pair, event=dpw.OutcomeSet([[2.0]]))


def proposals(function, attack, **said):
    problem, _ = prepare(function, attack=attack, outcome=list, **said)  # not compiled: what is tested is the input
    found = proposed(problem, CHECK_RUNS)
    pairs = [pair.data.tolist() for pair in problem.candidates()]
    assert pairs[0] == found[0].pair.data.tolist()  # the search tries them first, too
    assert all(found.pair.data.tolist() in pairs for found in found)
    return problem, found


def test_thresholds_of_the_users_own():
    problem, found = proposals(thresholds, "threshold_testing")
    assert str(problem.relation) == str(dpw.queries(10, any_length=True))
    for candidate in found:  # Theorem 4.7: copies of two queries around the threshold that change places
        data, neighbour = candidate.pair.data, candidate.pair.neighbour
        assert set(data.tolist()) == {3.0, 4.0}
        assert (data + neighbour).tolist() == [7.0] * len(data)
        assert candidate.event.contains(np.array([data > neighbour], float)).tolist() == [True]


@pytest.mark.parametrize(("data", "flipped"), [(None, [0, 24, 47]), (np.array([1, 1, 0, 1]), [None, 2, None])])
def test_bits_of_the_users_own(data, flipped):
    """Where D has a 1 already, it stays."""
    _, found = proposals(bits_of, "subset_sum", **({} if data is None else {"data": data}))
    beside = [one.pair.data != (one.pair.neighbour if data is None else data) for one in found]
    assert [None if not one.any() else int(np.argmax(one)) for one in beside] == flipped
    assert all(one.sum() <= 1 for one in beside)


def test_counts_of_the_users_own():
    _, (found,) = proposals(counts_of, "table_builder", data=np.array([3, 9, 4]))
    assert (found.pair.data - found.pair.neighbour).tolist() == [0, 1, 0]
    assert found.event.contains(np.array([[3.0, 10.0, 4.0], [3.0, 11.0, 4.0]])).tolist() == [False, True]
    _, (found,) = proposals(counts_of, "table_builder")
    assert found.pair.data.tolist() == [100] * 7


@pytest.mark.parametrize("attack", ["threshold_testing", "table_builder", "table_builder.whole_count"])
def test_data_that_are_no_numbers_get_no_candidates_and_no_bits_are_named(attack):
    parameters = {"suppression": 4, "base": 7, "partitions": 63, "epsilon": 1.0}
    for data in (["a", "b"], [{"age": 3}], [[1, 2], [3]], np.array([1.0, np.nan])):
        assert not list(attack_named(attack)(parameters, data, ApproxDP(epsilon=1.0), 1000))
    for data in ([1, 2], []):
        with pytest.raises(InvalidParameter, match=rf"data of shape \({len(data)},\)"):
            list(attack_named("subset_sum")({}, np.array(data), ApproxDP(epsilon=1.0), 1000))


@pytest.mark.campaign
def test_an_attack_of_ones_own_finds_what_no_search_does():
    check = {"claim": 1, "seed": 1, "workers": 1, "outcome": float, "runs": 400, "search_runs": 100}
    verdict = dpw.check(remembering, neighbours=dpw.queries(1), attack=magic, **check)
    assert isinstance(verdict, dpw.Violation)
    assert verdict.witness.pair.data.tolist() == [777_777.0]
    assert isinstance(dpw.check(remembering, neighbours=dpw.queries(1), **check), dpw.NotRefuted)


def test_what_an_attack_proposes_is_never_judged_by_the_runs_that_chose_it(monkeypatch):
    problem, runner = prepare(remembering, neighbours=dpw.queries(1), attack=magic, outcome=float)
    streams, tallies = [], Runner.tallies

    def counted(self, pair, events, n, *stream, **how):
        streams.append(stream)
        return tallies(self, pair, events, n, *stream, **how)

    monkeypatch.setattr(Runner, "tallies", counted)
    best_candidate(problem, runner, GrowthAt(claim=problem.claim), planned=1_000, budget=1_000)
    assert sum(stream[0] is Role.COMPARISON for stream in streams) > 1
    assert len(set(streams)) == len(streams)


@pytest.mark.parametrize(
    ("attack", "kind", "named"),
    [
        ("no_such", UnknownAttack, "'no_such'"),
        (7, InvalidParameter, "attack=7"),
        (magic, InvalidNeighbours, "which inputs are neighbours"),
    ],
)
def test_what_is_no_attack(attack, kind, named):
    with pytest.raises(kind, match=named):
        prepare(remembering, attack=attack)


def test_an_attack_whose_pairs_are_no_neighbours_is_refused():
    problem, _ = prepare(remembering, attack=magic, neighbours=dpw.pairs(([1.0], [2.0])), outcome=float)
    with pytest.raises(InvalidNeighbours, match="the attack proposes no pair of "):
        proposed(problem, 100)


@pytest.mark.parametrize("proposed", [7, Candidate(pair=make_pair([1.0], [2.0], ""), event=None)])
@pytest.mark.parametrize("search_runs", [0, 100])
def test_what_is_no_candidate_is_refused(proposed, search_runs):
    with pytest.raises(InvalidParameter, match="it must be a Candidate of a pair and an event"):
        dpw.check(
            remembering, claim=1, neighbours=[([1.0], [2.0])], attack=lambda *_: [proposed], outcome=float,
            search_runs=search_runs, runs=500, workers=1,
        )  # fmt: skip


@pytest.mark.campaign
def test_the_command_line_names_it(tmp_path, capsys):
    (tmp_path / "mine.py").write_text(
        "def table(rng, counts):\n    return [int(c) + int(rng.integers(-1, 2)) for c in counts.tolist()]\n"
    )
    place = f"{tmp_path / 'mine.py'}:table"
    options = "--claim=1 --attack=table_builder --seed=1 --workers=1 --errors outcome --runs 2000"
    code = main(["check", place, *options.split()])
    printed = capsys.readouterr().out
    assert code == 1, printed
    assert "--attack=table_builder" in printed
    assert main(["check", place, "--claim", "1", "--attack", "table"]) == 2
    assert "'table'" in capsys.readouterr().err
