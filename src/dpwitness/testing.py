"""Tests for authors of extensions: each function tests the laws of a claim, event, relation, learner or attack.

A check trusts the classes of extensions: a half-plane that cuts its claim's region, or an event that depends on the
place of a row, may accuse a correct mechanism. So call these functions in the tests of your package. They raise
`AssertionError` for the first broken law, with the value that breaks it, `InvalidParameter` if a method raises, and the
error that a check would raise for an object that lacks members.
"""

import json
import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial, wraps
from itertools import islice, product
from operator import index
from types import MappingProxyType
from typing import Any, Final, TypeVar, cast

import numpy as np

from dpwitness.arrays import Booleans, Floats, Rows
from dpwitness.checks import brief, class_and_text
from dpwitness.claims import Claim, HalfPlane, PureDP, claim_from_json, require_claim
from dpwitness.codec import write_object
from dpwitness.errors import InvalidParameter
from dpwitness.events import Counted, Event, event_from_json, is_partition, widen
from dpwitness.events.encoding import FALSE, NONE, NOT_A_NUMBER, TRUE, text_code
from dpwitness.events.event import MOST_EVENT_COLUMNS
from dpwitness.neighbours import Pair, Relation, alternatives, as_relation, relation_from_json
from dpwitness.proposals import Attack, AttackFamily, Candidate
from dpwitness.search.learners import Learner, Proposal
from dpwitness.search.objectives import GrowthAt
from dpwitness.search.samples import sample_of

__all__ = ["check_attack", "check_claim", "check_event", "check_learner", "check_relation"]

F = TypeVar("F", bound=Callable[..., None])

#: The probabilities at which a claim is compared with its half-planes: 0, 1, and 57 probabilities from 10⁻⁶ to
#: 1 − 10⁻⁶, evenly spaced in log-odds.
RATES: Final = np.concatenate([[0.0], 1 / (1 + np.exp(np.linspace(14.0, -14.0, 57))), [1.0]])
#: The share of a probability that a half-plane may cut off by rounding.
ALLOWED_ROUNDING: Final = 1e-9
#: The allowed relative error of `reached` and `smallest`, which choose bets and prove nothing.
RELATIVE_ERROR: Final = 1e-4
#: The largest number of objects that a method may give, and of shrinking steps in a row.
MOST_OBJECTS: Final = 1000
#: The number of tested pairs of a relation's method: a relation may give any number.
TESTED_PAIRS: Final = 20


def _naming_class(what: str) -> Callable[[F], F]:
    """A decorator that adds the class of the tested object to errors; `what`: the kind of the object."""

    def naming_it(check: F) -> F:
        @wraps(check)
        def checked(value: object, *given: Any, **settings: Any) -> None:
            try:
                check(value, *given, **settings)
            except (AssertionError, InvalidParameter) as error:
                raise type(error)(f"the {what} {getattr(value, '__name__', type(value).__name__)}: {error}") from error

        return cast("F", checked)

    return naming_it


