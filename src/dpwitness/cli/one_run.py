"""The command `one-run`: an audit of one training run from a file of scores."""

from types import SimpleNamespace
from typing import Any, Final

from dpwitness.cli.command import CODE, READ_FILE, Argument, CliOption, Subcommand
from dpwitness.cli.console import NOT_REFUTED, VIOLATED
from dpwitness.cli.options import printing, require_one
from dpwitness.cli.values import number, whole
from dpwitness.errors import BadInput, InvalidData


def run(arguments: SimpleNamespace) -> int:
    """Test the claim by the scores of a file; return the exit code, 1 if the claim is refuted, else 0."""
    from dpwitness.api.one_run import one_run
    from dpwitness.claims import ApproxDP
    from dpwitness.cli.output import hand_over
    from dpwitness.mechanisms.claims import claim_of_text

    require_one(arguments, "epsilon", "claim")
    require_one(arguments, "delta", "claim")
    if arguments.claim is not None:
        claim: Any = claim_of_text(arguments.claim)
    elif arguments.epsilon is not None:
        claim = ApproxDP(arguments.epsilon, arguments.delta or 0.0)
    else:
        raise BadInput("one-run needs --epsilon or --claim")
    names = ("guesses", "alpha", "seed")
    given = {name: getattr(arguments, name) for name in names if getattr(arguments, name) is not None}
    result = one_run(*_scores(arguments.scores), claim, **given)
    code = VIOLATED if result.refuted else NOT_REFUTED
    return hand_over(arguments, code, result.to_json, result.report)


def _scores(path: str) -> tuple[Any, Any]:
    """The scores of the canaries that were in, and of the canaries that were left out. Raises `InvalidData`."""
    import pandas as pd  # type: ignore[import-untyped]  # no stubs; 0.5 s

    from dpwitness.files import read_frame, shown

    frame, name = read_frame(path), shown(path)
    for column in ("score", "in"):
        if column not in frame:
            columns = ", ".join(map(str, frame.columns))
            raise InvalidData(f'{name} has no column "{column}"; its columns: {columns}')
    inside = pd.to_numeric(frame["in"], errors="coerce")
    scores = pd.to_numeric(frame["score"], errors="coerce")
    for column, wrong, wanted in (("in", ~inside.isin([0, 1]), "1 or 0"), ("score", scores.isna(), "a number")):
        if wrong.any():
            row = int(wrong.to_numpy().argmax())
            raise InvalidData(f"{name}, line {row + 2}: {column}={str(frame[column][row])!r} must be {wanted}")
    was_in = inside.to_numpy(bool)
    return scores.to_numpy()[was_in], scores.to_numpy()[~was_in]


#: COMMAND is the command `one-run`.
COMMAND: Final = Subcommand(
    "one-run",
    summary="test the claim of one training run by scores of canaries",
    run=run,
    parameters=[
        Argument(
            "scores", "FILE.csv", 'a line for each canary: columns "score" and "in", 1 or 0 (-: standard input)',
            type=READ_FILE,
        ),
        CliOption("--epsilon", type=number, metavar="E", help="the claimed ε in nats"),
        CliOption("--delta", type=number, metavar="D", help="the claimed δ (default 0)"),
        CliOption("--claim", type=CODE, metavar="CLAIM", help="another claim, such as gdp:1"),
        CliOption("--guesses", type=whole, metavar="N",
                  help="number of guesses, chosen before the scores were seen (default: several numbers are tried)"),
        CliOption("--alpha", type=number, metavar="A", help="probability of a false alarm (default 0.05)"),
        CliOption("--seed", type=whole, metavar="N", help="seed that orders equal scores (default: a new seed)"),
        *printing(quiet=False),
    ],
    examples=("one-run scores.csv --epsilon 8 --delta 1e-5", "one-run scores.csv --claim gdp:1 --guesses 100"),
    exits=(0, 1, 2),
)  # fmt: skip
