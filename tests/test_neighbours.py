import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpwitness.errors import InvalidData, InvalidNeighbours
from dpwitness.files import read_column, write_atomically
from dpwitness.neighbours import as_input, bits, histogram, pairs, queries

everything = st.builds(
    queries,
    st.integers(1, 12),
    st.sampled_from([1.0, 0.5, 3.0]),
    st.sampled_from(["all", "one"]),
    st.sampled_from(["any", "up"]),
)


@given(everything, st.sampled_from([0.0, 0.5, 100.0]), st.sampled_from([0.1, 1.0, 20.0]))
def test_all_pairs_of_queries_are_neighbours(relation, centre, scale):
    found = list(relation.candidates(centre=centre, scale=scale))
    found += [v for pair in found for v in relation.variations(pair, scale=scale)]
    assert found
    for pair in found:
        move = pair.neighbour - pair.data
        assert pair.data.shape == pair.neighbour.shape == (relation.length,)
        assert np.max(np.abs(move)) <= relation.sensitivity + 1e-9
        assert np.any(move != 0)
        assert not pair.data.flags.writeable
        if relation.may_move == "one":
            assert np.count_nonzero(move) == 1
        if relation.direction == "up":
            assert np.all(move >= 0) or np.all(move <= 0)


def test_the_pair_that_earlier_tools_miss_is_among_the_first():
    first = [(p.neighbour - p.data).tolist() for p in list(queries(10).candidates())[:3]]
    assert [1.0] * 9 + [-1.0] in first


@given(st.lists(st.integers(0, 50), min_size=1, max_size=20))
def test_histograms_differ_by_one_person(counts):
    for pair in histogram().candidates(np.array(counts)):
        assert np.sum(np.abs(pair.neighbour - pair.data)) == 1
        assert np.all(pair.neighbour >= 0)
        assert pair.data.tolist() == counts


@given(st.lists(st.integers(0, 1), min_size=1, max_size=20))
def test_bits_differ_in_one(given_bits):
    for pair in bits().candidates(np.array(given_bits)):
        assert np.sum(pair.neighbour != pair.data) == 1


def test_given_data_stands_in_every_pair():
    data = np.array([3.0, 1.0, 4.0])
    assert all(pair.data.tolist() == [3, 1, 4] for pair in queries().candidates(data))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: queries(0), "length=0 must be a whole number"),
        (lambda: queries(3, 0.0), "sensitivity=0.0 must be positive"),
        (lambda: queries(3, float("nan")), "sensitivity=nan must be positive"),
        (lambda: queries(3, may_move="some"), "may_move='some'"),
        (lambda: queries(3, direction="down"), "direction='down'"),
        (lambda: histogram(-1), "length=-1"),
        (lambda: bits(1.5), "length=1.5"),
        (lambda: pairs(), "no pair"),
        (lambda: pairs(([1, 1], [2])), r"the lengths differ \(2 and 1\)"),
        (lambda: pairs(([1, 1], [1, 1])), "both inputs are the same"),
        (lambda: pairs(([1], [2], [3])), "a pair is two inputs, not 3"),
        (lambda: pairs(([1, "a"], [2, 3])), "must hold numbers only"),
        (lambda: pairs(([1, [2]], [2, 3])), "a list of numbers of one depth"),
        (lambda: as_input([1.0, float("nan")]), "finite numbers only"),
        (lambda: list(histogram().candidates(np.array([1.5]))), "whole counts of at least 0, not 1.5"),
        (lambda: list(histogram().candidates(np.array([-1]))), "whole counts of at least 0, not -1"),
        (lambda: list(bits().candidates(np.array([2]))), "zeros and ones"),
        (lambda: list(queries().candidates(np.zeros((2, 2)))), "list of at least one answer"),
        (lambda: list(pairs(([1], [2])).candidates(np.array([1]))), "either pairs or data"),
    ],
)
def test_bad_relations(make, message):
    with pytest.raises(InvalidNeighbours, match=message):
        make()


@pytest.mark.parametrize(
    ("content", "column", "expected"),
    [
        ("1\n2\n3\n", None, [1, 2, 3]),
        ("count\n1\n2.5\n", None, [1.0, 2.5]),
        ("age,count\n10,4\n11,0\n", None, [4, 0]),
        ("age,count\n10,4\n11,0\n", "age", [10, 11]),
        ("a;b\n1\n", None, [1]),
        ("\ufeffvalue\n1\n\n2\n", None, [1, 2]),
        ("a,b\n1,2\n", None, [2]),
    ],
)
def test_columns(tmp_path, content, column, expected):
    path = tmp_path / "d.csv"
    path.write_text(content, encoding="utf-8")
    found = read_column(path, column)
    assert found.tolist() == expected
    assert found.dtype.kind == ("i" if all(isinstance(x, int) for x in expected) else "f")


@pytest.mark.parametrize(
    ("content", "column", "message"),
    [
        ("", None, "is empty"),
        ("count\n", None, "no number below the header"),
        ("count\n1\nmany\n", None, "line 3: 'many' is not a finite number"),
        ("count\n1\nnan\n", None, "line 3: 'nan' is not a finite number"),
        ("a,count\n1,\n", None, "line 2: there is no value"),
        ("a,count\n1\n", "count", "line 2: there is no value"),
        ("a,b\n1,2\n", "c", "no column 'c'; its columns: a, b"),
        ("1\n2\n", "c", "the file has no header line"),
    ],
)
def test_bad_columns(tmp_path, content, column, message):
    path = tmp_path / "d.csv"
    path.write_text(content)
    with pytest.raises(InvalidData, match=message):
        read_column(path, column)


def test_writing_leaves_the_old_file_when_it_fails(tmp_path):
    path = tmp_path / "out.txt"
    write_atomically(path, "old")
    with pytest.raises(TypeError):
        write_atomically(path, object())
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(InvalidData, match="cannot write"):
        write_atomically(tmp_path / "nowhere" / "out.txt", "x")
