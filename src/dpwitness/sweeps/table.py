"""The results of a sweep for people: a table, and the witnesses of what was refuted."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from dpwitness.results.text import table
from dpwitness.sweeps.case import NOT_REFUTED, NOT_RUN, REFUTED, CaseResult
from dpwitness.sweeps.sweep import Sweep

#: Columns of the table.
WIDTH: Final = 80
#: Letters of a reason why a case was not run: an error of a library may be pages long.
LONGEST: Final = 160
ORDER: Final = (REFUTED, NOT_REFUTED, NOT_RUN)


def text_of(sweep: Sweep, results: Sequence[CaseResult], *, interrupted: bool = False) -> str:
    """A line of numbers, the table, and below it the report of each violation."""
    counted = Counter(one.status for one in results)
    left = len(sweep.cases) - len(results)
    head = ", ".join(f"{counted[status]} {status}" for status in ORDER)
    lines = [
        f"{len(sweep.cases)} cases of {', '.join(sweep.modules)}: {head}" + (f", {left} left" if left else ""),
        f"α = {sweep.alpha:g} for all of them, {sweep.alpha / len(sweep.cases):.3g} a case; seed {sweep.seed}",
        *(["interrupted: the same command with the same --output goes on"] if interrupted and left else []),
        "",
        table(("CASE", "RESULT", "WHAT IT SHOWS"), rows(sweep, results), width=WIDTH),
    ]
    for one in results:
        if one.status == REFUTED:
            lines += ["", f"{one.case}; neighbours: {one.adjacency}", str(one.verdict)]
    if counted[NOT_REFUTED]:
        lines += ["", "Not refuted is no proof of privacy."]
    return "\n".join(lines)


def rows(sweep: Sweep, results: Sequence[CaseResult]) -> list[tuple[str, str, str]]:
    """What was refuted first, then the others, then what could not be run."""
    only = sweep.modules[0]
    common = f"{Path(only).stem if only.endswith('.py') else only}." if len(sweep.modules) == 1 else ""
    return [
        (one.case.removeprefix(common), one.status, told(one))
        for status in ORDER
        for one in results
        if one.status == status
    ]


def told(one: CaseResult) -> str:
    """What a case shows, and which inputs were neighbours."""
    text = " ".join(one.told.split())
    text = text if len(text) <= LONGEST else f"{text[:LONGEST]} …"
    return f"{text}; {one.adjacency}" if one.adjacency else text
