"""Lower bounds of twenty mechanisms at ε = 0.1, by seed: `python benchmarks/twenty_rows.py --seeds 8 --json FILE`.

The mechanisms and parameters are those of DP-Sniper's evaluation (Bichsel, Steffen, Bogunovic & Vechev 2021), with two
more of threshold testing. Each row has the least, the median and the largest bound of all seeds, their spread
(max − min)/median, the mean CPU seconds of a bound with its search, the best earlier figure, and the truth: "≤" or "≥"
where only a bound of it is known, "∞" where it is infinite or grows with the number of queries. Earlier figures are
lower bounds with 90 % confidence from DP-Sniper's logs (2·10⁸ confirm runs), or StatDP's readings of its curves,
whichever is larger; StatDP's readings of `isvt1` and `histogram_wrong_scale` are left out.

`--json FILE` gets a line after each bound. Bounds that the file has already are not computed again.
"""

import json
import math
import statistics
import time
import warnings
from dataclasses import dataclass, field
from typing import Any

import dpwitness as dpw
from results import Table, finish, parser_of

EPSILON = 0.1


@dataclass(frozen=True, kw_only=True)
class Row:
    """The parameters of a mechanism, the best earlier figure, and the true ε (nats)."""

    parameters: dict[str, Any] = field(default_factory=dict)
    earlier: float = math.nan
    truth: str = "∞"
    has_epsilon: bool = True  # whether ε is a parameter of the mechanism


AT_ONE = {"threshold": 1.0}
ROWS = {
    "laplace_mechanism": Row(earlier=0.100, truth=".1"),
    "truncated_geometric": Row(earlier=0.117, truth=".1178"),
    "histogram": Row(earlier=0.099, truth=".1"),
    "histogram_wrong_scale": Row(earlier=4.602, truth="10"),
    "noisy_max_laplace": Row(earlier=0.0925, truth="≤ .1"),
    "noisy_max_exponential": Row(earlier=0.100, truth=".1"),
    "noisy_max_laplace_value": Row(earlier=0.2488, truth=".25"),
    "noisy_max_exponential_value": Row(earlier=0.3534),
    "svt": Row(parameters={"threshold": 0.5}, earlier=0.0858, truth=".0982"),
    "svt_resampled": Row(parameters=AT_ONE, earlier=0.0859, truth="≤ .1"),
    "isvt4": Row(parameters=AT_ONE, earlier=0.1822),
    "isvt3": Row(parameters=AT_ONE, earlier=0.172, truth=".1748"),
    "isvt1": Row(parameters=AT_ONE, earlier=1.761),
    "isvt2": Row(parameters=AT_ONE, earlier=0.322, truth="≥ .4198"),
    "rappor": Row(earlier=0.3008, truth=".4001", has_epsilon=False),
    "one_time_rappor": Row(earlier=0.5999, truth=".8007", has_epsilon=False),
    "laplace_parallel": Row(earlier=0.0350, truth=".1"),
    "svt_numeric_and_flags": Row(parameters=AT_ONE, earlier=0.2616),
    "prefix_sum": Row(earlier=0.5774, truth="1"),
    "numerical_svt": Row(parameters=AT_ONE, earlier=0.0345, truth="≤ .1"),
    "svt_single_noise": Row(truth=".1492"),
    "gptt_lee_clifton": Row(truth="≥ .6195"),
}


def bounded(name: str, seed: int, runs: int, alpha: float) -> dict[str, Any]:
    """One bound and the CPU seconds that it took."""
    row = ROWS[name]
    claim: dict[str, Any] = {"epsilon": EPSILON} if row.has_epsilon else {"claim": dpw.PureDP(1.0)}
    began = time.process_time()
    found = dpw.bound(name, **claim, parameters=row.parameters, runs=runs, alpha=alpha, seed=seed, workers=1)
    seconds = time.process_time() - began
    return {
        "row": name, "seed": seed, "runs": runs, "alpha": alpha, "seconds": round(seconds, 2),
        "bound": found.epsilon_lower_bound, "event": found.witness.event.describe(), "pair": str(found.witness.pair),
    }  # fmt: skip


def table(results: list[dict[str, Any]]) -> Table:
    found = Table("mechanism", "least", "median", "largest", "spread", "CPU s", "earlier", "true ε", "")
    for name, row in ROWS.items():
        some = [one for one in results if one["row"] == name]
        if some:
            bounds = [one["bound"] for one in some]
            least, middle, most = min(bounds), statistics.median(bounds), max(bounds)
            spread = f"{(most - least) / middle:.1%}" if middle else "–"
            seconds = statistics.mean(one["seconds"] for one in some)
            behind = "behind" if least < row.earlier else ""
            numbers = (f"{one:.4f}" for one in (least, middle, most))
            found.add(name, *numbers, spread, f"{seconds:.1f}", f"{row.earlier:.4f}", row.truth, behind)
    return found


def main() -> None:
    parser = parser_of(__doc__, seeds=8)
    parser.add_argument("--rows", nargs="+", metavar="NAME", choices=ROWS, default=list(ROWS), help="all of them")
    parser.add_argument("--first-seed", type=int, default=0, metavar="K")
    parser.add_argument("--runs", type=int, default=20_000_000, metavar="N", help="confirm runs of each bound")
    parser.add_argument("--alpha", type=float, default=0.1, metavar="A")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    file, given.json = given.json, None  # written here, a line after each bound
    before = file.read_text().splitlines() if file and file.exists() else []
    known = {(one["row"], one["seed"], one["runs"], one["alpha"]): one for one in map(json.loads, before)}
    results = []
    for seed in range(given.first_seed, given.first_seed + given.seeds):
        for name in given.rows:
            one = known.get((name, seed, given.runs, given.alpha))
            if one is None:
                one = bounded(name, seed, given.runs, given.alpha)
                print(f"{name:27s} seed {seed}: {one['bound']:.4f} in {one['seconds']:.1f} s", flush=True)
                if file:
                    with file.open("a") as opened:
                        opened.write(json.dumps(one, ensure_ascii=False) + "\n")
            results.append(one)
    text = f"Bounds of ε at confidence {1 - given.alpha:g} from {given.runs:,} paired runs, {given.seeds} seeds."
    finish(given, "Lower bounds of twenty mechanisms", text, table(results))


if __name__ == "__main__":
    main()
