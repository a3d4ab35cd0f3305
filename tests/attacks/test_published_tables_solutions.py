"""Tables that agree with a publication: all of them, beside those that a plain enumeration finds."""

import itertools
import json
import math
import statistics
import tempfile
import time
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpwitness.errors import InvalidData
from dpwitness.machine import Deadline
from dpwitness.reconstruction.published_tables import program
from dpwitness.reconstruction.published_tables.program import Agreeing, Solver, find_certain_rows, find_tables
from dpwitness.reconstruction.published_tables.statements import read_publication

AGES, SEXES = (0, 1, 4), ("F", "M")
ROWS = list(itertools.product(AGES, SEXES))
HEAD = [{"attribute": "age", "values": [*AGES]}, {"attribute": "sex", "values": [*SEXES]}]


def publication(*lines):
    """What `read_publication` makes of these lines."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "published.jsonl"
        path.write_text("\n".join(map(json.dumps, lines)))
        return read_publication([path])


def solved(published, most=10_000, seconds=600.0):
    """All tables that agree, as multisets of rows, and how many have each row in all of them."""
    made = program.program_of(published)
    solver, found, deadline = Solver(made), Agreeing(), Deadline(time.monotonic() + seconds)
    for _ in find_tables(solver, found, most, deadline):
        pass
    find_certain_rows(solver, found, deadline)
    values = list(published.attributes.values())
    rows = [tuple(known[place] for known, place in zip(values, cell, strict=True)) for cell in made.cells.tolist()]

    def named(counts):
        return frozenset((row, int(count)) for row, count in zip(rows, counts, strict=True) if count)

    return [named(table) for table in found.tables], found, named(found.certain)


def inside(row, where):
    for attribute, part in where.items():
        value = row[("age", "sex").index(attribute)]
        if isinstance(part, dict):
            if value < part.get("at_least", -math.inf) or value >= part.get("below", math.inf):
                return False
        elif value not in part:
            return False
    return True


def holds(line, people):
    """Whether a line is true of a list of people, by the definitions."""
    if "people" in line:
        return len(people) == line["people"]
    if "counts" in line:
        found = Counter(sex for _, sex in people)
        return all(told is None or found[sex] == told for sex, told in zip(SEXES, line["counts"], strict=True))
    here = [age for age, sex in people if inside((age, sex), line.get("where", {}))]
    if "count" in line and line["count"] is None and not len(here) < line["below"]:
        return False
    if line.get("count") is not None and len(here) != line["count"]:
        return False
    half = Fraction(1, 2 * 10 ** line.get("decimals", 0))
    for name, of in (("mean", statistics.mean), ("median", statistics.median)):
        if name in line and (not here or abs(Fraction(of(map(Fraction, here))) - Fraction(str(line[name]))) > half):
            return False
    return True


def enumerated(lines, most):
    """All lists of at most so many people of whom all lines are true, as multisets."""
    return {
        frozenset(Counter(people).items())
        for size in range(most + 1)
        for people in itertools.combinations_with_replacement(ROWS, size)
        if all(holds(line, people) for line in lines)
    }


wheres = st.sampled_from(
    [{}, {"sex": ["F"]}, {"sex": ["M"]}, {"age": {"at_least": 1}}, {"age": [0, 4]}, {"sex": ["F"], "age": {"below": 4}}]
)


@st.composite
def published_lines(draw):
    """True lines about one to four people: counts, some suppressed, means and medians, rounded."""
    people = draw(st.lists(st.sampled_from(ROWS), min_size=1, max_size=4))
    lines = [{"people": len(people)}] if draw(st.booleans()) else []
    for where in draw(st.lists(wheres, min_size=1, max_size=4)):
        here = [age for age, sex in people if inside((age, sex), where)]
        line = {"where": where}
        kind = draw(st.sampled_from(["count", "suppressed", "mean", "median", "all"]))
        if kind in ("count", "all"):
            line["count"] = len(here)
        if kind == "suppressed":
            line |= {"count": None, "below": len(here) + draw(st.integers(1, 2))}
        if here and kind in ("mean", "median", "all"):
            decimals = draw(st.integers(0, 2))
            line |= {"of": "age", "decimals": decimals}
            for name, of in (("mean", statistics.mean), ("median", statistics.median)):
                if kind in (name, "all"):
                    line[name] = round(float(of(here)), decimals)
        if len(line) > 1:
            lines.append(line)
    if draw(st.booleans()):
        counts = Counter(sex for _, sex in people)
        hidden = draw(st.sampled_from([None, "F"]))
        lines.append({"by": ["sex"], "counts": [None if sex == hidden else counts[sex] for sex in SEXES]})
    if not any("people" in line for line in lines):
        lines.append({"where": {}, "count": None, "below": 5})  # how many there are must be limited
    return lines


def compare(lines):
    expected = enumerated(lines, 4)
    assert expected  # those whom the lines are of
    tables, found, certain = solved(publication(*HEAD, *lines))
    assert found.complete
    assert found.decided
    assert len(set(tables)) == len(tables)
    assert set(tables) == expected
    least = Counter(dict(min(expected, key=len)))
    for table in expected:
        least &= Counter(dict(table))
    assert certain == frozenset(least.items())


@settings(max_examples=6, deadline=None, derandomize=True)
@given(published_lines())
def test_as_many_tables_agree_as_an_enumeration_finds(lines):
    compare(lines)


@pytest.mark.campaign
@settings(max_examples=120, deadline=None, derandomize=True)
@given(published_lines())
def test_as_many_tables_agree_as_an_enumeration_finds_in_many_publications(lines):
    compare(lines)


def statement(count, median, mean, **where):
    told = {"of": "age", "median": median, "mean": mean, "decimals": 1}
    return {"where": {name: [value] for name, value in where.items()}, "count": count, **told}


#: A block of seven people: Garfinkel, Abowd & Martindale (2018), Table 1; what it suppresses are counts below three.
SEVEN = [
    {"attribute": "age", "range": [0, 125]},
    {"attribute": "sex", "values": ["F", "M"]},
    {"attribute": "race", "values": ["B", "W"]},
    {"attribute": "married", "values": ["yes", "no"]},
    statement(7, 30, 38),
    statement(4, 30, 33.5, sex="F"),
    statement(3, 30, 44, sex="M"),
    statement(4, 51, 48.5, race="B"),
    statement(3, 24, 24, race="W"),
    statement(4, 51, 54, married="yes"),
    statement(3, 36, 36.7, race="B", sex="F"),
    *(
        {"where": where, "count": None, "below": 3}
        for where in (
            {"race": ["B"], "sex": ["M"]}, {"race": ["W"], "sex": ["M"]}, {"race": ["W"], "sex": ["F"]},
            {"age": {"below": 5}}, {"age": {"below": 18}}, {"age": {"at_least": 64}},
        )
    ),
]  # fmt: skip
#: Its Table 4: the only people who agree.
WHO = [
    (8, "F", "B", "no"), (18, "M", "W", "no"), (24, "F", "W", "no"), (30, "M", "W", "yes"), (36, "F", "B", "yes"),
    (66, "F", "B", "yes"), (84, "M", "B", "yes"),
]  # fmt: skip


@pytest.mark.campaign
def test_the_seven_people_of_the_paper_are_the_only_ones():
    tables, found, certain = solved(publication(*SEVEN))
    assert tables == [frozenset((row, 1) for row in WHO)]
    assert found.complete
    assert certain == tables[0]


def test_three_people_are_the_only_ones_whom_a_mean_and_a_median_leave():
    ages = {"attribute": "age", "range": [0, 60]}
    lines = [{"of": "age", "count": 3, "mean": 59, "median": 60}, {"where": {"age": {"below": 58}}, "count": 1}]
    tables, found, _ = solved(publication(ages, *lines))
    # Means from 58.5 to 59.5 are sums 176, 177 and 178; two are 60, and the third is below 58.
    assert {frozenset(Counter({(60,): 2, (third,): 1}).items()) for third in (56, 57)} == set(tables)
    assert found.complete


def test_as_many_as_are_asked_for_are_no_end():
    _, found, _ = solved(publication(*HEAD, {"people": 2}), most=5)
    assert (len(found.tables), found.complete, found.decided) == (5, False, True)
    tables, found, _ = solved(publication(*HEAD, {"people": 2}), most=22)
    assert (len(tables), found.complete) == (math.comb(7, 2), True)


def test_without_time_nothing_is_said():
    _, found, certain = solved(publication(*HEAD, {"people": 2}), seconds=0.0)
    assert (found.tables, found.complete, found.decided, certain) == ([], False, False, frozenset())


def test_rows_are_certain_before_all_tables_are_known():
    lines = [{"people": 9}, {"where": {"age": [0], "sex": ["M"]}, "count": 5}, {"where": {"age": [0]}, "count": 6}]
    _, found, certain = solved(publication(*HEAD, *lines), most=3)
    assert (len(found.tables), found.complete, found.decided) == (3, False, True)
    assert certain == {((0, "M"), 5), ((0, "F"), 1)}


def test_possible_rows_that_no_solver_takes_are_refused_before_they_are_made():
    attributes = [{"attribute": name, "range": [0, 999]} for name in "abcdef"]
    with pytest.raises(program.TooLarge, match="more than 200,000 possible rows"):
        program.program_of(publication(*attributes, {"people": 5}))


def test_published_zeros_leave_few_of_many_possible_rows():
    """Of 10^12 combinations of twelve attributes, all but the two of which both counts are 1 are excluded."""
    names = "abcdefghijkl"
    attributes = [{"attribute": name, "values": [*range(10)]} for name in names]
    lines = [{"by": [name], "counts": [1, 1] + [0] * 8} for name in names]
    lines += [
        {"by": [a, b], "counts": [[int(i == j < 2) for j in range(10)] for i in range(10)]}
        for a, b in itertools.pairwise(names)
    ]
    tables, found, _ = solved(publication(*attributes, *lines))
    assert (found.complete, tables) == (True, [frozenset({((0,) * 12, 1), ((1,) * 12, 1)})])


def test_sums_that_would_not_be_exact_are_refused():
    lines = [
        {"attribute": "x", "values": [0.0001234567, 1, 999999999]},
        {"people": 16_000_000},
        {"of": "x", "mean": 0.123456},
    ]
    with pytest.raises(InvalidData, match=r"line 3: values of 'x' .* are too large to be exact"):
        program.program_of(publication(*lines))


def test_a_call_that_fails_fails_where_it_was_made():
    with pytest.raises(ZeroDivisionError):
        program.interruptible(lambda: 1 // 0)
