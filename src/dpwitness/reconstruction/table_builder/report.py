"""Results of averaging attacks: what they know without the truth, and a comparison with the truth."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from typing_extensions import override

from dpwitness.reconstruction.report import Asked, Result, new_figure, report_text, write_figure
from dpwitness.reconstruction.table_builder.histogram import Histogram
from dpwitness.reconstruction.table_builder.noise_laws import LARGEST_BOUND, NoiseLaw
from dpwitness.reconstruction.table_builder.perturbation import Perturbation
from dpwitness.reconstruction.table_builder.systems import INDEPENDENT, Simulation
from dpwitness.reconstruction.table_builder.theory import expected_right, histogram_bound, perturbation_found

#: Noises × bound, beyond which the exact law is not computed: its transform would take gigabytes.
LARGEST_LAW: Final = 1 << 25
#: Of a table in the text.
MAX_ROWS: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """Which system was attacked, bundled or the user's, and how: what reports of both goals say of it.

    `data`: where the people, or the truth, are from. `stopped`: why the user's system gave no more answers, if so.
    """

    attack: str
    data: str | None
    system: Simulation | Asked
    seed: int
    seconds: float
    stopped: str | None = None

    def to_json(self, recover: str, found: dict[str, object]) -> dict[str, Any]:
        """Around what was found."""
        described = asdict(self.system)
        if isinstance(self.system, Asked):
            described["stopped"] = self.stopped
        else:
            described["suppression"] = self.system.suppressed
            del described["scale"]
        about = {"attack": self.attack, "recover": recover, "data": self.data, **described, "seed": self.seed}
        return about | found | {"seconds": self.seconds}

    def rows(self) -> Iterator[tuple[str, str | None]]:
        """As the first rows of a text."""
        system = self.system
        if isinstance(system, Asked):
            limits = {"budget": system.budget, "rate": system.rate}
            yield "system", ", ".join([system.oracle, *(f"{k} {v:,}" for k, v in limits.items() if v is not None)])
        else:
            yield (
                "system",
                f"{system.system} noisy counts, {system.noise} noise within ±{system.perturbation}, "
                f"counts of at most {system.suppressed} suppressed",
            )
        yield "stopped", self.stopped or None
        yield "data", self.data or None


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """How much of a histogram is right.

    `suppressed`, `suppressed_right`: of counts that are shown as 0. `all_right_at_least`, `expected_right`: what the
    theory says of such a run (see `theory_of`).
    """

    true: tuple[int, ...]
    right: int
    right_as_published: int
    suppressed: int
    suppressed_right: int
    all_right_at_least: float | None
    expected_right: float | None

    @classmethod
    def of(cls, true: Sequence[int], found: Histogram, suppression: int | None, law: NoiseLaw | None) -> "Truth":
        """Compare a histogram with the true counts; with those of at most `suppression` hidden, where it is known."""
        triples = list(zip(true, found.counts, found.noisy, strict=True))
        hidden = [
            (t, c) for t, c, shown in triples if t > 0 and (not shown if suppression is None else t <= suppression)
        ]
        at_least, expected = theory_of(law, found, true)
        return cls(
            true=tuple(true),
            right=sum(t == c for t, c, _ in triples),
            right_as_published=sum(t == shown for t, _, shown in triples),
            suppressed=len(hidden),
            suppressed_right=sum(t == c for t, c in hidden),
            all_right_at_least=at_least,
            expected_right=expected,
        )


def theory_of(law: NoiseLaw | None, found: Histogram, true: Sequence[int]) -> tuple[float | None, float | None]:
    """The union bound for all counts, often 0, and how many are right on average by the exact law of such a run.

    None where the noise's law is not known, or a count has no sum at all.
    """
    kinds = {*found.kinds, found.base_kinds}
    noises = max(sum(parts * k for parts, k in one) for one in kinds)
    if law is None or () in kinds or noises * 2 * law.bound > LARGEST_LAW:
        return None, None
    fewest = min(kinds, key=lambda one: sum(k / parts for parts, k in one))
    expected = expected_right(law, found.base_kinds, found.kinds, [t == 0 for t in true])
    return histogram_bound(law, fewest, len(true)), expected


@dataclass(frozen=True, slots=True, kw_only=True)
class HistogramResult(Result):
    """`dpwitness attack table_builder`: what was recovered, how sure that is, and how right if the truth is known.

    `confidence` of the JSON is null where no sums could differ, and where `failed_checks` says what contradicts the
    assumptions.
    """

    about: Setup
    found: Histogram
    truth: Truth | None

    @override
    def to_json(self) -> dict[str, Any]:
        truth = {"right": None, "true": None} if self.truth is None else asdict(self.truth)
        return self.about.to_json("histogram", self.found.to_json() | truth)

    @override
    def text(self) -> str:
        found, truth, size = self.found, self.truth, len(self.found.values)
        where = " and ".join(f"{name} = {' or '.join(map(str, chosen))}" for name, chosen in found.where.items())
        of = f"{size} counts of {found.attribute!r}{f' (where {where})' if where else ''}"
        if truth is None:
            heading = f"NOTHING CLAIMED: {of}; the answers do not tell how right they are"
            if found.claims is not None:
                least = math.floor(min(found.claims) * 1e4) / 1e4
                heading = f"RECOVERED: {of}, each right with probability {least:.4f} or more"
        else:
            heading = (
                f"RECOVERED: {truth.right} of {of} exactly; {truth.right_as_published} answers were right as published"
            )
        rows = [*self.about.rows()]
        if truth is not None and truth.suppressed:
            rows.append(("suppressed", f"{truth.suppressed_right} of {truth.suppressed} hidden counts recovered"))
        if found.claims is not None:
            right = f"{sum(found.claims):.2f} of {size} probably right, as the answers alone tell"
            rows.append(("confidence", f"{right} (noise of variance {found.variance:.3g})"))
        rows += [("no claim", text) for text in found.failed_checks]
        if truth is not None and truth.expected_right is not None:
            bound = truth.all_right_at_least
            sure = f"; all with probability at least {bound:.4g}" if bound else ""
            rows.append(("theory", f"{truth.expected_right:.2f} of {size} right on average{sure}"))
        queries = (
            f"{found.queries:,}: {found.partitions:,} two-partitions a value, "
            f"{sum(k for _, k in found.base_kinds):,} once for the base set of {len(found.base)}"
        )
        rows += [("queries", queries), *(("workaround", text) for text in found.workarounds)]
        label, last = rows[-1]  # below which the table stands
        rows[-1] = (label, "\n".join([str(last), *self._table()]))
        return report_text(heading, rows, seconds=self.about.seconds, seed=self.about.seed)

    def _table(self) -> Iterator[str]:
        """Counts: wrong or doubtful ones first, where there are too many."""
        found, size = self.found, len(self.found.values)
        true = None if self.truth is None else self.truth.true
        confidence: Sequence[float | None] = found.claims or [None] * size
        wrong = set() if true is None else {i for i in range(size) if found.counts[i] != true[i]}
        order = sorted(range(size), key=lambda i: (i not in wrong, (confidence[i] or 0) if true is None else 0, i))
        shown = [i for i in order if i in wrong or found.counts[i] > 0][:MAX_ROWS]
        if not shown:
            return
        last = "" if true is None else "  true"
        yield f"  {found.attribute[:12]:>12}  published  recovered  probability{last}"
        for i in sorted(shown):
            sure = "" if confidence[i] is None else f"{confidence[i]:.4f}"
            cells = f"  {found.values[i]!s:>12}  {found.noisy[i]:>9}  {found.counts[i]:>9}  {sure:>11}"
            yield f"{cells}{'' if true is None else f'  {true[i]:>4}'}{'  wrong' if i in wrong else ''}"
        if len(shown) < size:
            yield f"  … {size - len(shown)} more with --json"

    @override
    def plot(self, path: str) -> None:
        """Error of the published and of the recovered count, a point a value; without the truth their difference."""
        found, truth = self.found, self.truth
        figure, axes = new_figure(7.2, 3.6)
        true = found.counts if truth is None else truth.true
        for label, counts, marker, colour in (
            ("published", found.noisy, "x", "C1"),
            ("recovered", found.counts, "o", "C0"),
        ):
            errors = [count - people for count, people in zip(counts, true, strict=True)]
            axes.plot(range(len(true)), errors, marker, ms=4, color=colour, label=label)
        axes.axhline(0, color="black", lw=0.6)
        right = "" if truth is None else f"{truth.right} of "
        axes.set(
            xlabel=f"value of {found.attribute}, in order",
            ylabel="difference to the recovered count (people)" if truth is None else "error (people)",
            title=f"{right}{len(found.values)} counts recovered with {found.queries:,} queries",
        )
        axes.legend()
        write_figure(figure, path)


@dataclass(frozen=True, slots=True, kw_only=True)
class PerturbationResult(Result):
    """`dpwitness attack table_builder --recover perturbation`: the guess for r, and how sure it is."""

    about: Setup
    found: Perturbation
    law: NoiseLaw | None  # of the simulated system
    noise_bound: int | None = None  # of its answers, see `SimulatedSystem`

    @property
    def _known(self) -> NoiseLaw | None:
        """The law where the theory holds for the system."""
        system = self.about.system
        independent = isinstance(system, Simulation) and system.system in (*INDEPENDENT, "without-totals")
        return self.law if independent else None

    @property
    def larger_excluded(self) -> float:
        """The probability with which uniform noise of a larger r would have shown; 0 beyond the largest."""
        return (
            0.0 if self.found.guess >= LARGEST_BOUND else self._probability(self.found.guess + 1, len(self.found.sums))
        )

    @property
    def probability(self) -> float | None:
        """With which such an attack finds the r of the simulated system (Proposition 2)."""
        return None if self._known is None else self._probability(self._known, len(self.found.sums))

    @property
    def probability_a_sum(self) -> float:
        """With which one sum shows the noise; without a known law, uniform noise of an r that is larger by 1."""
        return self._probability(self._known or min(self.found.guess + 1, LARGEST_BOUND), 1)

    def _probability(self, noise: NoiseLaw | int, sums: int) -> float:
        return perturbation_found(noise, sums, plus=self.found.plus, minus=self.found.minus)

    @override
    def to_json(self) -> dict[str, Any]:
        found = self.found
        return self.about.to_json(
            "perturbation",
            {
                "attribute": found.attribute,
                "guess": found.guess,
                "confidence": found.confidence,
                "larger_excluded": self.larger_excluded,
                "right": None if self.noise_bound is None else found.guess == self.noise_bound,
                "smallest_sum": min(found.sums),
                "largest_sum": max(found.sums),
                "sums": len(found.sums),
                "answers_a_sum": found.plus + found.minus,
                "probability_a_sum": self.probability_a_sum,
                "probability": self.probability,
                "queries": found.queries,
            },
        )

    @override
    def text(self) -> str:
        found = self.found
        verdict, sure, confidence = "", "none: the sums are not those of independent noise around 0", found.confidence
        if self.noise_bound is not None:
            verdict = " (right)" if found.guess == self.noise_bound else f" (wrong: it is {self.noise_bound})"
        if confidence is not None:
            sure = f"right with probability {confidence:.4g}"
        theory = None
        if self.probability is not None:
            theory = f"right with probability {self.probability:.4g} (Proposition 2)"
        larger = f"uniform noise of a larger r would have shown with probability {self.larger_excluded:.4g}"
        rows = [
            *self.about.rows(),
            (
                "sums",
                f"{len(found.sums)} of {found.attribute!r}, of {found.plus + found.minus} answers each, "
                f"from {min(found.sums)} to {max(found.sums)}",
            ),
            ("confidence", f"{sure}; {larger}"),
            ("theory", theory),
            ("queries", f"{found.queries:,}"),
        ]
        heading = f"FOUND: noise within ±{found.guess}{verdict}"
        if confidence is None and self.noise_bound is None:
            heading = f"NOTHING CLAIMED: noise within ±{found.guess} is a guess"
        return report_text(heading, rows, seconds=self.about.seconds, seed=self.about.seed)

    @override
    def plot(self, path: str) -> None:
        """The probability of Proposition 2 against the number of sums, with this attack's number marked."""
        figure, axes = new_figure(6.4, 3.6)
        found, single, system = self.found, self.probability_a_sum, self.about.system
        last = max(len(found.sums), math.ceil(4.6 / max(single, 1e-9)))  # e^−4.6 = 0.01
        sums = sorted({max(1, last * i // 200) for i in range(1, 201)})
        label = "uniform noise of a larger r"
        if isinstance(system, Simulation) and self.probability is not None:
            label = f"{system.noise} noise within ±{system.perturbation}"
        axes.plot(sums, [-math.expm1(m * math.log1p(-min(single, 1 - 1e-16))) for m in sums], label=label)
        axes.axvline(len(found.sums), color="C1", ls="--", label=f"this attack: found {found.guess}")
        axes.set(
            xlabel=f"sums ({found.plus + found.minus} answers each)",
            ylabel="probability that it shows",
            ylim=(0, 1.03),
        )
        axes.legend()
        write_figure(figure, path)
