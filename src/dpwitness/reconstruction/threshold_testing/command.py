"""`dpwitness attack threshold_testing` reads a histogram's counts through private threshold testing.

The system is the user's own, or the bundled `ThresholdOracle`. An attack sees `QueryAccess` alone.
"""

import math
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Final

import numpy as np

from dpwitness import checks
from dpwitness.cli import options as shared
from dpwitness.cli.command import CliOption
from dpwitness.cli.values import number, refuse, whole
from dpwitness.errors import AttackStopped, InvalidData, InvalidParameter
from dpwitness.files import read_column
from dpwitness.proposals import AttackFamily, Commands
from dpwitness.reconstruction.command import (
    OWN_SYSTEM_OPTIONS,
    AttackOptions,
    add_attack_command,
    oracle_options,
    run_attack,
)
from dpwitness.reconstruction.people import randhie
from dpwitness.reconstruction.questions import Asking
from dpwitness.reconstruction.report import AttackResult, Finding, LabelledLines
from dpwitness.reconstruction.threshold_testing.attack import (
    adaptive_attack,
    reconstruct,
    reconstruct_supported,
    right_claims,
)
from dpwitness.reconstruction.threshold_testing.oracle import (
    FORM,
    QUESTIONS_AT_ONCE,
    CellCounts,
    Noise,
    QueryAccess,
    Signs,
    ThresholdOracle,
    check_histogram,
)
from dpwitness.reconstruction.threshold_testing.theory import MOST_COPIES, attack_threshold

#: The largest number of cells: a question takes a byte a cell.
MOST_HISTOGRAM_CELLS: Final = 10**7
#: The largest number of attacks of one command: more attacks would take days.
MOST_ATTACKS: Final = 1_000_000
#: The least ε: the noise of a smaller ε does not fit into whole numbers of 64 bits.
LEAST_EPSILON: Final = 1e-12
#: The share of ε for the threshold's noise where Algorithm 4 spends the rest on noisy totals.
THRESHOLD_SHARE: Final = 0.5
#: The number of questions in a round where a person answers them in a file: a round costs more than many questions.
FILE_QUESTIONS_AT_ONCE: Final = 64
#: The number of counts that a report on the user's own system prints; its JSON has all counts.
PRINTED_COUNTS: Final = 24


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
    delta: float = 0.05
    repeat: int = 1
    cells: int | None = None

    def check(self, given: SimpleNamespace) -> None:
        """Raise `InvalidParameter` for options that are out of range, or have no meaning for the attack."""
        shared.require_one(given, "adaptive", "support")
        if self.column and not self.data:
            raise InvalidData("--column says which column of --data: give --data FILE.csv too")
        if not self.own_system and self.epsilon is None:
            raise InvalidParameter("--epsilon is needed: the budget of the simulated system (or give --oracle)")
        for name in ("epsilon", "epsilon2"):
            if (epsilon := getattr(self, name)) is not None and not epsilon >= LEAST_EPSILON:
                raise InvalidParameter(f"--{name} {epsilon:g} must be at least {LEAST_EPSILON}")
        for name, least, most in (
            ("cells", 2, MOST_HISTOGRAM_CELLS),
            ("copies", 1, MOST_COPIES),
            ("repeat", 1, MOST_ATTACKS),
        ):
            if (value := getattr(self, name)) is not None:
                checks.whole(f"--{name}", value, least, most)
        if self.method == "weighing":
            refuse(given, ("delta", "epsilon1"), "is of Algorithm 3, not of the adaptive attack: leave it out")
            if math.isinf(self.epsilon2):
                refuse(given, ("copies",), "says nothing where queries have no noise: give --epsilon2, or leave it out")

    @property
    def method(self) -> str:
        """The attack: "partition" (Algorithm 3), "partition and totals" (Algorithm 4) or "weighing" (adaptive)."""
        if self.support is not None:
            return "partition"
        return "weighing" if self.adaptive or self.own_system else "partition and totals"

    @property
    def noise(self) -> Noise:
        """The noise of the system, as far as the attack knows it."""
        epsilon1 = self.epsilon1
        if self.epsilon is not None:
            epsilon1 = self.epsilon * (THRESHOLD_SHARE if self.method == "partition and totals" else 1.0)
        theta = 0.0  # Algorithm 3 needs the θ of Lemma 5.10
        if self.method != "weighing" and epsilon1 is not None:
            theta = float(attack_threshold(epsilon1, self.delta))
        return Noise(epsilon1=epsilon1, epsilon2=self.epsilon2, threshold=theta)

    def run_on(self, oracle: QueryAccess, rng: np.random.Generator) -> Finding:
        """Run the attack on a simulated system or the user's own."""
        if self.method == "weighing":
            return adaptive_attack(oracle, rng, copies=self.copies)
        if self.support is not None:
            return reconstruct_supported(oracle, self.support, delta=self.delta, copies=self.copies or 1)
        return reconstruct(oracle, copies=self.copies or 1)


