"""Pieces of the text that people read: numbers, inputs and parameters on one line, tables, one label a line."""

import io
import re
from collections.abc import Mapping, Sequence
from decimal import ROUND_UP, Decimal
from typing import Final

from dpwitness.neighbours import Relation
from dpwitness.neighbours.difference import both

#: Both inputs on a line each: whole where they are short, else D and what differs from it.
inputs = both
#: Where the values of labelled lines begin.
MARGIN: Final = 15
#: A smaller α is shown itself: of more nines nobody counts how many they are.
LEAST_IN_PERCENT: Final = 1e-12
#: Numbers with more digits behind the point than people compare.
LONG: Final = re.compile(r"\d+\.\d{7,}(?:e[-+]?\d+)?")


def label(name: str, value: str) -> str:
    """A labelled line."""
    return f"  {name:<{MARGIN - 3}} {value}"


def rounded(event: str) -> str:
    """An event with its long numbers in six digits, which is what people read; exact where two would look the same."""
    long = LONG.findall(event)
    short = {number: f"{float(number):.6g}" for number in long}
    if "equal to" in event or len(set(short.values())) < len(short):
        return event
    return LONG.sub(lambda found: short[found[0]], event)


def rate(hits: int, runs: int) -> str:
    """A count as a share of the runs."""
    return f"{hits:,} of {runs:,} runs ({hits / runs:.4g})" if runs else "no runs"


def named(mechanism: str, values: Mapping[str, object]) -> str:
    """A mechanism with its parameters, as in a call; a command line as it is, a query without parameters alone."""
    parameters = [
        f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}" for name, value in values.items()
    ]
    return f"{mechanism}({', '.join(parameters)})" if parameters or " " not in mechanism else mechanism


def confidence(alpha: float) -> str:
    """The confidence of a bound that fails with probability at most `alpha`, in percent, rounded down."""
    if alpha < LEAST_IN_PERCENT:
        return f"1 − {alpha:g}"
    failing = 100 * Decimal(f"{alpha:.12g}")  # without the last digits of a difference of floats
    failing = failing.quantize(Decimal(1).scaleb(failing.adjusted() - 2), ROUND_UP)
    return f"{(100 - failing).normalize():f} %"


def notes(texts: Sequence[str]) -> list[str]:
    """A line for each note."""
    return [f"  note: {text}" for text in texts]


def relation_text(relation: Relation | None) -> str:
    """A relation on one line; a witness file may have none."""
    return "not known: its pair is taken as it is" if relation is None else f"{relation!s:.200}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, right: bool = False, width: int | None = None) -> str:
    """A table without rules; cells wrap where a `width` in columns is given."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), collapse_padding=True)
    for cell in head:
        drawn.add_column(Text(cell), justify="right" if right else "left", overflow="fold")
    for row in rows:
        drawn.add_row(*map(Text, row))
    # No colour and no terminal: the same text wherever it is printed.
    console = Console(
        file=io.StringIO(), width=width or 10_000, color_system=None, force_terminal=False, legacy_windows=False
    )
    with console.capture() as captured:
        console.print(drawn)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())
