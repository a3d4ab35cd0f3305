"""The commands: what each takes, and how it runs.

What takes time to import is imported when a command runs, so that help, and errors in options, come at once.
"""

import argparse
import shutil
import sys
from dataclasses import dataclass
from typing import Final

from dpwitness.checks import near
from dpwitness.cli import compare, completion, doctor, init, options, sweep
from dpwitness.cli.console import NOT_REFUTED, for_result, is_terminal, live, say, show
from dpwitness.cli.parser import READ, WRITTEN, Parser, command
from dpwitness.errors import BadInput, UnknownTarget
from dpwitness.options import options_of


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionCommand:
    """A command that calls the public function of its name."""

    summary: str
    examples: tuple[str, ...]
    exits: tuple[int, ...] = (0, 1, 2)
    plot: bool = False
    sarif: bool = False
    inputs: str = "inputs (default: the target's own relation)"


COMMANDS: Final = {
    "check": FunctionCommand(
        summary="look for a violation of a claim and prove it",
        examples=(
            "check isvt3 --epsilon 0.7",
            "check mine.py:noisy_sum --epsilon 1 --pair '[1, 1]' '[2, 1]'",
            "check mine.py:mean_age --epsilon 1 --records people.csv --domain age=0:120",
            "check mine.py:answers --epsilon 1 --attack threshold_testing",
            "check gaussian_mechanism --epsilon 1 --claim zcdp:0.1",
            "check histogram --epsilon 1 --claim 0.5 --data counts.csv --column count --save result.json",
        ),
        sarif=True,
    ),
    "bound": FunctionCommand(
        summary="find the largest ε, ρ or μ that a mechanism can be shown to exceed",
        examples=(
            "bound svt --epsilon 0.7 --runs 2e7 --alpha 0.001",
            "bound mine.py:noisy_sum --epsilon 1 --queries 2",
            "bound gaussian_mechanism --epsilon 1 --claim gdp:1",
        ),
        exits=(0, 2),
    ),
    "profile": FunctionCommand(
        summary="compute a lower band of the privacy profile δ(ε), for all ε at once",
        examples=(
            "profile gaussian_mechanism --epsilon 1 --plot profile.svg",
            "profile gaussian_mechanism --epsilon 4 --claim gdp:0.8 --save result.json",
            "profile mine.py:noisy_sum --epsilon 1 --queries 2",
        ),
        plot=True,
    ),
    "curve": FunctionCommand(
        summary="compute p-values against test ε, as in the figures of Ding et al. 2018",
        examples=(
            "curve svt --epsilon 0.7 --claims 0.1,0.5,1",
            "curve histogram --epsilon 0.2 0.7 1.5 --claims 0.1:2.0:0.1 --plot curve.svg",
            "curve gaussian_mechanism --epsilon 4 --claim gdp:1 --claims 0.2:1.2:0.1",
        ),
        exits=(0, 2),
        plot=True,
    ),
    "replay": FunctionCommand(
        summary="count a saved witness's event on fresh runs",
        examples=(
            "replay result.json",
            "replay result.json --mechanism mine.py:noisy_sum --claim 1 --alpha 1e-9",
        ),
        sarif=True,
        inputs="inputs: the relation of the claim, which must contain the witness's pair (default the witness's own)",
    ),
}
#: The arguments of `check` that change no counts. The seed is said apart.
NOT_REPEATED: Final = frozenset(("help", "traceback", "seed", "workers", "cluster", "save", "json", "quiet", "sarif"))
#: What options were called, and are not any more.
EARLIER: Final = {"--max-runs": "--runs", "--confidence": "--alpha, which is 1 − confidence"}


def parse(given: list[str]) -> argparse.Namespace:
    """Parse a command line; a parsed one has `run`. Raises `BadInput`."""
    top = parser(attacks="attack" in given)  # families take time to import, and may be other packages'
    for text in given:
        if text.startswith("--") and text.endswith("=--"):  # argparse takes this for an option without a value
            top.error(f"{text!r} has no value")
    arguments, unknown = top.parse_known_args(given)
    if unknown:
        name = unknown[0].partition("=")[0]
        meant = f"; give {EARLIER[name]}" if name in EARLIER else near(name, arguments.parser.options, prefix="--")
        others = [command for command, below in top.commands.items() if name in below.options]
        if others and not meant:
            meant = f"; it is an option of {', '.join(others)}"
        arguments.parser.error(f"unrecognized arguments: {' '.join(unknown)}{meant if name.startswith('-') else ''}")
    return arguments


