"""The commands with their options; slow imports are made when a command runs, so that help comes at once."""

from collections.abc import Sequence
from functools import partial
from importlib.metadata import version
from types import SimpleNamespace
from typing import Final

import click

from dpwitness.cli import compare, doctor, init, one_run, options, sweep
from dpwitness.cli.command import READ_FILE, WRITTEN_FILE, Argument, CliOption, Group, Subcommand, text_option
from dpwitness.cli.console import NOT_REFUTED, live, say, session, show
from dpwitness.errors import UnknownTarget
from dpwitness.options import options_of


class Attacks(Group):
    """The group of attacks, one command for each registered family; other packages may register families."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the families that have a command."""
        if not self.commands:
            from dpwitness.proposals import add_commands

            add_commands(self, warn=lambda message: say(f"warning: {message}"))
        return super().list_commands(ctx)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a family; None for an unknown family."""
        self.list_commands(ctx)
        return super().get_command(ctx, cmd_name)


def program() -> Group:
    """The command line: the group of all commands."""
    top = Group("dpwitness", summary="finds and proves violations of differential privacy", parameters=[VERSION])
    others = (module.COMMAND for module in (sweep, compare, init, doctor))
    for made in (LIST, *API_COMMANDS, one_run.COMMAND, PAGE, *others):
        top.add_command(made)
    top.add_command(Attacks("attack", summary="run an attack on data and report what it recovers"))
    return top


def _make_command(
    name: str,
    summary: str,
    *examples: str,
    exits: tuple[int, ...] = (0, 1, 2),
    more: Sequence[click.Parameter] = (),
    inputs: str = "inputs (default: the target's own relation)",
) -> Subcommand:
    """A command that calls the public function of its name; `more`: options that only this command has."""
    own = options.WITNESS if name == "replay" else options.TARGET
    own = [*own, *options.PROGRAMS, *options.of_function(name), *options.printing(), *more, *options.inputs(inputs)]
    return Subcommand(name, summary=summary, run=run_function, parameters=own, examples=examples, exits=exits)


def run_function(arguments: SimpleNamespace) -> int:
    """Call the public function of the command's name and print or save its result; return the exit code."""
    import dpwitness as dpw
    from dpwitness.cli.inputs import call_of, check_mechanism, take_settings
    from dpwitness.cli.output import exit_code, hand_over
    from dpwitness.report.plots import plot
    from dpwitness.results.verdict import replay_text

    name = arguments.command
    check_mechanism(arguments)
    take_settings(arguments)
    given, named = call_of(arguments)
    # The time limit of a curve is the limit of each line.
    seconds = None if name == "curve" else arguments.max_time or options_of(name)["max_time"].default
    with live(quiet=arguments.quiet, seconds=seconds) as progress:
        result = getattr(dpw, name)(*given, **named, progress=progress)

    def report() -> str:
        if name == "check":
            seed = ["--seed", str(result.seed)] if arguments.seed is None else []
            kept = arguments.keep is not None  # the file has changed
            again = [] if kept else ["dpwitness", *session().given, *seed]
            return str(result.report(details=arguments.details, reproduce=again))
        return replay_text(given[0], result, details=arguments.details) if name == "replay" else str(result)

    code = exit_code(result)
    return hand_over(
        arguments,
        code,
        result.to_json,
        report,
        plot=partial(plot, result),
    )


def write_report(arguments: SimpleNamespace) -> int:
    """Write the page of saved results."""
    from dpwitness.files import write_atomically
    from dpwitness.report.files import report

    write_atomically(arguments.output, report(arguments.results))
    return NOT_REFUTED


