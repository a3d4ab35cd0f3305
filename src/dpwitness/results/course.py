"""How a result came about, for people: what was tried, how the evidence grew, and both output distributions."""

from dataclasses import dataclass, field
from itertools import pairwise

from dpwitness.codec import JsonFields
from dpwitness.results.fields import Count


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs(JsonFields):
    """How often outcomes of D and of D′ had a value of what the event looks at; of runs that prove nothing here.

    Attributes
    ----------
    statistic
        What the event looks at, such as "first answer".
    edges
        Of a histogram: bin k holds the values from edge k to below edge k + 1. Empty where bins are single values.
    values
        Of single values: their texts, a bin each. Empty for a histogram.
    inside
        Whether the event holds the values of a bin.
    on_data, on_neighbour
        Runs on D, and on D′, in each bin; other runs had other values.
    runs
        Runs on each input.

    Raises `ValueError` unless there is one number, or text, for each bin.
    """

    statistic: str
    edges: tuple[float, ...] = field(default=(), metadata={"json": "sparse"})
    values: tuple[str, ...] = field(default=(), metadata={"json": "sparse"})
    inside: tuple[bool, ...]
    on_data: tuple[Count, ...]
    on_neighbour: tuple[Count, ...]
    runs: Count

    def __post_init__(self) -> None:
        bins = len(self.inside)
        named = max(len(self.edges) - 1, 0), len(self.values)
        if not bins or {len(self.on_data), len(self.on_neighbour)} != {bins} or sorted(named) != [0, bins]:
            raise ValueError("outputs need one number, and a text or two edges, for each of their bins")
        if any(a >= b for a, b in pairwise(self.edges)):
            raise ValueError("the edges of a histogram must rise")
        if not max(sum(self.on_data), sum(self.on_neighbour)) <= self.runs:
            raise ValueError(f"runs={self.runs} is less than the runs in the bins")


@dataclass(frozen=True, slots=True, kw_only=True)
class Course(JsonFields):
    """What a search tried, and how the evidence grew.

    Attributes
    ----------
    pairs
        Pairs of inputs that were run to choose one; 0 where the pair was given, as in a replay.
    events
        Events that were compared with each other; one that was proposed again, of more runs, counts again.
    evidence
        Paired runs and the log e-value (nats) after so many: at most `POINTS`, thinned out, the last one kept. Of a
        check in epochs these are all runs, else the confirm runs. Empty for a bound, which tests no claim.
    outputs
        Both distributions of what the event looks at; None where it looks at several values, or runs are expensive.
    """

    pairs: Count
    events: Count
    evidence: tuple[tuple[Count, float], ...] = ()
    outputs: Outputs | None = field(default=None, metadata={"json": "sparse"})
