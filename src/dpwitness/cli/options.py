"""Options that several commands share: one word for one thing, with one meaning everywhere.

--records and what goes with it: real data from a CSV file, and which datasets the claim calls neighbours.

From options to what `dpwitness.check` and its sisters take: the mechanism, its inputs, its parameters.
"""

import argparse
from collections.abc import Callable
from typing import Any, Final

from dpwitness.claims import Claim
from dpwitness.cli.console import say
from dpwitness.cli.parser import given_input, number, seconds, settings, threads, whole
from dpwitness.errors import BadInput, InvalidData, InvalidNeighbours
from dpwitness.files import read_column, read_frame, shown
from dpwitness.mechanisms.catalog import load, load_code
from dpwitness.mechanisms.claims import claim_of_text
from dpwitness.neighbours import Data, Relation, categories, histogram, integers, like, numbers, pairs, queries, records
from dpwitness.targets import target_of

#: What every command that runs something takes.
COMMON: Final = ("--seed", "--workers", "--max-time", "--save", "--json", "--quiet")
#: Of --adjacency: a claim that leaves it open is about either.
ADJACENCIES: Final = {"add-remove": "add-remove", "replace-one": "replace-one", "either": None}
#: What a mechanism may get of --records.
FORMS: Final = ("dataframe", "array", "list", "columns", "xy")
WORKERS: Final = "threads, or processes for plain Python (default: all cores)"


def common(
    parser: argparse.ArgumentParser, *, max_time: float | None, time_for: str = "everything", workers: str = WORKERS
) -> None:
    """Options of every command that runs something.

    Parameters
    ----------
    max_time
        The default of --max-time in seconds; None: no limit.
    time_for
        What it limits.
    workers
        The help of --workers.
    """
    limit = "no limit" if max_time is None else f"{max_time:g}s"
    parser.add_argument("--seed", type=whole, help="repeat an earlier run (default: a fresh seed)")
    parser.add_argument("--workers", type=threads, metavar="N", help=workers)
    parser.add_argument(
        "--max-time",
        type=seconds,
        default=max_time,
        metavar="TIME",
        help=f"time for {time_for}, such as 60s or 2m (default: {limit})",
    )
    parser.add_argument("--save", metavar="FILE", help="write the result as JSON")
    parser.add_argument("--json", action="store_true", help="print the result alone, as JSON, on stdout")
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr")


def cluster(parser: argparse.ArgumentParser) -> None:
    """--cluster: where the runs of a mechanism are made instead of here."""
    parser.add_argument(
        "--cluster",
        metavar="ADDRESS",
        help="run on a Dask cluster: the address of its scheduler, or local for workers of this machine (--workers of "
        "them)",
    )


def runs(parser: argparse.ArgumentParser, help: str) -> None:
    """--runs: paired confirm runs."""
    parser.add_argument("--runs", type=whole, metavar="N", help=help)


def alpha(parser: argparse.ArgumentParser, default: float | None, help: str) -> None:
    """--alpha, the probability of a false alarm."""
    parser.add_argument("--alpha", type=number, default=default, metavar="A", help=help)


def claim(parser: argparse.ArgumentParser, help: str) -> None:
    """--claim: any claim, as a text that `dpwitness.mechanisms.claims` reads once it is needed."""
    parser.add_argument(
        "--claim", metavar="CLAIM", help=f"{help}: 1, 1,1e-5, zcdp:0.5, gdp:1, rdp:8,0.4, profile:FILE, tradeoff:FILE"
    )


def target(parser: argparse.ArgumentParser) -> None:
    """TARGET, and what the mechanism takes and gives."""
    parser.add_argument(
        "target", metavar="TARGET", help="a bundled name, path/file.py:function or package.module:object"
    )
    parser.add_argument(
        "--set", metavar="NAME=VALUE", action="append", default=[], help="a parameter of the mechanism (repeatable)"
    )
    python(parser)
    outcomes(parser)


def python(parser: argparse.ArgumentParser) -> None:
    """--python: which interpreter runs the mechanism."""
    parser.add_argument(
        "--python", metavar="PATH", help="another environment's interpreter that runs it, as old/bin/python"
    )


def outcomes(parser: argparse.ArgumentParser) -> None:
    """--outcome and --errors: what of a run is its outcome."""
    parser.add_argument(
        "--outcome",
        metavar="WHAT",
        help="what of an output is released: FILE.py:FUNCTION, or attributes as coef_,intercept_",
    )
    parser.add_argument("--errors", choices=("raise", "outcome"), help="what an exception is (default raise: the end)")


