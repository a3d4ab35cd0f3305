"""Calls of released libraries, at their claim and at a part of it: `python benchmarks/library_calls.py [NAME …]`.

Each is an object or a function as somebody has it, with neighbours as one would give them; the settings are those of
`check`. A line says what came out at the claim, with the least ε that would have been caught as a multiple of the
claim, and what at 0.7 of it. Options: --list, --seed N, --max-time S, --factor F, --only claim | part.
"""

import argparse
import statistics
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

from calls import of_diffprivlib, of_opendp, of_python_dp
from calls.call import Call
from dpwitness import DPWitnessError, Violation, check

CALLS = (*of_diffprivlib.CALLS, *of_opendp.CALLS, *of_python_dp.CALLS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a check came to: a word for it, the ε that it showed or would have caught, seconds, and its text."""

    word: str  # "refuted", "passed" or the name of an error
    epsilon: float
    seconds: float
    text: str


def checked(call: Call, factor: float, *, seed: int, max_time: float) -> Found:
    """Check a call at so many times its claim."""
    began = time.monotonic()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            verdict = check(
                call.make(), claim=call.claim(factor), neighbours=call.neighbours, outcome=call.outcome, seed=seed,
                max_time=max_time,
            )  # fmt: skip
    except ImportError as error:
        return Found(word="skipped", epsilon=float("nan"), seconds=0.0, text=str(error))
    except DPWitnessError as error:
        return Found(word=type(error).__name__, epsilon=float("nan"), seconds=time.monotonic() - began, text=str(error))
    refuted = isinstance(verdict, Violation)
    epsilon = verdict.epsilon_lower_bound if refuted else verdict.detectable_epsilon
    return Found(
        word="refuted" if refuted else "passed", epsilon=epsilon, seconds=time.monotonic() - began, text=str(verdict)
    )


def show(call: Call, factor: float, found: Found, *, verbose: bool) -> None:
    """Write one line; all of a verdict where it is not as expected, or where it is asked for."""
    scale = call.epsilon or 1.0
    expected = found.word in (("passed",) if factor == 1 else ("refuted",) if call.tight else ("refuted", "passed"))
    print(
        f"{call.name:45} × {factor:<4g} {found.word:18} ε {found.epsilon / scale:6.3f} × claim {found.seconds:6.1f} s"
        f"{'' if expected else '   UNEXPECTED'}",
        flush=True,
    )
    if verbose or not expected:
        print("    " + found.text.replace("\n", "\n    "), flush=True)


def summary(found: Sequence[tuple[Call, float, Found]]) -> str:
    """The counts, and the median of what would have been caught."""
    at = [(call, one) for call, factor, one in found if factor == 1]
    below = [(call, one) for call, factor, one in found if factor != 1 and call.tight]
    caught = [one.epsilon / call.epsilon for call, one in at if one.word == "passed" and call.epsilon]
    errors = sum(one.word not in ("passed", "refuted", "skipped") for _, _, one in found)
    return (
        f"at the claim: {sum(one.word == 'refuted' for _, one in at)} of {len(at)} refuted; below, where tight: "
        f"{sum(one.word == 'refuted' for _, one in below)} of {len(below)} refuted; errors: {errors}; median "
        f"detectable ε: {statistics.median(caught) if caught else float('nan'):.3f} × claim"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="parts of names; by default all")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--max-time", type=float, default=60.0)
    parser.add_argument("--factor", type=float, default=0.7)
    parser.add_argument("--only", choices=["claim", "part"])
    parser.add_argument("--verbose", action="store_true")
    given = parser.parse_args()
    chosen = [call for call in CALLS if not given.names or any(name in call.name for name in given.names)]
    if given.list:
        print(*(call.name for call in chosen), sep="\n")
        return
    factors = [factor for factor, name in ((given.factor, "part"), (1.0, "claim")) if given.only in (None, name)]
    found = []
    for call in chosen:
        for factor in factors:
            one = checked(call, factor, seed=given.seed, max_time=given.max_time)
            show(call, factor, one, verbose=given.verbose)
            found.append((call, factor, one))
    print(summary(found))


if __name__ == "__main__":
    main()
