"""StatDP on the mechanisms: `python run_statdp.py NAME …`, with StatDP on the path.

By StatDP's own settings, 100,000 runs of each side of each of its input pairs choose an event, and 500,000 runs a side
test the event. StatDP gives a p-value for the test ε. Its events are of one or two numbers, so it gets summaries of
outcomes, as its examples compute them.
"""

import sys

import numpy as np
from mechanisms import CASES
from reporting import EPSILON, LEVEL, report
from statdp import ALL_DIFFER, ONE_DIFFER, detect_counterexample


class Summarised:
    """A mechanism with the signature that StatDP asks for; it can be sent to a process."""

    def __init__(self, name):
        self.name = name
        self.__name__ = name

    @property
    def __code__(self):
        """The code of the mechanism, in which StatDP reads the names of the parameters."""
        return CASES[self.name].one.__code__

    def __call__(self, prng, queries, epsilon):
        """The outcome of one run, as a number or a tuple of numbers."""
        case = CASES[self.name]
        outcome = case.one(prng, np.asarray(queries), epsilon)
        found = case.summary(outcome) if case.summary is not None else outcome
        return found if isinstance(found, (int, tuple)) else float(found)


def ask(case):
    """StatDP's p-value of 0.7-DP, and whether it refutes 0.7-DP."""
    options = {"sensitivity": ALL_DIFFER if case.differ == "all" else ONE_DIFFER}
    if case.differ == "bit":
        options = {"databases": ([0], [1])}
    found = detect_counterexample(
        Summarised(case.one.__name__), EPSILON, {"epsilon": EPSILON}, num_input=case.inputs, cores=1, quiet=True,
        loglevel="ERROR", **options,
    )  # fmt: skip
    p = found[0][1]
    return {"refuted": p < LEVEL, "found": f"p = {p:.3g}"}


if __name__ == "__main__":
    report(ask, sys.argv[1:])