@_naming_class("claim")
def check_claim(claim: Claim) -> None:
    """Test a claim: half-planes contain its region, the region grows with the parameter, and its JSON is read back.

    The region lies below `largest`, contains the diagonal and is convex.
    """
    require_claim(claim)
    parameter = float(_numbers("parameter", lambda: claim.parameter))
    assert 0 <= parameter < math.inf, f"parameter={parameter!r} must be finite and not negative"
    allowed = _boundary(claim)
    rises = np.all(np.diff(allowed) >= -ALLOWED_ROUNDING * allowed[1:]) and allowed[-1] <= 1 + ALLOWED_ROUNDING
    rises = rises and np.all(allowed >= RATES * (1 - ALLOWED_ROUNDING))
    assert rises, "largest(q) must not fall in q, and be at least q, as equal inputs are private"
    # Estimates within the region, and outside by three shares of the way from its boundary to p = 1.
    outside = [allowed + share * (1 - allowed) for share in (0.01, 0.3, 1.0)]
    p = np.minimum([0 * allowed, 0.7 * allowed, *outside], 1.0)
    q = np.broadcast_to(RATES, p.shape)
    _planes("half_plane()", claim.half_plane, allowed)
    for one, other in zip(p.ravel().tolist(), q.ravel().tolist(), strict=True):
        _planes(f"half_plane({one:.3g}, {other:.3g})", partial(claim.half_plane, one, other), allowed)
    plane = _planes("half_plane(p, q) of arrays", lambda: claim.half_plane(p, q), allowed, p.shape)
    missed = (p[3] > allowed + ALLOWED_ROUNDING) & (p[3] <= plane.slope[3] * RATES + plane.intercept[3])
    assert not missed.any(), f"half_plane(p, q) must exclude estimates beyond largest(q), here at q={RATES[missed]}"
    _check_family(claim, parameter, allowed, p[p > 0], q[p > 0])
    names = ("kind", "symbol", "short", "variant", "condition")
    texts = {name: partial(getattr, claim, name) for name in names}
    _texts({**texts, "str()": lambda: str(claim), "tail(1e-6)": lambda: claim.tail(1e-6)})
    _numbers("largest_order(1e-6)", lambda: claim.largest_order(1e-6) or 0.0)
    again = _read_back(claim, claim_from_json)
    same = again == claim and hash(again) == hash(claim)
    assert same, f"its JSON is read back as {again}, which must be equal and have the same hash"


