"""The figure of the StatDP paper: p-values against test ε."""

from dataclasses import dataclass, field
from typing import ClassVar

from dpwitness.checks import brief
from dpwitness.claims import Claim
from dpwitness.errors import InvalidParameter
from dpwitness.evidence.counts import Counts
from dpwitness.results.fields import CheckedFields, Count, RunCounts, read_result
from dpwitness.results.text import notes, p_value, table
from dpwitness.results.verdict import EARLY_ENDS, Result


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveTest:
    """A p-value of a curve, with its event and counts, as in JSON."""

    epsilon: float
    p_value: float
    holm: float
    event: str
    counts: Counts


@dataclass(frozen=True, slots=True, kw_only=True)
class PValueCurve(CheckedFields):
    """p-values of a mechanism with one ε, against the test ε; all tuples are of one length."""

    json_keys: ClassVar[tuple[str, ...]] = ("epsilon", "neighbours: pair_label", "runs: run_counts", "tests")

    epsilon: float
    test_epsilons: tuple[float, ...]
    p_values: tuple[float, ...]
    adjusted: tuple[float, ...]  # p-values adjusted by Holm's method over all test ε
    events: tuple[str, ...]
    counts: tuple[Counts, ...]
    pair_label: str
    search_runs: Count

    def __post_init__(self) -> None:
        CheckedFields.__post_init__(self)
        columns = (self.test_epsilons, self.p_values, self.adjusted, self.events, self.counts)
        if len({len(column) for column in columns}) != 1 or not self.test_epsilons:
            raise InvalidParameter(
                f"test_epsilons={brief(self.test_epsilons)} must hold at least one number, with a p-value, an adjusted "
                "p-value, an event and counts for each"
            )

    @property
    def run_counts(self) -> RunCounts:
        """The numbers of paired runs of each stage."""
        return RunCounts(search=self.search_runs, confirm=self.counts[0].runs)

    @property
    def tests(self) -> tuple[CurveTest, ...]:
        """The tests of the curve, one for each test ε."""
        columns = (self.test_epsilons, self.p_values, self.adjusted, self.events, self.counts)
        return tuple(
            CurveTest(epsilon=epsilon, p_value=p_value, holm=holm, event=event, counts=counts)
            for epsilon, p_value, holm, event, counts in zip(*columns, strict=True)
        )

    @classmethod
    def from_keys(
        cls, *, epsilon: float, neighbours: str, runs: RunCounts, tests: tuple[CurveTest, ...]
    ) -> "PValueCurve":
        """The curve from the keys of its JSON."""
        return cls(
            epsilon=epsilon,
            test_epsilons=tuple(test.epsilon for test in tests),
            p_values=tuple(test.p_value for test in tests),
            adjusted=tuple(test.holm for test in tests),
            events=tuple(test.event for test in tests),
            counts=tuple(test.counts for test in tests),
            pair_label=neighbours,
            search_runs=runs.search,
        )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Curve(Result):
    """The figure of Ding et al. 2018: p-value against test ε, a `PValueCurve` for each ε of the mechanism.

    With a `claim`, `test_epsilons` are values of the parameter of the claim's family, in its unit.
    """

    json_keys: ClassVar[tuple[str, ...]] = (
        *("mechanism", "parameters", "delta", "claim", "parameter", "method", "lines", "ended"),
        *("seed", "reproducible", "seconds", "notes"),
    )

    witness: ClassVar[None] = None  # a curve's tests use many events

    delta: float
    #: A claim of the family whose parameter is tested; None: ε at `delta`.
    claim: Claim | None = field(default=None, metadata={"json": "sparse"})
    method: str
    lines: tuple[PValueCurve, ...]
    #: "runs", or the reason why some ε has no line: "time", "interrupted", "cluster lost" or "failed".
    ended: str = field(default="runs", metadata={"json": "optional"})

    def __post_init__(self) -> None:
        CheckedFields.__post_init__(self)
        if len({line.test_epsilons for line in self.lines}) != 1:
            raise InvalidParameter(f"lines={brief(self.lines)} must hold at least one line, and the same tests in each")

    @property
    def parameter(self) -> str:
        """The symbol of the tested parameter, such as ε or μ."""
        return "ε" if self.claim is None else self.claim.symbol

    def __str__(self) -> str:
        """A table with a row for each test ε, and a column for each ε of the mechanism."""
        head = [f"test {self.parameter}", *(f"ε = {line.epsilon:g}" for line in self.lines)]
        rows = [
            [f"{test:g}", *(p_value(line.p_values[i]) for line in self.lines)]
            for i, test in enumerate(self.lines[0].test_epsilons)
        ]
        each = list(dict.fromkeys(f"{line.counts[0].runs:,}" for line in self.lines))
        runs = each[0] if len(each) == 1 else " / ".join(f"{line.counts[0].runs:,}" for line in self.lines)
        spent = f"{runs} paired runs a line; {self.seconds:.1f} s; seed {self.seed}"
        condition = "" if self.claim is None else self.claim.condition
        early = [f"  stopped early: {EARLY_ENDS[self.ended]}; the lines are whole"] if self.ended in EARLY_ENDS else []
        text = [f"p-values of {self.call}{condition}", table(head, rows, right=True)]
        return "\n".join([*text, *early, *notes(self.notes), spent])

    def __repr__(self) -> str:
        epsilons = ", ".join(f"{line.epsilon:g}" for line in self.lines)
        tested = f"{len(self.lines[0].test_epsilons)} test {self.parameter}"
        return f"<Curve: p-values of {self.call} with ε = {epsilons} at {tested}>"


def curve_from_json(value: object) -> Curve:
    """The curve that unchecked JSON describes. Raises `InvalidWitness`."""
    found: Curve = read_result(Curve, "curve", value)
    return found
