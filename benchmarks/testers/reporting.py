"""The output of a tester: a JSON object a mechanism, with the CPU time of this process and its children."""

import json
import os
from collections.abc import Callable
from typing import Any

from mechanisms import CASES, Case

#: The claimed ε (nats), from StatDP's own benchmark.
EPSILON = 0.7
#: The level of each test.
LEVEL = 0.05


def report(tester: Callable[[Case], dict[str, Any]], names: list[str]) -> None:
    """Ask a tester about each mechanism, and print its answers {"refuted": …, "found": a text} as JSON."""
    for name in names:
        before = os.times()
        try:
            answer = tester(CASES[name])
        except Exception as error:  # of any kind: the next mechanism is tried
            answer = {"refuted": None, "found": f"{type(error).__name__}: {error}"}
        after = os.times()
        seconds = sum(after[:4]) - sum(before[:4])
        print(json.dumps({"mechanism": name, "cpu_seconds": round(seconds, 2), **answer}), flush=True)


def pairs(case: Case) -> list[tuple[list[int], list[int]]]:
    """The input pairs of Ding et al. 2018, Table 1, for testers that need given pairs."""
    n = case.inputs
    if case.differ == "bit":
        return [([0], [1])]
    ones = [1] * n
    found = [(ones, [0, *ones[1:]]), (ones, [2, *ones[1:]])]
    if case.differ == "all":
        half = n // 2
        found += [
            (ones, [2] + [0] * (n - 1)),
            (ones, [0] + [2] * (n - 1)),
            (ones, [2] * half + [0] * (n - half)),
            (ones, [2] * n),
            (ones, [0] * n),
            ([1] * half + [0] * (n - half), [0] * half + [1] * (n - half)),
        ]
    return found
