"""The command `sweep`: a check of every claim in modules, each in its own process."""

from types import SimpleNamespace
from typing import Final

import click

from dpwitness.cli.command import CODE, KEPT_FILE, READ_FILE, Argument, CliOption, Subcommand
from dpwitness.cli.console import INTERRUPTED, NOT_REFUTED, VIOLATED, say
from dpwitness.cli.options import printing
from dpwitness.cli.values import number, seconds, whole
from dpwitness.options import MOST_WORKERS


def run(arguments: SimpleNamespace) -> int:
    """List the cases, run them and print the table; the exit code is 1 if a claim is refuted."""
    from dpwitness.cli.output import hand_over
    from dpwitness.problem import Effort
    from dpwitness.sweeps.sweep import Sweep, text_of
    from dpwitness.sweeps.sweep import run as run_cases
    from dpwitness.sweeps.worker import REFUTED, CaseResult

    effort = Effort(alpha=arguments.alpha, max_time=arguments.max_time, seed=arguments.seed)
    found = Sweep.of(arguments.modules, effort, arguments.python)
    if arguments.list:
        names = [case.name + (f": {case.refused}" if case.refused else "") for case in found.cases]
        names += [f"no case in {name}: {why}" for name, why in found.without.items()]
        return hand_over(arguments, NOT_REFUTED, found.to_json, lambda: "\n".join(names))

    def report(result: CaseResult, done: int, size: int) -> None:
        if not arguments.quiet:
            say(f"{done} of {size}: {result.case}: {result.status}")

    whole_sweep, results = run_cases(
        found, workers=arguments.workers, output=arguments.output, seed_given=arguments.seed is not None, told=report
    )
    refuted = any(one.status == REFUTED for one in results)
    left = len(whole_sweep.cases) - len(results)
    code = INTERRUPTED if left else VIOLATED if refuted else NOT_REFUTED
    return hand_over(
        arguments,
        code,
        lambda: {"sweep": whole_sweep.to_json(), "results": [one.to_json() for one in results]},
        lambda: text_of(whole_sweep, results),
    )


#: COMMAND is the command `sweep`.
COMMAND: Final = Subcommand(
    "sweep",
    summary="check everything in a module that claims privacy",
    run=run,
    parameters=[
        Argument(
            "modules", "MODULE", "package.module or path/file.py; it is imported, so its code runs", type=CODE,
            nargs=-1, required=True,
        ),
        CliOption("--python", type=READ_FILE, metavar="PATH",
                  help="interpreter of another environment that imports the modules and runs the cases"),
        CliOption("--max-time", type=seconds, metavar="TIME", default=20.0,
                  help="time limit of each case (default 20s)"),
        CliOption("--alpha", type=number, metavar="A", default=1e-3,
                  help="probability of a false alarm of all cases together (default 0.001)"),
        CliOption("--seed", type=whole, metavar="N", help="seed of all random numbers (default: a new seed)"),
        CliOption("--workers", type=click.IntRange(1, MOST_WORKERS), metavar="N", default=2,
                  help="number of cases that run at the same time (default 2)"),
        CliOption("--output", type=KEPT_FILE, metavar="FILE.jsonl",
                  help="write one line for each result; an interrupted sweep goes on from this file"),
        CliOption("--list", is_flag=True, help="list the cases without running them"),
        *printing(save="write all results as JSON at the end"),
    ],
    examples=("sweep diffprivlib.tools", "sweep opendp.measurements --max-time 10 --output sweep.jsonl"),
    exits=(0, 1, 2),
)  # fmt: skip
