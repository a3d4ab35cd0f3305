"""`dpwitness attack threshold_testing` reads a histogram's counts through private threshold testing.

The system is the user's own, or the bundled `ThresholdOracle`, attacked several times. An attack sees `Queries` alone.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace
from typing import Any, Final, TypeAlias

import numpy as np

from dpwitness.cli import options as shared
from dpwitness.cli.command import Option
from dpwitness.cli.values import number, refuse, whole
from dpwitness.errors import AttackStopped, InvalidData, InvalidParameter
from dpwitness.files import read_column
from dpwitness.proposals import AttackFamily, Commands
from dpwitness.reconstruction.command import (
    AttackOptions,
    Progress,
    add_attack_command,
    finish,
    oracle_options,
    run_attack,
    settings_of,
)
from dpwitness.reconstruction.questions import Asking
from dpwitness.reconstruction.report import Finding, Result, draw_claims, finding_json
from dpwitness.reconstruction.threshold_testing.attack import (
    adaptive_attack,
    reconstruct,
    reconstruct_supported,
    right_claims,
    score,
)
from dpwitness.reconstruction.threshold_testing.oracle import (
    FORM,
    QUESTIONS_AT_ONCE,
    Counts,
    Noise,
    Queries,
    Signs,
    ThresholdOracle,
    check_histogram,
)
from dpwitness.reconstruction.threshold_testing.theory import MOST_COPIES, attack_threshold, copies_for

#: The least and the largest value of each option: the noise of a smaller ε does not fit into whole numbers of 64 bits,
#: a question takes a byte a cell, and more attacks would take days.
LIMITS: Final = {
    "epsilon": (1e-12, math.inf),
    "epsilon2": (1e-12, math.inf),
    "cells": (2, 10**7),
    "copies": (1, MOST_COPIES),
    "repeat": (1, 1_000_000),
}
#: The number of questions in a round where a person answers them in a file: a round costs more than many questions.
FILE_QUESTIONS_AT_ONCE: Final = 64
#: The largest count, in people, of the cells that are also scored by themselves, as in the paper's Table 3.
SMALL_COUNT: Final = 5
#: The number of counts that a report on the user's own system prints; its JSON has all counts.
PRINTED_COUNTS: Final = 24

#: The findings of the attacks and the numbers of their questions; no finding where the attack was stopped.
Attacks: TypeAlias = list[tuple[Finding, int]]
#: Rows of text, each a label and its text; a row without a text is left out.
Rows: TypeAlias = list[tuple[str, str | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(AttackOptions):
    """The options of the command."""

    data: str | None = None
    column: str | None = None
    epsilon: float | None = None
    epsilon1: float | None = None
    epsilon2: float = math.inf
    adaptive: bool = False
    support: int | None = None
    copies: int | None = None
    beta: float | None = None
    delta: float = 0.05
    share: float = 0.5
    repeat: int = 10
    cells: int | None = None

    def check(self, given: SimpleNamespace) -> None:
        """Raise `InvalidParameter` for options that are out of range, or have no meaning for the attack."""
        if self.own_system:
            simulated = ("epsilon", "share", "beta", "repeat")
            refuse(given, simulated, "is of the simulated system: leave it out where you attack your own")
        else:
            refuse(given, ("cells", "epsilon1"), "is of your own system: give --oracle, or --ask FILE, too")
            if self.epsilon is None:
                raise InvalidParameter("--epsilon is needed: the budget of the simulated system (or give --oracle)")
        for name, (least, most) in LIMITS.items():
            value = getattr(self, name)
            if value is not None and not least <= value <= most:
                above = "" if math.isinf(most) else f" and at most {most:g}"
                raise InvalidParameter(f"--{name} {value} must be at least {least:g}{above}")
        if not 0 < self.share < 1:
            raise InvalidParameter(f"--share {self.share:g} must lie between 0 and 1")
        if self.method != "partition and totals":
            refuse(given, ("share",), "is of Algorithm 4, the only attack that asks for totals: leave it out")
        if self.method == "weighing":
            refuse(given, ("beta", "delta", "epsilon1"), "is of Algorithm 3, not of the adaptive attack: leave it out")
            if math.isinf(self.epsilon2):
                refuse(given, ("copies",), "says nothing where queries have no noise: give --epsilon2, or leave it out")

    @property
    def method(self) -> str:
        """The name of the attack: "partition" is Algorithm 3, "partition and totals" 4, and "weighing" is adaptive."""
        if self.support is not None:
            return "partition"
        return "weighing" if self.adaptive or self.own_system else "partition and totals"

    @property
    def noise(self) -> Noise:
        """The noise of the system, as far as the attack knows it."""
        epsilon1 = self.epsilon1
        if self.epsilon is not None:
            epsilon1 = self.epsilon * (self.share if self.method == "partition and totals" else 1.0)
        theta = 0.0  # Algorithm 3 needs the θ of Lemma 5.10
        if self.method != "weighing" and epsilon1 is not None:
            theta = float(attack_threshold(epsilon1, self.delta))
        return Noise(epsilon1=epsilon1, epsilon2=self.epsilon2, threshold=theta)

    def run_on(self, oracle: Queries, rng: np.random.Generator) -> tuple[Finding, int]:
        """Run the attack on a simulated system or the user's own; return the finding and the number of questions."""
        if self.method == "weighing":
            found = adaptive_attack(oracle, rng, copies=self.copies)
        elif self.support is not None:
            found = reconstruct_supported(oracle, self.support, delta=self.delta, copies=self.copies or 1)
        else:
            found = reconstruct(oracle, copies=self.copies or 1)
        return found, oracle.queries

    def simulate(self, counts: Counts, seed: int, progress: Progress | None) -> Attacks:
        """Make --repeat attacks on simulated systems, or fewer if the time is over, but at least one.

        Attack k draws from the stream [seed, k].
        """
        assert self.epsilon is not None
        deadline, noise, found = self.deadline(), self.noise, Attacks()
        assert noise.epsilon1 is not None
        while not found or (len(found) < self.repeat and deadline.left):
            rng = np.random.default_rng([seed, len(found)])
            oracle = ThresholdOracle(
                counts,
                rng,
                epsilon1=noise.epsilon1,
                epsilon2=noise.epsilon2,
                threshold=noise.threshold,
                epsilon_totals=self.epsilon - noise.epsilon1 or None,
            )
            found.append(self.run_on(oracle, rng))
            if progress is not None:
                progress("attack", len(found), self.repeat, f"{score(counts, found[-1][0].guess)[0]:.4f} right")
        return found


