"""`dpwitness attack threshold_testing` reads a histogram's counts through private threshold testing.

The system is the user's own, or the bundled `ThresholdOracle`, attacked several times. An attack sees `Queries` alone.
"""

import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace
from typing import Final

import numpy as np

from dpwitness.cli import options as shared
from dpwitness.cli.command import Option
from dpwitness.cli.output import check_places
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
from dpwitness.reconstruction.report import Asked, EndedAttack, Finding, Result, draw_claims, finding_json
from dpwitness.reconstruction.threshold_testing.attack import (
    Reconstruction,
    adaptive_attack,
    reconstruct,
    reconstruct_supported,
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

#: The smallest ε (nats): the noise of a smaller ε does not fit into whole numbers of 64 bits.
SMALLEST_EPSILON: Final = 1e-12
#: The largest number of cells: a question takes a byte a cell.
LARGEST_CELLS: Final = 10**7
#: The largest number of simulated attacks of one command: more attacks would take days.
MOST_ATTACKS: Final = 1_000_000
#: The largest count, in people, of the cells that are also scored by themselves, as in the paper's Table 3.
SMALL_COUNT: Final = 5
#: The number of counts that a report on the user's own system prints; its JSON has all counts.
PRINTED_COUNTS: Final = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(AttackOptions):
    """The options of the command."""

    data: str | None = None
    column: str | None = None
    workers: int | None = None
    epsilon2: float = math.inf
    adaptive: bool = False
    support: int | None = None
    copies: int | None = None
    delta: float = 0.05
    epsilon: float = math.nan
    share: float = 0.5
    beta: float | None = None
    repeat: int = 10
    cells: int | None = None
    epsilon1: float | None = None

    def check(self, given: SimpleNamespace) -> None:
        """Raise `InvalidParameter` for options that are out of range, or have no meaning for the attacked system."""
        if self.own_system:
            simulated = ("epsilon", "share", "beta", "repeat")
            refuse(given, simulated, "is of the simulated system: leave it out where you attack your own")
            if self.cells is not None and not 2 <= self.cells <= LARGEST_CELLS:
                raise InvalidParameter(f"--cells {self.cells} must be from 2 to {LARGEST_CELLS}")
        else:
            self._check_simulated(given)
        if not self.epsilon2 >= SMALLEST_EPSILON:
            raise InvalidParameter(
                f"--epsilon2 {self.epsilon2:g} must be at least {SMALLEST_EPSILON:g}, "
                "or inf for no noise on the queries"
            )
        if self.copies is not None and not 1 <= self.copies <= MOST_COPIES:
            raise InvalidParameter(f"--copies {self.copies} must be from 1 to 10^12")
        if self.is_adaptive and self.copies is not None and math.isinf(self.epsilon2):
            raise InvalidParameter(
                "--copies says nothing where queries have no noise: give --epsilon2, or leave it out"
            )
        if self.is_adaptive and given.delta is not None:
            raise InvalidParameter("--delta is of Algorithms 3 and 4, not of the adaptive attack: leave it out")

    def _check_simulated(self, given: SimpleNamespace) -> None:
        if given.epsilon is None:
            raise InvalidParameter("--epsilon is needed: the budget of the simulated system (or give --oracle)")
        refuse(given, ("cells", "epsilon1"), "is of your own system: give --oracle, or --ask FILE, too")
        if not self.epsilon >= SMALLEST_EPSILON:
            raise InvalidParameter(f"--epsilon {self.epsilon:g} must be at least {SMALLEST_EPSILON:g}")
        if not 1 <= self.repeat <= MOST_ATTACKS:
            raise InvalidParameter(f"--repeat {self.repeat} must be from 1 to {MOST_ATTACKS}")
        if not 0 < self.share < 1:
            raise InvalidParameter(f"--share {self.share:g} must lie between 0 and 1")
        if given.share is not None and self.support is not None:
            raise InvalidParameter("--share has no meaning with --support, which asks for no totals: leave it out")
        if self.adaptive and self.beta is not None:
            raise InvalidParameter("--beta is of Algorithms 3 and 4: the adaptive attack chooses its copies by ε₂")

    @property
    def is_adaptive(self) -> bool:
        """Whether the attack is adaptive: by --adaptive, and on the user's own system always without --support."""
        return self.support is None if self.own_system else self.adaptive

    @property
    def threshold_share(self) -> float:
        """The share of the simulated system's ε for the threshold, in (0, 1]; the totals have the rest."""
        return self.share if self.support is None else 1.0

    @property
    def threshold_epsilon(self) -> float | None:
        """ε₁ of the threshold's noise, in nats; None if the user's system has an unknown ε₁."""
        return self.epsilon1 if self.own_system else self.threshold_share * self.epsilon

    def run_on(self, oracle: Queries, rng: np.random.Generator) -> Reconstruction:
        """Run the attack that the options choose, on a simulated system or the user's own."""
        if self.is_adaptive:
            return adaptive_attack(oracle, rng, copies=self.copies)
        if self.support is not None:
            return reconstruct_supported(oracle, self.support, delta=self.delta, copies=self.copies or 1)
        return reconstruct(oracle, copies=self.copies or 1)


def run(arguments: SimpleNamespace) -> int:
    """Run the command; return its exit code. Bad input raises."""
    shared.require_one(arguments, "adaptive", "support")
    shared.require_one(arguments, "copies", "beta")
    options = settings_of(Options, arguments)
    options.require_own_system()
    if options.column and not options.data:
        raise InvalidData("--column says which column of --data: give --data FILE.csv too")
    check_places(arguments)  # before the attacks, not after them
    options.check(arguments)
    return finish(arguments, attack_system(options))


def attack_system(options: Options) -> Result | None:
    """Attack the user's own system, or simulated systems; None where the questions wait in a file.

    The command makes --repeat attacks on simulated systems, or fewer if the time is over, but at least one. Attack k
    draws from the stream [seed, k], on any thread.
    """
    truth = _truth(options)
    cells = options.cells if truth is None else len(truth)
    assert cells is not None
    if options.beta is not None:
        options = replace(options, copies=copies_for(options.beta, cells**2, epsilon2=options.epsilon2))
    theta = 0.0  # Algorithm 3 needs the θ of Lemma 5.10
    if not options.is_adaptive and options.threshold_epsilon is not None:
        theta = float(attack_threshold(options.threshold_epsilon, options.delta))
    noise = Noise(epsilon1=options.threshold_epsilon, epsilon2=options.epsilon2, threshold=theta)

    def attack(asking: Asking[Signs], seed: int) -> tuple[list[Reconstruction], str | None]:
        in_file = options.ask is not None or options.answers is not None  # the same questions with --oracle and without
        # Where a person answers in a file, another round costs more than many more questions.
        oracle = Queries(asking.ask, cells, noise, together=64 if in_file else QUESTIONS_AT_ONCE)
        try:
            return [options.run_on(oracle, np.random.default_rng(seed))], None
        except AttackStopped as stopped:
            return [], str(stopped)

    def simulate(seed: int, progress: Progress | None) -> list[Reconstruction]:
        assert truth is not None
        deadline, workers, found = options.deadline(), options.workers or os.cpu_count() or 1, list[Reconstruction]()

        def attack_once(k: int) -> Reconstruction:
            rng, epsilon1 = np.random.default_rng([seed, k]), options.threshold_share * options.epsilon
            totals = (1 - options.threshold_share) * options.epsilon or None
            oracle = ThresholdOracle(
                truth, rng, epsilon1=epsilon1, epsilon2=options.epsilon2, threshold=theta, epsilon_totals=totals
            )
            return options.run_on(oracle, rng)

        with ThreadPoolExecutor(workers) as threads:
            # Each thread runs one attack at a time, so an interruption waits for at most one attack a thread.
            while not found or (len(found) < options.repeat and deadline.left):
                numbers = range(len(found), min(len(found) + workers, options.repeat))
                found += threads.map(attack_once, numbers)
                if progress is not None:
                    right, _ = score(truth, found[-1].guess, SMALL_COUNT)
                    progress("attack", len(found), options.repeat, f"{right:.4f} right")
        return found

    settings = {
        "cells": cells,
        "epsilon2": options.epsilon2 if math.isfinite(options.epsilon2) else None,
        "support": options.support,
        "copies": options.copies,
    }
    ended = run_attack(options, FORM, settings, attack, simulate)
    if ended is None:
        return None
    if ended.asked is not None:
        return _own_result(ended, ended.asked, options, cells, truth)
    assert truth is not None
    return _simulated_result(ended, options, truth)


def _own_result(
    ended: EndedAttack[list[Reconstruction]], asked: Asked, options: Options, cells: int, truth: Counts | None
) -> Result:
    found = ended.found[0] if ended.found else None
    finding = None if found is None else found.finding
    because = None if found is None else _reason(found, options.support)
    values = {
        **asked.to_json(),
        "cells": cells,
        "support": options.support,
        **finding_json(finding, truth),
        "basis": because,
        "method": None if found is None else found.method,
        "factor_at_most": None if found is None else found.factor_at_most,
    }
    rows: list[tuple[str, str | None]]
    if found is None or finding is None or because is None:
        rows = [("stopped", f"{asked.stopped}; no count is claimed before the test at the end")]
    else:
        rows = _claims_rows(found, finding, because)
        if truth is not None:
            right, scaled = finding.right(truth), int(found.right_claims(truth).sum())
            up_to_factor = f"; up to a factor {scaled} of them" if finding.up_to_factor else ""
            rows.append(("truth", f"{right} of {cells} counts of --data are right{up_to_factor}"))
            values["right_up_to_factor"] = scaled
    return Result(
        ended=ended,
        values=values,
        heading=f"counts of {cells} cells through {asked.text}",
        rows=rows,
        draw=None if finding is None else partial(draw_claims, finding=finding, truth=truth, parts="cell"),
    )


def _reason(found: Reconstruction, support: int | None) -> str:
    """The reason for the claims, or for no claim; `support`: k of Theorem 5.12, None for the adaptive attack."""
    if found.known.any():
        if support is None:
            return "fresh sums next to the threshold came as predicted"
        return f"Theorem 5.12, if every count up to {support} occurs and ε₁ is right"
    if found.contradicted:
        return f"none: {found.contradicted[0]}"
    return "none: the counts did not pass the attack's own test"


def _claims_rows(found: Reconstruction, finding: Finding, because: str) -> list[tuple[str, str | None]]:
    """Rows of text: the number of claimed counts, their probability, their factor, and the first counts."""
    if not finding.claimed.any():
        return [("claimed", because)]
    rows: list[tuple[str, str | None]] = [
        (
            "claimed",
            f"{finding.claimed.sum()} counts by {found.method}, each with confidence {found.confidence:.6f}: {because}",
        ),
        ("histogram", "the counts that the system uses: if they are rounded, capped or noisy, so are these counts"),
    ]
    if finding.up_to_factor:
        limit = found.factor_at_most
        at_most = "" if limit is None else f", at most {limit:.3g} with confidence 0.95"
        text = (
            "readable up to a factor: these counts times one whole number, the same for all cells, explain all answers "
            f"as well (it is 1 unless the counts have a common divisor{at_most})"
        )
        rows.append(("factor", text))
    first = zip(finding.guess[:PRINTED_COUNTS].tolist(), finding.claimed.tolist(), strict=False)
    more = ", …" if len(finding.guess) > PRINTED_COUNTS else ""
    return [*rows, ("counts", ", ".join(str(count) if claimed else "?" for count, claimed in first) + more)]


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


def _average(values: Sequence[float]) -> dict[str, float | None]:
    """The mean of fractions, its standard error and the least fraction as JSON values; None where not defined."""
    if math.isnan(values[0]):  # the fractions of no cells
        return {"mean": None, "standard_error": None, "least": None}
    error = float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else None
    return {"mean": float(np.mean(values)), "standard_error": error, "least": float(np.min(values))}


def _average_text(average: Mapping[str, float | None], cells: int) -> str:
    """An average of `_average` as text; `cells`: the number of cells of which it is a fraction."""
    mean, error, least = average.values()
    if mean is None:
        return "none"
    return f"{mean:.4f}{'' if error is None else f' ± {error:.4f}'} of {cells} exactly right (least {least:.4f})"


def _simulated_result(ended: EndedAttack[list[Reconstruction]], options: Options, counts: Counts) -> Result:
    """The result of attacks on simulated systems, whose counts are known."""
    found, cells, epsilon1 = ended.found[-1], len(counts), options.threshold_epsilon
    finding, repeat = found.finding, len(ended.found)
    scores = [score(counts, one.guess, SMALL_COUNT) for one in ended.found]
    methods = Counter(one.method for one in ended.found)
    share_claimed = float(np.mean([one.known.mean() for one in ended.found]))
    wrong = sum(int(np.sum(one.known & (one.guess != counts))) for one in ended.found)
    queries_per_cell = sum(one.queries for one in ended.found) / repeat / cells
    right, right_small = map(_average, zip(*scores, strict=True))
    small, infinite = int((counts <= SMALL_COUNT).sum()), math.isinf(options.epsilon2)
    data = options.data or "randhie mdvis"
    how = "ordered partition (Algorithms 3 and 4)"
    if options.adaptive:
        how = "adaptive weighing"
    elif options.support is not None:
        how = f"ordered partition (Algorithm 3), all counts up to {options.support} known to occur"
    epsilon2 = "∞" if infinite else f"{options.epsilon2:g}"
    rows: list[tuple[str, str | None]] = [
        ("budget", f"ε = {options.epsilon:g}, of which ε₁ = {epsilon1:g} for the threshold; ε₂ = {epsilon2}"),
        ("all cells", _average_text(right, cells)),
        (f"cells ≤ {SMALL_COUNT}", _average_text(right_small, small)),
    ]
    if share_claimed:
        text = f"{share_claimed:.4f} of all cells (in the last attack with confidence {found.confidence:.4f})"
        rows.append(("claimed", f"{text}, {wrong or 'none'} of them wrong"))
    failed = sum(number for method, number in methods.items() if "weighing" not in method)
    if options.adaptive and failed:
        text = f"in {failed} attacks the weighing did not pass its own test: Algorithm 4 instead"
        rows.append(("fallback", text))
    copies = "" if options.copies is None else f", {options.copies:,} copies of each"
    out_of_time = repeat < options.repeat
    rows += [
        ("queries", f"{queries_per_cell:,.1f} threshold queries a cell{copies}"),
        ("repeated", f"{repeat} attacks{', then the time was over' if out_of_time else ''}"),
    ]
    return Result(
        ended=ended,
        values={
            "data": data,
            "cells": cells,
            "small_cells": small,
            "epsilon": options.epsilon,
            "epsilon1": epsilon1,
            "epsilon2": None if infinite else options.epsilon2,
            "epsilon2_infinite": infinite,
            "adaptive": options.adaptive,
            "support": options.support,
            "copies": options.copies,
            **finding_json(finding, counts),
            "repeat": repeat,
            "out_of_time": out_of_time,
            "methods": dict(sorted(methods.items())),
            "fraction_right": right,
            "fraction_right_small": right_small,
            "fraction_claimed": share_claimed,
            "claimed_wrong": wrong,
            "queries_per_cell": queries_per_cell,
        },
        heading=f"counts of {data} through private threshold testing: {how}",
        rows=rows,
        draw=partial(draw_claims, finding=finding, truth=counts, parts="cell"),
    )


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
        Option("--share", type=number, help="share of ε for the threshold, the rest for noisy totals (default 0.5)"),
        Option("--repeat", type=whole, help="number of attacks (default 10)"),
        *oracle_options("an int8 array, −1, 0 or +1 for each cell,", "True if this sum of cells reaches the threshold"),
        Option("--cells", type=whole, metavar="N", help="cells of your system's histogram (default: of --data)"),
        Option("--epsilon1", type=number, help="ε₁ of your system's threshold noise, if you know it"),
    ]
    add_attack_command(
        commands,
        family,
        run,
        parameters,
        examples=examples,
        description="Asks private threshold testing about a histogram, simulated or of your own, and guesses every "
        "count from the answers.",
        workers="number of threads, one attack on each (default: all cores)",
    )


def _positive(text: str) -> float:
    if text in ("inf", "∞"):
        return math.inf
    return number(text)