def inputs(parser: argparse.ArgumentParser, title: str = "inputs (default: the target's own relation)") -> None:
    """Which inputs are neighbours, and D."""
    group = parser.add_argument_group(title)
    group.add_argument(
        "--pair", nargs=2, action="append", metavar=("D", "D′"), help="two neighbouring inputs as JSON (repeatable)"
    )
    group.add_argument("--queries", type=whole, metavar="N", help="answers to N queries of sensitivity 1")
    group.add_argument("--may-move", choices=("all", "one"), help="which answers move on a neighbour (default all)")
    group.add_argument("--direction", choices=("any", "up"), help="whether answers may move against each other")
    add_records(group)
    data(group, "take D from a file; the relation makes the neighbours")


def add_records(group: argparse._ArgumentGroup) -> None:
    """--records, and what goes with it."""
    group.add_argument(
        "--records", metavar="FILE.csv", help="records to start from; neighbours differ in one (-: stdin)"
    )
    names = ", ".join(ADJACENCIES)
    group.add_argument("--adjacency", choices=tuple(ADJACENCIES), metavar="HOW", help=f"{names} (default add-remove)")
    group.add_argument(
        "--form",
        choices=FORMS,
        metavar="FORM",
        help=f"what the mechanism gets: {', '.join(FORMS)} (default dataframe; xy: the last column is y)",
    )
    group.add_argument("--size", type=whole, metavar="N", help="only datasets of N records (default any number)")
    group.add_argument(
        "--domain",
        metavar="COL=VALUES",
        action="append",
        default=[],
        help="LOW:HIGH or A,B,C for a column of --records (default as in the file; repeatable)",
    )


def data(parser: argparse._ActionsContainer, help: str) -> None:
    """--data and --column: numbers from a CSV file, or from standard input."""
    parser.add_argument("--data", metavar="FILE.csv", help=f"{help} (-: standard input)")
    parser.add_argument("--column", metavar="NAME", help="the column of --data (default: count, else the last)")


def plot(parser: argparse.ArgumentParser) -> None:
    """--plot; the format follows from the name."""
    parser.add_argument("--plot", metavar="FILE", help="draw it as .svg, .png or .pdf")


#: The options that need --records.
_OPTIONS: Final = ("adjacency", "form", "size", "domain")


def relation_of_records(arguments: argparse.Namespace) -> Relation | None:
    """The relation that --records describes; None where it was not given. Raises `BadInput`."""
    given = [name for name in _OPTIONS if getattr(arguments, name) not in (None, [])]
    if arguments.records is None:
        if given:
            raise BadInput(f"--{given[0]} says more of --records: give --records FILE.csv too")
        return None
    frame = read_frame(arguments.records)
    domains = dict(zip(frame.columns, like(frame).fields.parts, strict=True))
    for item in arguments.domain:
        name, equals, values = item.partition("=")
        if not equals or name not in domains:
            known = ", ".join(map(str, domains))
            raise BadInput(f"--domain {item!r} must be COLUMN=LOW:HIGH or COLUMN=A,B,C; columns of the file: {known}")
        domains[name] = _domain(item, values)
    form = arguments.form or FORMS[0]
    base, domain = _in_form(frame, domains, form, arguments.records)
    return records(
        domain,
        adjacency=ADJACENCIES[arguments.adjacency or "add-remove"],
        size=arguments.size,
        base=base,
        form=form,
    )


def repeated(arguments: argparse.Namespace) -> list[str]:
    """These options as they were given, for the command that repeats a check."""
    line = []
    for name in ("records", "adjacency", "form", "size"):
        if getattr(arguments, name) is not None:
            line += [f"--{name}", str(getattr(arguments, name))]
    for item in arguments.domain:
        line += ["--domain", item]
    return line


def _domain(item: str, values: str) -> Any:
    """LOW:HIGH, whole numbers where both are, or categories, which are whole numbers where all are."""
    low, colon, high = values.partition(":")
    try:
        if not colon:
            kinds = values.split(",")
            return categories(*(_whole(kinds) or kinds))
        ends = _whole([low, high])
        return numbers(float(low), float(high)) if ends is None else integers(*ends)
    except InvalidNeighbours as error:
        raise BadInput(f"--domain {item!r}: {error}") from error
    except ValueError as error:
        raise BadInput(f"--domain {item!r} must hold two finite numbers, the lower one first") from error


def _whole(texts: list[str]) -> list[int] | None:
    """Whole numbers; None where one of the texts is none."""
    try:
        return [int(text) for text in texts]
    except ValueError:
        return None