def run(arguments: SimpleNamespace) -> int:
    """Run the command; return its exit code. Bad input raises."""
    shared.require_one(arguments, "adaptive", "support")
    shared.require_one(arguments, "copies", "beta")
    options = settings_of(Options, arguments)
    options.require_own_system()
    if options.column and not options.data:
        raise InvalidData("--column says which column of --data: give --data FILE.csv too")
    options.check(arguments)
    return finish(arguments, attack_system(options))


def attack_system(options: Options) -> Result | None:
    """Attack the user's own system, or simulated systems; None where the questions wait in a file."""
    truth = _truth(options)
    cells = options.cells if truth is None else len(truth)
    assert cells is not None
    if options.beta is not None:
        options = replace(options, copies=copies_for(options.beta, cells**2, epsilon2=options.epsilon2))

    def attack(asking: Asking[Signs], seed: int) -> tuple[Attacks, str | None]:
        in_file = options.ask is not None or options.answers is not None  # the same questions with --oracle and without
        together = FILE_QUESTIONS_AT_ONCE if in_file else QUESTIONS_AT_ONCE
        try:
            oracle = Queries(asking.ask, cells, options.noise, together=together)
            return [options.run_on(oracle, np.random.default_rng(seed))], None
        except AttackStopped as stopped:
            return [], str(stopped)

    def simulate(seed: int, progress: Progress | None) -> Attacks:
        assert truth is not None
        return options.simulate(truth, seed, progress)

    settings = {
        "cells": cells,
        "epsilon2": options.epsilon2 if math.isfinite(options.epsilon2) else None,
        "support": options.support,
        "copies": options.copies,
    }
    ended = run_attack(options, FORM, settings, attack, simulate)
    if ended is None:
        return None
    finding = ended.found[-1][0] if ended.found else None
    values: dict[str, Any] = {**settings, **finding_json(finding, truth), "method": options.method, "basis": None}
    if ended.asked is not None:
        heading = f"counts of {cells} cells through {ended.asked.text}"
        values |= ended.asked.to_json()
        rows: Rows = [("stopped", values["stopped"])]
    else:
        assert truth is not None
        name = options.data or "randhie mdvis"
        heading = f"counts of {name} through private threshold testing: {options.method}"
        scores, rows = _scores(ended.found, options, truth)
        values |= {"data": name, "epsilon": options.epsilon, **scores}
    if finding is not None:
        values["basis"] = _basis(finding, options)
        rows += _claims_rows(finding, values["basis"])
        if truth is not None:
            values["right_up_to_factor"] = int(right_claims(finding, truth).sum())
            text = f"{values['right']} of {cells} counts are right, {values['right_up_to_factor']} of the claimed"
            rows.append(("truth", text + (" up to the factor" if finding.up_to_factor else "")))
    draw = None if finding is None else partial(draw_claims, finding=finding, truth=truth, parts="cell")
    return Result(ended=ended, values=values, heading=heading, rows=rows, draw=draw)