def parser(*, attacks: bool = True) -> Parser:
    """Build the parser of all commands, without those of the attack families unless `attacks`.

    Each sets `run`, which takes the parsed arguments and returns the exit code, and `parser`, itself.
    """
    top = Parser(prog="dpwitness", description="Finds and proves violations of differential privacy.")
    top.add_argument("--version", action="version", version=_version())
    commands = top.add_commands("command", "COMMAND")
    summary = "list the bundled targets, their claims, their true ε"
    targets = command(commands, "list", summary=summary, run=list_targets, examples=("list", "list --json"))
    targets.add_argument("--json", action="store_true", help="print JSON")
    for name, own in COMMANDS.items():
        below = command(commands, name, summary=own.summary, run=run_function, examples=own.examples, exits=own.exits)
        (options.witness if name == "replay" else options.target)(below)
        options.python(below)
        options.program(below)
        options.of_function(below, name)
        if own.plot:
            options.plot(below)
        options.printing(below)
        if own.sarif:
            options.sarif(below)
        options.inputs(below, own.inputs)
    summary = "draw saved results as one HTML page"
    examples = ("report result.json -o report.html", "report pass.json curve.json profile.json -o audit.html")
    page = command(commands, "report", summary=summary, run=write_report, examples=examples)
    page.add_argument(
        "results",
        type=READ,
        metavar="RESULT.json",
        nargs="+",
        help="a file written by --save or --dp-report (-: standard input)",
    )
    options.importing(page)
    page.add_argument(
        "-o", "--output", type=WRITTEN, metavar="FILE", required=True, help="the page to write, a single file"
    )
    for made in (sweep, compare, init, doctor):
        made.add(commands)
    completion.add(commands, parser)
    summary = "run an attack on data and report what it recovers"
    attack = commands.add_parser("attack", help=summary, description=f"{summary.capitalize()}.")
    families = attack.add_commands("attack", "NAME")
    if attacks:
        from dpwitness.proposals import add_commands

        add_commands(families, warn=lambda message: say(f"warning: {message}"))
    return top


def _version() -> str:
    from importlib.metadata import version

    return f"dpwitness {version('dpwitness')}"


def run_function(arguments: argparse.Namespace) -> int:
    """Call the public function of the command's name, and hand over its result."""
    import dpwitness as dpw
    from dpwitness.cli.inputs import call_of, carries_claim, check_mechanism, take_settings
    from dpwitness.cli.output import check_places, exit_code, hand_over, mark_violation
    from dpwitness.report.plots import plot_curve, plot_profile
    from dpwitness.results.verdict import replay_text

    name = arguments.command
    check_mechanism(arguments)
    unclaimed = name in ("check", "bound", "profile") and arguments.epsilon is None and arguments.claim is None
    needed = f"{name} needs --epsilon, or --claim for a mechanism without a parameter of that name"
    if unclaimed and (arguments.target is None or ":" not in arguments.target):
        raise BadInput(needed)
    check_places(arguments)
    take_settings(arguments)
    given, named = call_of(arguments)
    if unclaimed and not carries_claim(given[0]):
        raise BadInput(needed)
    with live(arguments) as progress:
        result = getattr(dpw, name)(*given, **named, progress=progress)

    def report() -> str:
        if name == "check":
            seed = ["--seed", str(result.seed)] if result.reproducible else []
            return str(result.report(reproduce=[*repeating(arguments), *seed]))
        return replay_text(given[0], result) if name == "replay" else str(result)

    def plot(path: str) -> None:
        (plot_curve if name == "curve" else plot_profile)(result, path)

    code = exit_code(result)
    return hand_over(
        arguments,
        code,
        result.to_json,
        report,
        plot=plot if COMMANDS[name].plot else None,
        last=lambda: mark_violation(arguments, code, result, given[-1]),
        readable=True,
    )


def repeating(arguments: argparse.Namespace) -> list[str]:
    """The command line that repeats this check, without its seed."""
    line, known, settings = ["dpwitness", "check"], options_of("check"), getattr(arguments, "settings", ())
    for name, action in arguments.parser.arguments.items():
        value = getattr(arguments, name, None)
        if name in NOT_REPEATED or value is None or value == action.default:
            continue
        # A limit is meant as one where it was given; and a default may be another one in this project.
        said = name in ("runs", "max_time", *settings) or isinstance(value, bool)
        if not said and name in known and value == known[name].default:
            continue
        option = [*action.option_strings[:1]]
        if isinstance(value, bool):
            line += option if value else [f"--no-{name.replace('_', '-')}"]
        elif isinstance(value, list):
            for item in value:
                line += [*option, item] if isinstance(item, str) else [*option, *item]
        else:
            line += [*option, str(value)]  # of a float all digits: it reads back the same
    return line


def write_report(arguments: argparse.Namespace) -> int:
    """Write the page of saved results."""
    from dpwitness.cli.output import check_places
    from dpwitness.files import write_atomically
    from dpwitness.report.files import report

    check_places(arguments)
    options.import_modules(arguments)
    write_atomically(arguments.output, report(arguments.results))
    return NOT_REFUTED


def list_targets(arguments: argparse.Namespace) -> int:
    """Print a line for each target, the bundled ones and those of other packages."""
    from dpwitness.files import json_text
    from dpwitness.mechanisms.catalog import load_registered, registered
    from dpwitness.results.text import table
    from dpwitness.targets import target_of

    rows = []
    for name in registered():
        try:
            target = target_of(load_registered(name))
        except UnknownTarget as error:  # one broken package must not hide all others
            say(f"warning: {error}")
            continue
        except SystemExit:
            say(f"warning: target {name!r} exits on import")
            continue
        if target is not None:
            rows.append(
                {"name": name, "claim": target.claim, "true_epsilon": target.true_epsilon, "source": target.source}
            )
    if arguments.json:
        show(json_text(rows))
        return NOT_REFUTED
    with for_result():
        width = shutil.get_terminal_size().columns if is_terminal(sys.stdout) else None
    show(table(("TARGET", "CLAIM", "TRUE ε", "SOURCE"), [tuple(row.values()) for row in rows], width=width))
    return NOT_REFUTED