def _in_form(frame: Any, domains: dict[str, Any], form: str, path: str) -> tuple[Any, Any]:
    """The base and the domain as `records` takes them for a form."""
    if form in ("dataframe", "columns"):
        return frame, domains
    if form == "list":
        return frame.to_dict("records"), domains
    parts = tuple(domains.values())
    texts = [name for name in frame.columns if frame[name].dtype.kind not in "biuf"]
    if form == "xy":
        if len(parts) < 2:
            raise InvalidData(f"{shown(path)} has one column: --form xy needs features and, in the last column, labels")
        texts = [name for name in texts if name != frame.columns[-1]]
    if texts:
        raise InvalidData(f"column {texts[0]!r} of {shown(path)} holds text: --form {form} needs numbers")
    if form == "xy":
        labels = frame.iloc[:, -1]
        features = frame.iloc[:, :-1].to_numpy()
        return (features, labels.tolist()), (parts[:-1], parts[-1])
    return (frame.iloc[:, 0].to_numpy(), parts[0]) if len(parts) == 1 else (frame.to_numpy(), parts)


def relation(arguments: argparse.Namespace) -> Relation | None:
    """The relation that the options describe; None leaves it to the target."""
    extras = [name for name in ("may_move", "direction") if getattr(arguments, name)]
    of_records = relation_of_records(arguments)
    if of_records is not None:
        if arguments.pair or arguments.queries is not None or extras or arguments.data is not None:
            raise BadInput("--records says which inputs are neighbours: leave out --pair, --queries and --data")
        return of_records
    if arguments.pair:
        if arguments.queries is not None or extras or arguments.data is not None:
            raise BadInput(
                "--pair already says everything about the inputs: leave out --queries, --may-move and --data"
            )
        return pairs(*([given_input(side) for side in pair] for pair in arguments.pair))
    if arguments.queries is not None or extras:
        length = 10 if arguments.queries is None else arguments.queries
        return queries(length, may_move=arguments.may_move or "all", direction=arguments.direction or "any")
    return None


def data_of(arguments: argparse.Namespace) -> Data | None:
    """D, from --data and --column; None where no file was given. Raises `InvalidData`."""
    if arguments.data is not None:
        return read_column(arguments.data, arguments.column)
    if arguments.column is not None:
        raise InvalidData("--column says which column of --data: give --data FILE.csv too")
    return None


def loaded(arguments: argparse.Namespace) -> tuple[Any, dict[str, Any]]:
    """The function, and the settings that check, bound, curve and profile take alike."""
    function, outcome = mechanism_of(arguments, arguments.target), outcome_of(arguments)
    neighbours, data = relation(arguments), data_of(arguments)
    if data is not None and neighbours is None and target_of(function) is None:
        # A user's own function and a file: counts are a histogram, anything else answers to queries.
        counts = data.dtype.kind == "i" and (data >= 0).all()
        neighbours = histogram(len(data)) if counts else queries(len(data))
        kind = "a histogram, one person more or less in a cell" if counts else "queries, each moving by at most 1"
        say(f"taking {shown(arguments.data)} as {kind}")
    shared = {
        "neighbours": neighbours,
        "data": data,
        "parameters": settings(arguments.set),
        "max_time": arguments.max_time,
        "seed": arguments.seed,
        **places(arguments),
        "reference": arguments.target,
        "outcome": outcome,
        **given(arguments, "delta", "errors"),
    }
    return function, shared


def mechanism_of(arguments: argparse.Namespace, target: str) -> Callable[..., Any]:
    """The function that a name stands for, or one of the interpreter of --python."""
    if arguments.python is None:
        return load(target)
    from dpwitness.mechanisms.remote import remote

    return remote(arguments.python, target)


def claim_of(arguments: argparse.Namespace) -> Claim | float | None:
    """The claim of --claim, a number where it is an ε alone; None where it was not given. Raises `BadInput`."""
    return None if arguments.claim is None else claim_of_text(arguments.claim)


def stated_claim(arguments: argparse.Namespace) -> Claim | float | None:
    """As `claim_of`, of a command that needs a claim, or the mechanism's ε to take for it. Raises `BadInput`."""
    found = claim_of(arguments)
    if arguments.epsilon is None and found is None:
        raise BadInput(
            f"{arguments.command} needs --epsilon, or --claim for a mechanism without a parameter of that name"
        )
    return found


def places(arguments: argparse.Namespace) -> dict[str, Any]:
    """Where the runs are made. Raises `BadInput` for a number of workers of somebody else's cluster."""
    if arguments.cluster not in (None, "local") and arguments.workers is not None:
        raise BadInput(
            f"--cluster {arguments.cluster} has the workers that it has: leave out --workers, which is for --cluster "
            "local"
        )
    return {"workers": arguments.workers, "cluster": arguments.cluster}


def outcome_of(arguments: argparse.Namespace) -> Callable[[Any], Any] | str | None:
    """The function of --outcome, or names of attributes; None where it was not given."""
    text: str | None = arguments.outcome
    return load_code(text) if text is not None and ":" in text else text


def given(arguments: argparse.Namespace, *names: str) -> dict[str, Any]:
    """Those options that were given; the interface knows the defaults of the others."""
    return {name: getattr(arguments, name) for name in names if getattr(arguments, name) is not None}