def _basis(finding: Finding, options: Options) -> str:
    """The reason for the claims, or for no claim."""
    if options.method == "partition and totals":
        return "none: cells of different counts may be in one part"
    if finding.contradicted:
        return f"none: {finding.contradicted[0]}"
    if options.support is not None:
        return f"Theorem 5.12, if every count up to {options.support} occurs and ε₁ is right"
    if finding.claimed.any():
        return "fresh sums next to the threshold came as predicted"
    return "none: the counts did not pass the attack's own test"


def _claims_rows(finding: Finding, basis: str) -> Rows:
    """Rows of text: the number of claimed counts, their probability, their factor, and the first counts."""
    if not finding.claimed.any():
        return [("claimed", basis)]
    confidence, number_claimed = finding.probability.max(), finding.claimed.sum()
    first = zip(finding.guess[:PRINTED_COUNTS].tolist(), finding.claimed.tolist(), strict=False)
    more = ", …" if len(finding.guess) > PRINTED_COUNTS else ""
    factor = (
        "readable up to a factor: these counts times one whole number, the same for all cells, explain all answers as "
        "well (it is 1 unless the counts have a common divisor)"
    )
    return [
        ("claimed", f"{number_claimed} counts, each with confidence {confidence:.6f}: {basis}"),
        ("histogram", "the counts that the system uses: if they are rounded, capped or noisy, so are these counts"),
        ("factor", factor if finding.up_to_factor else None),
        ("counts", ", ".join(str(count) if claimed else "?" for count, claimed in first) + more),
    ]


def _truth(options: Options) -> Counts | None:
    """The counts of --data, else of the simulated system; None if the user's system is attacked without --data.

    Raises `InvalidParameter` or `InvalidData` for a wrong number of cells, or wrong counts.
    """
    if not options.data:
        if not options.own_system:
            return visits()
        if options.cells is None:
            raise InvalidParameter("--cells is needed: how many cells the histogram has")
        return None
    counts = check_histogram(read_column(options.data, options.column))
    if options.cells not in (None, len(counts)):
        raise InvalidParameter(f"--cells {options.cells} is not that of --data, which has {len(counts)} cells")
    return counts


def visits() -> Counts:
    """The numbers of people-years of the RAND experiment with 0, 1, 2, … visits to a doctor, shape (78,)."""
    from statsmodels.datasets import randhie  # type: ignore[import-untyped]  # no stubs; 0.6 s

    return np.bincount(np.asarray(randhie.load_pandas().data["mdvis"], np.int64))


def _average(values: Sequence[float]) -> tuple[dict[str, float | None], str]:
    """The mean of fractions, its standard error and the least fraction, as JSON values and as text."""
    if math.isnan(values[0]):  # the fractions of no cells
        return {"mean": None, "standard_error": None, "least": None}, "none"
    mean, least = float(np.mean(values)), float(np.min(values))
    error = float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else None
    text = f"{mean:.4f}{'' if error is None else f' ± {error:.4f}'} of %d exactly right (least {least:.4f})"
    return {"mean": mean, "standard_error": error, "least": least}, text


