"""`dpwitness attack subset_sum --oracle …`: secret bits out of the answers of the user's own system."""

import argparse
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpwitness.attacks.options import deadline_of
from dpwitness.attacks.oracles.asking import Asking
from dpwitness.attacks.oracles.command import attack_system, described
from dpwitness.attacks.subset_sum.attack import Outcome, Plan, plan, reconstruct
from dpwitness.attacks.subset_sum.oracle import check_error
from dpwitness.attacks.subset_sum.questions import FORM, Subset
from dpwitness.attacks.subset_sum.report import plot_fractions, plot_reconstruction, system_text
from dpwitness.cli.console import NOT_REFUTED
from dpwitness.cli.results import hand_over
from dpwitness.errors import InvalidData, InvalidParameter
from dpwitness.files import read_column, shown

__all__ = ["run_system", "truth_of"]


def truth_of(arguments: argparse.Namespace) -> NDArray[np.int64] | None:
    """The bits of --data, whose number is then --size; None without. Raises `InvalidData` for what are no bits."""
    if arguments.data is None:
        if arguments.column is not None:
            raise InvalidData("--column says which column of --data: give --data FILE.csv too")
        return None
    bits = np.asarray(read_column(arguments.data, arguments.column))
    if not np.isin(bits, (0, 1)).all():
        wrong = bits[~np.isin(bits, (0, 1))][0]
        raise InvalidData(f"{shown(arguments.data)} must hold bits, 0 or 1, and not {wrong:g}")
    if arguments.size not in (None, len(bits)):
        raise InvalidParameter(f"--size {arguments.size} is not that of --data, which has {len(bits)} bits")
    arguments.size = len(bits)
    return bits.astype(np.int64)


def run_system(arguments: argparse.Namespace) -> int:
    """Attack the user's system; the exit code is 0, or 2 for bad input, which raises."""
    truth = truth_of(arguments)
    if arguments.size is None:
        raise InvalidParameter("--size is needed: how many people the subsets are made of")
    planned = _plan(arguments)
    asked: list[Asking[Subset]] = []

    def attack(asking: Asking[Subset], seed: int) -> tuple[Outcome, int]:
        asked.append(asking)
        return reconstruct(asking, seed, planned, deadline_of(arguments)), seed

    started = time.monotonic()
    kind = "all subsets" if planned.every else "random subsets"
    settings = {"size": planned.size, "questions": planned.used + planned.fresh, "kind": kind}
    ended = attack_system(arguments, FORM, settings, attack)
    if ended is None:
        return NOT_REFUTED
    found, seed = ended
    result = _result(arguments, found, truth, asked[0]) | {"seed": seed, "seconds": time.monotonic() - started}
    title = f"{found.expected_right:.1f} of {planned.size} bits right as far as the answers tell"
    return hand_over(
        arguments,
        NOT_REFUTED,
        lambda: result,
        lambda: system_text(result),
        plot=lambda path: (
            plot_fractions(found.found.fractions, path, title)
            if truth is None
            else plot_reconstruction(truth, found.found.fractions, path, title)
        ),
    )


def _plan(arguments: argparse.Namespace) -> Plan:
    """What is asked, from the options. Raises `InvalidParameter` for what does not fit."""
    size, error, law = arguments.size, arguments.error, arguments.law
    if error is not None:
        check_error(error)
    if arguments.adversary == "exponential":
        from dpwitness.attacks.subset_sum.exponential import check_exponential  # numba is slow to import

        check_exponential(size)
        if error is None:
            raise InvalidParameter("--adversary exponential needs --error, by which no answer is wrong by more")
        if arguments.queries is not None:
            raise InvalidParameter("--adversary exponential asks all subsets: leave out --queries")
        if arguments.budget is not None and arguments.budget < 1 << size:
            raise InvalidParameter(f"--budget {arguments.budget} is too small: all subsets are {1 << size} questions")
        return Plan(size=size, used=1 << size, fresh=0, every=True, adversary=arguments.adversary, error=error)
    if error is not None and law is None:
        raise InvalidParameter("--error says nothing of errors of an unknown law: give --law too, or leave it out")
    used, fresh = plan(size, arguments.queries, arguments.budget)
    variance = None
    if law is not None and error is not None:  # of uniform errors E²/3; of rounded ones about that, too
        variance = error**2 / (4 if law in ("binomial", "gaussian") else 3)
    return Plan(
        size=size,
        used=used,
        fresh=fresh,
        adversary=arguments.adversary or (law and _suited(law)),
        variance=None if law == "adversarial" else variance,
    )


def _suited(law: str) -> str:
    from dpwitness.attacks.subset_sum.adversaries import suited

    return suited(law)


def _result(
    arguments: argparse.Namespace, outcome: Outcome, truth: NDArray[np.int64] | None, asking: Asking[Subset]
) -> dict[str, Any]:
    """What the attack says, as JSON values."""
    size, fresh, found = arguments.size, outcome.fresh, outcome.found
    right = None if truth is None else int(np.sum(found.bits == truth))
    return {
        "attack": arguments.attack,
        **described(arguments, asking),
        "adversary": outcome.adversary,
        "size": size,
        "recovered": found.bits.tolist(),
        "fractions": found.fractions.tolist(),
        "confidence": {
            "expected_right": outcome.expected_right,
            "bits": outcome.claims.tolist(),
            "basis": outcome.basis,
            "fresh_questions": fresh and fresh.number,
            "fresh_error": fresh and fresh.error,
            "fresh_error_of_constant": fresh and fresh.constant,
            "halves_agree_on": fresh and fresh.halves,
            "scale": fresh and fresh.scale and fresh.scale.value,
            "scale_error": fresh and fresh.scale and fresh.scale.error,
        },
        "spread": found.spread,
        "offset": found.offset,
        "largest_residual": found.largest_residual,
        "right": right,
        "fraction_right": None if right is None else right / size,
        "stopped": outcome.stopped,
    }