def run(options: Options, arguments: SimpleNamespace) -> AttackResult | None:
    """The result of an attack on the user's own system or a simulated system; None if the questions wait in a file.

    Raises `BadInput`.
    """
    options.check(arguments)
    truth, noise = _truth(options), options.noise
    cells = options.cells if truth is None else len(truth)
    assert cells is not None

    def attack(asking: Asking[Signs], seed: int) -> Finding | None:
        # The same questions in a file with --oracle and without.
        together = QUESTIONS_AT_ONCE if options.ask is None else FILE_QUESTIONS_AT_ONCE
        try:
            return options.run_on(QueryAccess(asking.ask, cells, noise, together=together), np.random.default_rng(seed))
        except AttackStopped:
            return None

    shares: list[float] = []  # the share of right counts in each attack on a simulated system

    def simulate(seed: int, _: object) -> Finding:
        """The finding of the first of `repeat` attacks, or of fewer if the time is over."""
        assert truth is not None
        assert options.epsilon is not None
        assert noise.epsilon1 is not None
        deadline, findings = options.deadline(), list[Finding]()
        while not findings or (len(findings) < options.repeat and deadline.left):
            rng = np.random.default_rng([seed, len(findings)])
            oracle = ThresholdOracle(
                truth,
                rng,
                epsilon1=noise.epsilon1,
                epsilon2=noise.epsilon2,
                threshold=noise.threshold,
                epsilon_totals=options.epsilon - noise.epsilon1 or None,
            )
            findings.append(options.run_on(oracle, rng))
            shares.append(findings[-1].right(truth) / len(truth))
        return findings[0]

    settings = {
        "cells": cells,
        "epsilon2": options.epsilon2 if math.isfinite(options.epsilon2) else None,
        "support": options.support,
        "copies": options.copies,
    }
    ended = run_attack(options, FORM, settings, attack, simulate)
    if ended is None:
        return None
    values: dict[str, Any] = {**settings, "method": options.method}
    rows: list[tuple[str, str | None]] = []
    if ended.asked is None:
        data = options.data or "randhie mdvis"
        values |= {"data": data, "epsilon": options.epsilon, "epsilon1": noise.epsilon1}
        budget = f"ε = {options.epsilon:g}: ε₁ = {noise.epsilon1:g} for the threshold; ε₂ = {noise.epsilon2:g}"
        rows = [("data", data), ("budget", budget)]
        if options.repeat > 1:
            values["fraction_right"] = {"mean": float(np.mean(shares)), "least": min(shares), "attacks": len(shares)}
            right = f"{np.mean(shares):.4f} of {cells} counts right in the mean of {len(shares)} attacks"
            rows.append(("repeated", f"{right} (least {min(shares):.4f}); the first attack:"))
    finding = ended.found
    if finding is not None:
        values["basis"] = _basis(finding, options)
        rows += _claims_rows(finding, values["basis"])
        if truth is not None:
            values["claimed_right"] = int(right_claims(finding, truth).sum())
            right = f"{finding.right(truth)} of {cells} counts are right, {values['claimed_right']} of the claimed"
            rows.append(("truth", f"{right}{' up to the factor' if finding.up_to_factor else ''}"))
    heading = f"counts of {cells} cells through private threshold testing: {options.method}"
    return AttackResult(
        ended=ended, finding=finding, truth=truth, parts="cell", values=values, heading=heading, rows=rows
    )


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


def _claims_rows(finding: Finding, basis: str) -> LabelledLines:
    """Rows of text: the number of claimed counts, their probability, their factor, and the first counts."""
    if not finding.claimed.any():
        return [("claimed", basis)]
    confidence, number_claimed = finding.probability.max(), finding.claimed.sum()
    first = zip(finding.guess[:PRINTED_COUNTS].tolist(), finding.claimed.tolist(), strict=False)
    more = ", …" if len(finding.guess) > PRINTED_COUNTS else ""
    factor = "these counts times one whole number explain all answers as well (1 unless they have a common divisor)"
    return [
        ("claimed", f"{number_claimed} counts, each with confidence {confidence:.6f}: {basis}"),
        ("histogram", "the counts that the system uses: if they are rounded, capped or noisy, so are these counts"),
        ("factor", factor if finding.up_to_factor else None),
        ("counts", ", ".join(str(count) if claimed else "?" for count, claimed in first) + more),
    ]


def _truth(options: Options) -> CellCounts | None:
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


def visits() -> CellCounts:
    """The numbers of people-years of the RAND experiment with 0, 1, 2, … visits to a doctor, shape (78,)."""
    return np.bincount(np.array(randhie("mdvis")["mdvis"], np.int64))


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
        CliOption("--epsilon", type=number, help="the whole budget ε of the simulated system"),
        CliOption("--epsilon2", type=_positive, help="ε₂ of the query noise (default inf: none)"),
        CliOption(
            "--adaptive",
            is_flag=True,
            help="compare sums of cells chosen from the answers so far (always with --oracle)",
        ),
        CliOption(
            "--support",
            type=whole,
            metavar="K",
            help="every count from 0 to K occurs: only Algorithm 3, with all of ε; not with --adaptive",
        ),
        CliOption("--copies", type=whole, help="copies of each query, for finite ε₂ (default 1; adaptive: by ε₂)"),
        CliOption("--repeat", type=whole, metavar="N", help="attacks, each on a new simulated system (default 1)"),
        CliOption("--delta", type=number, help="θ = ⌈ln(1/δ)/ε₁⌉, not adaptive (default 0.05)"),
        *oracle_options("an int8 array, −1, 0 or +1 for each cell,", "True if this sum of cells reaches the threshold"),
        CliOption("--cells", type=whole, metavar="N", help="cells of your system's histogram (default: of --data)"),
        CliOption("--epsilon1", type=number, help="ε₁ of your system's threshold noise, for --support"),
    ]
    add_attack_command(
        commands,
        family,
        Options,
        run,
        parameters,
        simulated=("epsilon", "repeat"),
        own=(*OWN_SYSTEM_OPTIONS, "cells", "epsilon1"),
        examples=examples,
        description="Asks private threshold testing about a histogram, simulated or of your own, and guesses every "
        "count from the answers.",
    )


def _positive(text: str) -> float:
    return math.inf if text in ("inf", "∞") else number(text)
