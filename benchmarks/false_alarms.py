"""The false alarms of bundled targets that keep their claim: `python benchmarks/false_alarms.py [TARGET …]`.

Each seed is a whole check at α = 0.01 with a search and a test of last bits. The limit is the number of false alarms
that a level of α exceeds in one series of a thousand. Refutations by last bits are counted beside the others: they
concern the floating-point implementation, and are right where noise is drawn in double precision.
"""

import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import dpwitness as dpw
from dpwitness.mechanisms.catalog import load_registered, registered
from dpwitness.targets import target_of
from results import Table, finish, most_false_alarms, parser_of

ALPHA = 0.01
EPSILON = 1.0
#: The beginnings of `true_epsilon` of targets that keep their claim at every setting.
KEEP = ("ε at δ", "below ε", "at most ε", "ρ = ε²/2")
#: Seeds of one task of a process.
CHUNK = 10


def correct_targets() -> list[str]:
    """The names of the bundled targets that keep their claim."""
    found = []
    for name in registered():
        target = target_of(load_registered(name))
        if target is not None and (target.true_epsilon == "ε" or target.true_epsilon.startswith(KEEP)):
            found.append(name)
    return found


def refuted(seed: int, *, name: str, runs: int) -> str:
    """The kind of event by which a check refuted the target, "outcomes" or "bits"; "" if it did not."""
    warnings.simplefilter("ignore")
    verdict = dpw.check(name, epsilon=EPSILON, alpha=ALPHA, runs=runs, seed=seed, workers=1)
    if isinstance(verdict, dpw.Violation):
        return "bits" if verdict.by_bits else "outcomes"
    return "" if verdict.floating_point is None else "bits"


def main() -> None:
    parser = parser_of(__doc__, seeds=500, workers=2)
    parser.add_argument("targets", nargs="*", metavar="TARGET")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--runs", type=int, default=20_000)
    given = parser.parse_args()
    limit = most_false_alarms(given.seeds, ALPHA)
    table, rows = Table("target", "refuted", "by bits", "within the limit", "seconds"), []
    with ProcessPoolExecutor(given.workers) as pool:
        for name in given.targets or correct_targets():
            started = time.perf_counter()
            seeds = range(given.first, given.first + given.seeds)
            found = list(pool.map(partial(refuted, name=name, runs=given.runs), seeds, chunksize=CHUNK))
            counts = {kind: found.count(kind) for kind in ("outcomes", "bits")}
            rows.append({"target": name, "seeds": len(found), **counts, "seconds": time.perf_counter() - started})
            within = "yes" if counts["outcomes"] <= limit else "NO"
            table.add(name, counts["outcomes"], counts["bits"], within, f"{rows[-1]['seconds']:.1f}")
    text = f"Checks of {given.seeds} seeds at α = {ALPHA}; at most {limit} of them may refute a target."
    finish(given, "False alarms", text, table, rows)


if __name__ == "__main__":
    main()