def list_targets(arguments: SimpleNamespace) -> int:
    """Print a line for each bundled target and each target of another package."""
    from dpwitness.files import json_text
    from dpwitness.mechanisms.catalog import load_registered, registered
    from dpwitness.results.text import table
    from dpwitness.targets import target_of

    rows = []
    for name in registered():
        try:
            target = target_of(load_registered(name))
        except (UnknownTarget, SystemExit) as error:  # one broken package must not hide all other packages
            say(f"warning: {error if isinstance(error, UnknownTarget) else f'target {name!r} exits on import'}")
            continue
        if target is not None:
            names = ("claim", "true_epsilon", "source")
            rows.append({"name": name} | {one: getattr(target, one) for one in names})
    cells = [tuple(row.values()) for row in rows]
    show(json_text(rows) if arguments.json else table(("TARGET", "CLAIM", "TRUE ε", "SOURCE"), cells))
    return NOT_REFUTED


#: API_COMMANDS has the commands that call the public functions of their names.
API_COMMANDS: Final = [
    _make_command(
        "check",
        "look for a violation of a claim and prove it",
        "check isvt3 --epsilon 0.7",
        "check mine.py:noisy_sum --epsilon 1 --pair '[1, 1]' '[2, 1]'",
        "check mine.py:mean_age --epsilon 1 --records people.csv --domain age=0:120",
        "check mine.py:answers --epsilon 1 --attack threshold_testing",
        "check gaussian_mechanism --epsilon 1 --claim zcdp:0.1",
        "check histogram --epsilon 1 --claim 0.5 --data counts.csv --column count --save result.json",
        more=[options.DETAILS],
    ),
    _make_command(
        "bound",
        "find the largest ε, ρ or μ that a mechanism can be shown to exceed",
        "bound svt --epsilon 0.7 --runs 2e7 --alpha 0.001",
        "bound mine.py:noisy_sum --epsilon 1 --queries 2",
        "bound gaussian_mechanism --epsilon 1 --claim gdp:1",
        exits=(0, 2),
    ),
    _make_command(
        "profile",
        "compute a lower band of the privacy profile δ(ε), for all ε at once",
        "profile gaussian_mechanism --epsilon 1 --plot profile.svg",
        "profile gaussian_mechanism --epsilon 4 --claim gdp:0.8 --save result.json",
        "profile mine.py:noisy_sum --epsilon 1 --queries 2",
        more=[options.PLOT],
    ),
    _make_command(
        "curve",
        "compute p-values against test ε, as in the figures of Ding et al. 2018",
        "curve svt --epsilon 0.7 --claims 0.1,0.5,1",
        "curve histogram --epsilon 0.2,0.7,1.5 --claims 0.1:2.0:0.1 --plot curve.svg",
        "curve gaussian_mechanism --epsilon 4 --claim gdp:1 --claims 0.2:1.2:0.1",
        exits=(0, 2),
        more=[options.PLOT],
    ),
    _make_command(
        "replay",
        "count a saved witness's event on fresh runs",
        "replay result.json",
        "replay result.json --mechanism mine.py:noisy_sum --claim 1 --alpha 1e-9",
        more=[options.DETAILS],
        inputs="inputs: the relation of the claim, which must contain the witness's pair (default the witness's own)",
    ),
]
#: VERSION is the option that shows the version.
VERSION: Final = text_option(("--version",), lambda context: f"dpwitness {version('dpwitness')}", "show the version")
#: LIST is the command `list`.
LIST: Final = Subcommand(
    "list",
    summary="list the bundled targets, their claims, their true ε",
    run=list_targets,
    parameters=[CliOption("--json", is_flag=True, help="print JSON")],
    examples=("list", "list --json"),
)
#: PAGE is the command `report`.
PAGE: Final = Subcommand(
    "report",
    summary="draw saved results as one HTML page",
    run=write_report,
    parameters=[
        Argument("results", "RESULT.json", "a file written by --save or --dp-report (-: standard input)",
                 type=READ_FILE, nargs=-1, required=True),
        options.IMPORT,
        CliOption("-o", "--output", type=WRITTEN_FILE, metavar="FILE", required=True,
                  help="the page to write, a single file"),
    ],
    examples=("report result.json -o report.html", "report pass.json curve.json profile.json -o audit.html"),
)  # fmt: skip