def _check_family(claim: Claim, parameter: float, allowed: Floats, p: Floats, q: Floats) -> None:
    """Compare the members of a claim's family at 0, at the claim's parameter, and at parameters reached by (p, q)."""
    reached = _numbers("reached(p, q) of arrays", lambda: claim.reached(p, q), p.shape)
    assert np.all(reached >= 0), f"reached(p, q)={reached.min():g} must not be negative"
    beyond = np.flatnonzero((reached > parameter) & (reached < math.inf) & (q > 0))
    beyond = beyond[:: max(len(beyond) // 3, 1)]
    parameters = np.unique([0.0, parameter / 2, parameter, *reached[beyond]])
    members: dict[float, Claim] = {x: _ask(f"at({x:.3g})", partial(claim.at, x)) for x in parameters.tolist()}
    for x, member in members.items():
        found = _numbers(f"the parameter of at({x:.3g})", partial(getattr, member, "parameter"))
        same = math.isclose(found, x, rel_tol=ALLOWED_ROUNDING, abs_tol=ALLOWED_ROUNDING)
        assert same, f"the parameter of at({x:.3g}) is {found:.3g}: it must be the one given"
    regions = np.array([_boundary(member) for member in members.values()])
    same = np.allclose(regions[parameters == parameter], allowed, RELATIVE_ERROR, ALLOWED_ROUNDING)
    assert same, f"at({parameter:g}) must allow the region of the claim itself, as that is its parameter"
    assert np.all(np.diff(regions, axis=0) >= -ALLOWED_ROUNDING * regions[1:]), "at(x) must allow more for a larger x"
    for one, other in [(None, None), *zip(p[::37].tolist(), q[::37].tolist(), strict=True)]:
        what = "half_planes(x)" if one is None else f"half_planes(x, {one:.3g}, {other:.3g})"
        _planes(what, partial(claim.half_planes, parameters, one, other), regions, parameters.shape)
    for k in beyond.tolist():
        what, x = f"reached({p[k]:.3g}, {q[k]:.3g})", float(reached[k])
        allows = members[x].largest(float(q[k])) >= p[k] * (1 - RELATIVE_ERROR)
        assert allows, f"{what} is {x:.3g}, but at({x:.3g}) allows less"
    for x, member in members.items():
        for one in RATES[1:-1:4].tolist():
            what = f"smallest({one:.3g}, {x:.3g})"
            least = float(_numbers(what, partial(claim.smallest, one, x)))
            below, above = (
                least * (1 - RELATIVE_ERROR) - ALLOWED_ROUNDING,
                min(least * (1 + RELATIVE_ERROR) + ALLOWED_ROUNDING, 1.0),
            )
            inverse = 0 <= least <= 1 and member.largest(above) >= one * (1 - RELATIVE_ERROR)
            inverse = inverse and (below <= 0 or member.largest(below) <= one * (1 + RELATIVE_ERROR))
            assert inverse, f"{what} is {least:.3g}: it must be the least q that at({x:.3g}) allows with this p"


def _boundary(claim: Claim) -> Floats:
    """The largest p that a claim allows, at `RATES`."""
    return _numbers("largest(q)", lambda: [float(claim.largest(q)) for q in RATES.tolist()], RATES.shape)


def _planes(what: str, ask: Callable[[], HalfPlane], allowed: Floats, shape: tuple[int, ...] = ()) -> HalfPlane:
    """The half-planes that `ask` gives, as arrays of a shape; each must contain the region `allowed` at `RATES`."""
    given = _ask(what, ask)
    slope = _numbers(f"the slope of {what}", lambda: given.slope, shape)
    intercept = _numbers(f"the intercept of {what}", lambda: given.intercept, shape)
    allowed = np.broadcast_to(allowed, (*shape, len(RATES)))
    bound = np.minimum(slope, 1e300)[..., None] * RATES + intercept[..., None]
    valid = (slope >= 0) & np.isfinite(intercept) & np.all(bound >= allowed * (1 - ALLOWED_ROUNDING) - 1e-12, axis=-1)
    k = np.unravel_index(np.argmin(valid), shape)
    worst = int(np.argmin(bound[k] - allowed[k]))
    assert valid.all(), (
        f"{what} is p ≤ {slope[k]:g}·q + {intercept[k]:g}, which must rise and contain the region, and "
        f"largest({RATES[worst]:.3g}) is {allowed[k][worst]:.3g}: only a convex region has such half-planes"
    )
    return HalfPlane(slope, intercept)


@_naming_class("event")
def check_event(event: Event, rows: Rows | None = None) -> None:
    """Test an event: it decides about each row by the row's first `width` entries alone, and its JSON is read back.

    `rows`: outcomes of shape (n, any width), NaN for an absent entry; by default numbers, flags, texts and None.
    """
    names = [name for name in (*vars(Counted), *vars(Event), "kind") if not name.startswith("_")]
    lacking = [name for name in names if name not in dir(event)]
    assert not lacking, f"it lacks {', '.join(lacking)}: let its class inherit dpwitness.events.Event"
    width: int = _ask("width", lambda: index(event.width))
    assert 0 <= width <= MOST_EVENT_COLUMNS, f"width={width} must be a whole number from 0 to {MOST_EVENT_COLUMNS}"
    if rows is None:
        rng, codes = np.random.default_rng(0), [TRUE, FALSE, NONE, NOT_A_NUMBER, text_code("a"), math.inf, math.nan]
        rows = rng.choice([*rng.laplace(scale=3.0, size=40), *range(-4, 5), *codes], (256, width + 1))
    rows = widen(np.array(rows, np.float64), width + 1)
    inside, order = _members(event, rows), np.random.default_rng(1).permutation(len(rows))
    parts = [rows[:0], rows[:1], *np.array_split(rows[order], 3)]
    found = np.concatenate([_members(event, part) for part in parts])
    alone = np.array_equal(found, [*inside[:1], *inside[order]])
    assert alone, "contains must look at each row alone, and give the same each time"
    if is_partition(event):
        cells = [_ask("cell_of", partial(event.cell_of, part)) for part in parts]
        fits = np.array_equal(event.inside[np.concatenate(cells)], found)
        assert fits, "cell_of must look at each row alone, and give a cell `inside` for the rows that it contains"
    further = np.where(np.isnan(rows), rows, 0.25)  # events may look at whether further entries are present
    further[:, :width] = rows[:, :width]
    same = np.array_equal(_members(event, further), inside)
    assert same, f"width={width} is too small: contains looks at the values of further entries"
    _numbers("complexity", lambda: list(event.complexity), (2,))
    for name in ("simpler", "rounded"):
        for one in _objects(name, getattr(event, name)):
            other = callable(getattr(one, "contains", None)) and one != event
            assert other, f"{name} gave {brief(one)}: it must give other events"
    _texts({"describe()": event.describe})
    again = _members(_read_back(event, event_from_json), rows)
    assert np.array_equal(again, inside), "the event that is read back from its JSON must contain the same rows"


def _members(event: Event, rows: Rows) -> Booleans:
    """Whether an event contains each row, shape (n,); the event gets a read-only copy of the rows."""
    rows = rows.copy()
    rows.flags.writeable = False
    found: Any = _ask("contains", lambda: event.contains(rows))
    fits = isinstance(found, np.ndarray) and found.dtype == np.bool_ and found.shape == (len(rows),)
    assert fits, f"contains gave {brief(found)} for {len(rows)} rows: it must give an array of one bool a row"
    return np.asarray(found)


@_naming_class("relation")
def check_relation(relation: Relation, data: object = None) -> None:
    """Test a relation: it contains its candidates, their variations and their smaller steps, in either direction.

    `candidates` gives the same pairs each time, the steps of `smaller` end, and JSON, if any, is read back.
    `data`: D as a user gives it, which is then an input of every candidate.
    """
    relation = as_relation(relation)
    given: Any = None if data is None else _ask("take", lambda: relation.take(data))
    pairs = _pairs(relation, "candidates", given)
    again = [pair.key for pair in _pairs(relation, "candidates", given)]
    assert pairs, "candidates gave no pair"
    assert again == [pair.key for pair in pairs], "candidates must give the same pairs each time"
    twice = Pair(pairs[0].data, pairs[0].data)
    assert not _ask("contains", lambda: relation.contains(twice)), f"contains must say no to {twice}"
    if data is None:
        _pairs(relation, "candidates", centre=2.0, scale=3.0)
        for pair in pairs[:: TESTED_PAIRS // 4]:
            _pairs(relation, "variations", pair)
            seen: set[object] = set()
            while steps := _pairs(relation, "smaller", pair):
                seen.add(pair.key)
                ends = steps[0].key not in seen and len(seen) < MOST_OBJECTS
                assert ends, f"smaller must end: it comes to {steps[0]} after {len(seen)} steps"
                pair = steps[0]
    alternatives(relation)
    _texts({"str()": lambda: str(relation), "noun": lambda: relation.noun})
    if _ask("to_json", relation.to_json) is not None:
        read = _read_back(relation, relation_from_json)
        assert all(read.contains(pair, given) for pair in pairs), f"its JSON is read back as {read}, of other pairs"


def _pairs(relation: Relation, method: str, *given: Any, **settings: float) -> list[Pair]:
    """The first pairs of a relation's method; the relation must contain each pair, in either direction."""
    pairs: Iterable[Pair] = _ask(method, lambda: getattr(relation, method)(*given, **settings))
    found: list[Pair] = _ask(method, lambda: list(islice(pairs, TESTED_PAIRS)))
    data = given[0] if method == "candidates" and given else None
    for pair in found:
        assert isinstance(pair, Pair), f"{method} gave {type(pair).__name__}: it must give pairs"
        for one in (pair, pair.swapped()):
            contained = _ask("contains", partial(relation.contains, one, data))
            assert contained, f"contains must say yes to {one}, of its {method}, in either direction"
    return found


@_naming_class("learner")
def check_learner(learner: Learner) -> None:
    """Test a learner: it proposes the same events for the same outcomes, and the events pass `check_event`."""
    can = not isinstance(learner, type) and callable(getattr(learner, "propose", None))
    assert can, "it must be an object with a method `propose`, not a class"
    rng, objective = np.random.default_rng(0), GrowthAt(claim=PureDP(0.1))
    numbers = rng.laplace(size=(2, 500, 2)) + np.arange(2)[:, None, None]
    texts = rng.choice([text_code("a"), text_code("b"), NONE], (2, 500, 1))
    for (x, y), thorough in product((numbers, np.round(numbers), texts), (False, True)):
        found = []
        for sample in (sample_of(x, y), sample_of(x, y)):
            proposals = _objects("propose", partial(learner.propose, sample, objective, thorough=thorough))
            for proposal in proposals:
                right = isinstance(proposal, Proposal) and isinstance(proposal.swapped, int | np.bool_)
                assert right, f"propose gave {brief(proposal)}: it must give objects of the class Proposal"
                check_event(proposal.event, np.concatenate([x, y]))
            found.append([(write_object(proposal.event), proposal.swapped) for proposal in proposals])
        assert found[0] == found[1], "propose must give the same events of the same outcomes each time"


@_naming_class("attack")
def check_attack(
    attack: Attack | AttackFamily,
    parameters: Mapping[str, Any] = MappingProxyType({}),
    data: object = None,
    claim: Claim = PureDP(1.0),  # noqa: B008  # a claim is a value
    runs: int = 100_000,
) -> None:
    """Test an attack, or a family's attacks: they give the same candidates each time, whose events pass `check_event`.

    `parameters`, `data`, `claim` and `runs` are the arguments of an attack.
    """
    if isinstance(attack, AttackFamily):
        assert str(attack.name).isidentifier(), f"name={attack.name!r} must be an identifier"
        assert attack.default in (None, *attack.generators), f"default={attack.default!r} must be a generator"
        assert attack.generators or attack.add_command, "it must have a generator or a command"
        _texts({"summary": lambda: attack.summary})
        for generator in attack.generators.values():
            check_attack(generator, parameters, data, claim, runs)
        return
    assert callable(attack), f"{brief(attack)} must be a function"
    found = []
    for _ in range(2):
        candidates = _objects("it", partial(attack, dict(parameters), data, claim, runs))
        for candidate in candidates:
            assert isinstance(candidate, Candidate), f"it gave {brief(candidate)}: it must give candidates"
            assert len(candidate.pair.key) == 2, f"it gave {candidate.pair}: the inputs of a pair must differ"
            check_event(candidate.event)
        found.append([(one.pair.key, write_object(one.event)) for one in candidates])
    assert found[0] == found[1], "it must give the same candidates each time: it draws nothing at random"


def _ask(what: str, ask: Callable[[], Any]) -> Any:
    """The result of a method. Raises `InvalidParameter` if it raises."""
    try:
        with np.errstate(all="ignore"):
            return ask()
    except (Exception, SystemExit) as error:
        raise InvalidParameter(f"{what} raised {class_and_text(error)}") from error


def _numbers(what: str, ask: Callable[[], Any], shape: tuple[int, ...] = ()) -> Floats:
    """The numbers that a method gives, as an array of a shape; they must not be NaN."""
    value = _ask(what, ask)
    try:
        found = np.asarray(value)
        numbers = np.broadcast_to(found.astype(np.float64), shape) if found.dtype.kind in "fiu" else None
    except ValueError:  # rows of unequal lengths, or another shape
        numbers = None
    wanted = f"numbers of shape {shape}" if shape else "a number"
    right = numbers is not None and not np.isnan(numbers).any()
    assert right, f"{what} is {brief(value)}: it must be {wanted}, not NaN"
    return np.asarray(numbers)


def _objects(what: str, ask: Callable[[], Iterable[Any]]) -> list[Any]:
    """The objects that a method gives; their number must be at most `MOST_OBJECTS`."""
    given = _ask(what, ask)
    assert isinstance(given, Iterable), f"{what} gave {brief(given)}: it must give a list, or yield"
    found: list[Any] = _ask(what, lambda: list(islice(given, MOST_OBJECTS + 1)))
    assert len(found) <= MOST_OBJECTS, f"{what} gave more than {MOST_OBJECTS:,} objects: let it give the best ones"
    return found


def _texts(texts: Mapping[str, Callable[[], object]]) -> None:
    for what, ask in texts.items():
        found = _ask(what, ask)
        assert isinstance(found, str), f"{what} is {brief(found)}: it must be a text"


def _read_back(value: object, read: Callable[[object], Any]) -> Any:
    """The value after it was written as JSON and read back, which must give the same JSON."""
    written = _ask("to_json", lambda: json.dumps(write_object(value), allow_nan=False))
    again = _ask("from_json", lambda: read(json.loads(written)))
    same = json.dumps(write_object(again)) == written
    assert same, f"its JSON {brief(written)} is read back as {brief(again)}"
    return again
