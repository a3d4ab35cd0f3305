"""The figure of the StatDP paper: p-values against test ε."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from dpwitness.checks import brief
from dpwitness.claims import Claim
from dpwitness.errors import InvalidWitness
from dpwitness.evidence.counts import Counts
from dpwitness.results import codec
from dpwitness.results.codec import OMITTED, Form, Key, Kind, as_kind, many, optional
from dpwitness.results.text import notes, table
from dpwitness.results.verdict import EARLY, HEAD, NOTES, TAIL, Result


@dataclass(frozen=True, slots=True, kw_only=True)
class PValueCurve:
    """p-values of one mechanism with one ε, against the test ε's; all tuples are of one length."""

    epsilon: float
    test_epsilons: tuple[float, ...]
    p_values: tuple[float, ...]
    adjusted: tuple[float, ...]  # Holm, over all test ε of this mechanism
    events: tuple[str, ...]
    counts: tuple[Counts, ...]
    pair_label: str
    search_runs: int


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Curve(Result):
    """The figure of Ding et al. 2018: p-value against test ε, a `PValueCurve` for each ε of the mechanism.

    With a `claim` the tests are of its family's parameter, in its unit: `test_epsilons` are values of that.
    """

    delta: float
    claim: Claim | None = None  # whose family's parameter is tested; None: ε at delta
    method: str
    lines: tuple[PValueCurve, ...]
    ended: str = "runs"  # or why there is no line for each ε: "time", "interrupted", "cluster lost" or "failed"

    @property
    def parameter(self) -> str:
        """The sign of the parameter that is tested, such as ε or μ."""
        return "ε" if self.claim is None else self.claim.symbol

    def to_json(self) -> dict[str, Any]:
        """Everything, as JSON values."""
        return codec.to_json(_FORM, self)

    def __str__(self) -> str:
        """A table: one row a test ε, one column an ε of the mechanism."""
        head = [f"test {self.parameter}", *(f"ε = {line.epsilon:g}" for line in self.lines)]
        rows = [
            [f"{test:g}", *(f"{line.p_values[i]:.3g}" for line in self.lines)]
            for i, test in enumerate(self.lines[0].test_epsilons)
        ]
        each = list(dict.fromkeys(f"{line.counts[0].runs:,}" for line in self.lines))
        runs = each[0] if len(each) == 1 else " / ".join(f"{line.counts[0].runs:,}" for line in self.lines)
        spent = f"{runs} paired runs a line; {self.seconds:.1f} s; seed {self.seed}"
        of = "" if self.claim is None else self.claim.condition
        early = [f"  stopped early: {EARLY[self.ended]}; the lines are whole"] if self.ended in EARLY else []
        text = [f"p-values of {self.call}{of}", table(head, rows, right=True)]
        return "\n".join([*text, *early, *notes(self.notes), spent])

    def __repr__(self) -> str:
        epsilons = ", ".join(f"{line.epsilon:g}" for line in self.lines)
        tested = f"{len(self.lines[0].test_epsilons)} test {self.parameter}"
        return f"<Curve: p-values of {self.call} with ε = {epsilons} at {tested}>"


def curve_from_json(value: Any) -> Curve:
    """Build a curve from parsed JSON that nobody has checked. Raises `InvalidWitness`."""
    return codec.from_json(_FORM, value, "curve")


def _lines(name: str, value: Any) -> tuple[PValueCurve, ...]:
    """Lines of the same tests, one at least."""
    found: tuple[PValueCurve, ...] = many(as_kind(_LINE)).read(name, value)
    if len({line.test_epsilons for line in found}) != 1:
        raise InvalidWitness(f"{name}={brief(value)} must hold at least one line, and the same tests in each")
    return found


def _tests(line: PValueCurve) -> list[tuple[Any, ...]]:
    columns = (line.test_epsilons, line.p_values, line.adjusted, line.events, line.counts)
    return list(zip(*columns, strict=True))


def _line(*, epsilon: float, neighbours: str, runs: int, tests: Sequence[tuple[Any, ...]]) -> PValueCurve:
    if not tests:
        raise InvalidWitness("tests=[] must hold at least one test")
    tried, p_values, adjusted, events, counts = zip(*tests, strict=True)
    return PValueCurve(
        epsilon=epsilon,
        test_epsilons=tried,
        p_values=p_values,
        adjusted=adjusted,
        events=events,
        counts=counts,
        pair_label=neighbours,
        search_runs=runs,
    )


def _column(kind: Kind, place: int) -> Key:
    return Key(kind=kind, get=lambda test: test[place])


_TEST: Final = Form(
    lambda **columns: tuple(columns.values()),
    keys={
        "epsilon": _column(codec.NUMBER, 0),
        "p_value": _column(codec.NUMBER, 1),
        "holm": _column(codec.NUMBER, 2),
        "event": _column(codec.TEXT, 3),
        "counts": _column(codec.COUNTS, 4),
    },
)
_SPENT: Final = Kind(
    lambda line: {"search": line.search_runs, "confirm": line.counts[0].runs},
    lambda name, value: codec.WHOLE.read(name, codec.OBJECT.read(name, value)["search"]),
)
_LINE: Final = Form(
    _line,
    keys={
        "epsilon": codec.NUMBER,
        "neighbours": Key(kind=codec.TEXT, get=lambda line: line.pair_label),
        "runs": Key(kind=_SPENT, get=lambda line: line),
        "tests": Key(kind=many(as_kind(_TEST)), get=_tests),
    },
)
#: Left out where ε is tested.
_FAMILY: Final = Key(kind=optional(codec.CLAIM), get=lambda curve: curve.claim or OMITTED, default=None)
_FORM: Final[Form[Curve]] = Form(
    Curve,
    keys={
        **HEAD,
        "delta": codec.NUMBER,
        "claim": _FAMILY,
        "parameter": Key(kind=codec.TEXT, derived=True),
        "method": codec.TEXT,
        "lines": Kind(many(as_kind(_LINE)).write, _lines),
        "ended": Key(kind=codec.TEXT, default="runs"),
        **TAIL,
        **NOTES,
    },
)