def _scores(attacks: Attacks, options: Options, counts: Counts) -> tuple[dict[str, Any], Rows]:
    """JSON values and rows of text: how many guesses and claims of simulated attacks are right."""
    repeat, findings, noise = len(attacks), [found for found, _ in attacks], options.noise
    scores = zip(*(score(counts, one.guess, SMALL_COUNT) for one in findings), strict=True)
    (every, every_text), (small, small_text) = map(_average, scores)
    values: dict[str, Any] = {
        "small_cells": int((counts <= SMALL_COUNT).sum()),
        "epsilon1": noise.epsilon1,
        "epsilon2_infinite": math.isinf(noise.epsilon2),
        "adaptive": options.adaptive,
        "repeat": repeat,
        "out_of_time": repeat < options.repeat,
        "fraction_right": every,
        "fraction_right_small": small,
        "fraction_claimed": float(np.mean([one.claimed.mean() for one in findings])),
        "claimed_wrong": sum(int(one.claimed.sum() - right_claims(one, counts).sum()) for one in findings),
        "queries_per_cell": sum(asked for _, asked in attacks) / repeat / len(counts),
    }
    copies = "" if options.copies is None else f", {options.copies:,} copies of each"
    return values, [
        ("budget", f"ε = {options.epsilon:g}: ε₁ = {noise.epsilon1:g} for the threshold; ε₂ = {noise.epsilon2:g}"),
        ("all cells", every_text % len(counts)),
        (f"cells ≤ {SMALL_COUNT}", small_text % values["small_cells"]),
        ("all claims", f"{values['fraction_claimed']:.4f} of all cells, {values['claimed_wrong']} of them wrong"),
        ("queries", f"{values['queries_per_cell']:,.1f} threshold queries a cell{copies}"),
        ("repeated", f"{repeat} attacks{', then the time was over' if values['out_of_time'] else ''}"),
    ]


def add_command(commands: Commands, family: AttackFamily) -> None:
    """Add the command `dpwitness attack threshold_testing` with its options."""
    examples = (
        "attack threshold_testing --epsilon 0.1 --adaptive",
        "attack threshold_testing --epsilon 1 --data FILE.csv",
        "attack threshold_testing --oracle mine.py:system --cells 100",
        "attack threshold_testing --cells 100 --ask questions.csv",
    )
    parameters = [
        *shared.data("the histogram (default: visits to a doctor, `randhie`); with --oracle, to compare with"),
        Option("--epsilon", type=number, help="the whole budget ε of the simulated system"),
        Option("--epsilon2", type=_positive, help="ε₂ of the query noise (default inf: none)"),
        Option(
            "--adaptive",
            is_flag=True,
            help="compare sums of cells chosen from the answers so far (always with --oracle)",
        ),
        Option(
            "--support",
            type=whole,
            metavar="K",
            help="every count from 0 to K occurs: only Algorithm 3, with all of ε; not with --adaptive",
        ),
        Option("--copies", type=whole, help="copies of each query, for finite ε₂ (default 1; adaptive: by ε₂)"),
        Option(
            "--beta",
            type=number,
            help="enough copies that all majorities are right with probability 1 − β (Theorem 3.5); not with --copies",
        ),
        Option("--delta", type=number, help="θ = ⌈ln(1/δ)/ε₁⌉, not adaptive (default 0.05)"),
        Option(
            "--share",
            type=number,
            help="share of ε for the threshold, the rest for noisy totals (Algorithm 4; default 0.5)",
        ),
        Option("--repeat", type=whole, help="number of attacks (default 10)"),
        *oracle_options("an int8 array, −1, 0 or +1 for each cell,", "True if this sum of cells reaches the threshold"),
        Option("--cells", type=whole, metavar="N", help="cells of your system's histogram (default: of --data)"),
        Option("--epsilon1", type=number, help="ε₁ of your system's threshold noise, for --support"),
    ]
    add_attack_command(
        commands,
        family,
        run,
        parameters,
        examples=examples,
        description="Asks private threshold testing about a histogram, simulated or of your own, and guesses every "
        "count from the answers.",
    )


def _positive(text: str) -> float:
    return math.inf if text in ("inf", "∞") else number(text)
