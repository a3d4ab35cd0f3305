"""The figure of the StatDP paper: p-values against test ε."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

from dpwitness.checks import brief
from dpwitness.claims import Claim
from dpwitness.codec import JsonFields
from dpwitness.errors import InvalidParameter
from dpwitness.evidence.counts import Counts
from dpwitness.results.fields import Count, RunCounts
from dpwitness.results.text import p_value, table
from dpwitness.results.verdict import Result, remarks


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveTest(JsonFields):
    """The test of one claim of a curve: the tested parameter, the event and its counts, and their p-value."""

    epsilon: float  # the tested ε in nats, or the tested parameter of another family, in its unit
    p_value: float
    holm: float  # the p-value adjusted by Holm's method over the tests of its ε
    event: str
    counts: Counts


@dataclass(frozen=True, slots=True, kw_only=True)
class PValueCurve(JsonFields):
    """p-values of a mechanism with one ε, against the test ε; each tuple has an entry for each test."""

    json_keys: ClassVar[tuple[str, ...]] = ("epsilon", "neighbours: pair_label", "runs: run_counts", "tests")

    epsilon: float
    tests: tuple[CurveTest, ...]
    pair_label: str
    search_runs: Count

    def __post_init__(self) -> None:
        if not self.tests:
            raise InvalidParameter("tests=() must hold at least one test")

    @property
    def test_epsilons(self) -> tuple[float, ...]:
        """The values of the tested parameter."""
        return tuple(test.epsilon for test in self.tests)

    @property
    def p_values(self) -> tuple[float, ...]:
        """The p-values of the tests."""
        return tuple(test.p_value for test in self.tests)

    @property
    def adjusted(self) -> tuple[float, ...]:
        """The p-values adjusted by Holm's method over all tests."""
        return tuple(test.holm for test in self.tests)

    @property
    def counts(self) -> tuple[Counts, ...]:
        """The counts of the events in the confirm runs."""
        return tuple(test.counts for test in self.tests)

    @property
    def run_counts(self) -> RunCounts:
        """The numbers of paired runs of each stage."""
        return RunCounts(search=self.search_runs, confirm=self.counts[0].runs)

    @classmethod
    def from_keys(cls, *, neighbours: str, runs: RunCounts, **fields: Any) -> "PValueCurve":
        """The curve from the keys of its JSON."""
        return cls(pair_label=neighbours, search_runs=runs.search, **fields)


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
        text = [f"p-values of {self.call}{condition}", table(head, rows, right=True)]
        return "\n".join([*text, *remarks(self, self.ended), spent])

    def __repr__(self) -> str:
        epsilons = ", ".join(f"{line.epsilon:g}" for line in self.lines)
        tested = f"{len(self.lines[0].test_epsilons)} test {self.parameter}"
        return f"<Curve: p-values of {self.call} with ε = {epsilons} at {tested}>"
