"""Parts of reports as text: numbers, inputs and parameters on one line, tables, and labelled lines."""

import io
import math
import re
import textwrap
import unicodedata
from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, localcontext
from functools import partial
from typing import Final

from dpwitness.checks import escaped
from dpwitness.claims import Claim
from dpwitness.neighbours import Relation

#: The text in place of a relation that a witness file lacks.
UNKNOWN_RELATION: Final = "not known: its pair is taken as it is"
#: The column at which the values of labelled lines begin.
VALUE_COLUMN: Final = 15
#: The number of columns of wrapped text: 80 less the prefix of pytest before each line of a failure.
WRAPPED_COLUMNS: Final = 72
#: The largest number of columns of a line of a short report.
LINE_COLUMNS: Final = 80
#: The context of decimal arithmetic: a user's own context may round to fewer digits, or refuse to round.
DECIMAL_CONTEXT: Final = Context(prec=28, traps=[])
#: The pattern of an event's end with at least seven decimal places, too many for people to compare.
LONG_ENDS: Final = re.compile(r"(at least|at most|above|below|from) (−?)(\d+\.\d{7,}(?:e[-+]?\d+)?)")


def one_line(text: str) -> str:
    """A text on one line, invisible characters escaped as in JSON, so that a file cannot forge a line of a report."""
    return escaped(text, lambda c: unicodedata.category(c) == "Zs")


def label(name: str, value: str) -> str:
    """A labelled line of a report."""
    return f"  {name:<{VALUE_COLUMN - 3}} {one_line(value)}"


def short_label(name: str, value: str) -> str:
    """A labelled line whose value is cut to `LINE_COLUMNS` columns."""
    line = label(name, value)
    return line if len(line) <= LINE_COLUMNS else f"{line[: LINE_COLUMNS - 1]}…"


_wrap = partial(textwrap.wrap, width=WRAPPED_COLUMNS, break_long_words=False, break_on_hyphens=False)


def wrapped_label(name: str, value: str) -> list[str]:
    """A label and its value in lines of at most `WRAPPED_COLUMNS` columns, unless a word is longer."""
    return _wrap(label(name, value), subsequent_indent=" " * VALUE_COLUMN)


def wrapped(sentence: str) -> list[str]:
    """A sentence of a report in lines of at most `WRAPPED_COLUMNS` columns."""
    return _wrap(sentence, initial_indent="  ", subsequent_indent="    ")


def rounded(event: str) -> str:
    """The text of an event with its long ends rounded to 4, 6 or 9 digits; unchanged if two ends would look the same.

    Only ends are rounded: a number that an outcome must equal keeps all its digits.
    """
    long = {number for _, _, number in LONG_ENDS.findall(event)}
    for digits in (4, 6, 9):  # until no two ends look the same
        short = {number: _shorten(float(number), digits) for number in long}
        if len(set(short.values())) == len(short):
            break
    else:
        return event
    return LONG_ENDS.sub(lambda found: f"{found[1]} about {found[2]}{short[found[3]]}", event)


def _shorten(value: float, digits: int) -> str:
    """A positive number in `digits` significant digits; a number below 10¹⁵ keeps all digits before its point."""
    return f"{value:.0f}" if 10 ** (digits - 1) <= value < 1e15 else f"{value:.{digits}g}"


def rate(hits: int, runs: int) -> str:
    """A number of hits and its share of the runs, as text."""
    return f"{hits:,} of {runs:,} runs ({hits / runs:.4g})" if runs else "no runs"


def at_least(value: float, digits: int = 4) -> str:
    """A lower bound in `digits` significant digits, rounded down, so that the printed bound holds."""
    return _round_towards(value, digits, ROUND_FLOOR)


def at_most(value: float, digits: int = 4) -> str:
    """An upper bound in `digits` significant digits, rounded up, so that the printed bound holds."""
    return _round_towards(value, digits, ROUND_CEILING)


def _round_towards(value: float, digits: int, rounding: str) -> str:
    if value and math.isfinite(value):
        with localcontext(DECIMAL_CONTEXT):
            exact = Decimal(repr(float(value)))
            value = float(exact.quantize(Decimal(1).scaleb(exact.adjusted() + 1 - digits), rounding))
    return f"{value:.{digits}g}"


def exceeded(claim: Claim, lower_bound: float, digits: int = 4) -> str:
    """The lower bound of a refuted claim's parameter, "ε ≥ 1.2", or "ε > 1" for a bound rounded to the claim."""
    least = at_least(lower_bound, digits)
    if lower_bound > claim.parameter and float(least) > claim.parameter:
        return f"{claim.symbol} ≥ {least}"
    return f"{claim.symbol} > {at_least(claim.parameter, 6)}"


def named(mechanism: str, values: Mapping[str, object]) -> str:
    """A mechanism with its parameters, as in a call; a command line without parameters stays as it is."""
    parameters = [
        f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}" for name, value in values.items()
    ]
    return one_line(f"{mechanism}({', '.join(parameters)})" if parameters or " " not in mechanism else mechanism)


def confidence(alpha: float) -> str:
    """The confidence 1 − alpha of a bound in percent, rounded down."""
    if alpha < 1e-12:  # too many nines to count
        return f"1 − {alpha:g}"
    with localcontext(DECIMAL_CONTEXT):
        failing = Decimal(at_most(float(f"{alpha:.12g}"), 3))  # 1 − confidence has rounding errors in its last digits
        return f"{(100 - 100 * failing).normalize():f} %"


def odds(alpha: float) -> str:
    """The largest rate of false alarms at level `alpha`, as text: "at most 1 check in 1,000,000"."""
    return f"at most 1 check in {math.floor((1 + 1e-12) / float(at_most(alpha, 2))):,}"


def notes(texts: Sequence[str]) -> list[str]:
    """A line for each note."""
    return [f"  note: {one_line(text)}" for text in texts]


def p_value(p: float) -> str:
    """A p-value as text; a value too small for a double is "<1e-300", not 0."""
    return f"{p:.3g}" if p else "<1e-300"


def relation_text(relation: Relation | None) -> str:
    """A relation on one line; `UNKNOWN_RELATION` for None."""
    return UNKNOWN_RELATION if relation is None else f"{relation!s:.200}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, right: bool = False, width: int | None = None) -> str:
    """A table without rules; cells wrap if a `width` in columns is given."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), collapse_padding=True)
    for cell in head:
        drawn.add_column(Text(cell), justify="right" if right else "left", overflow="fold")
    for row in rows:
        drawn.add_row(*map(Text, row))
    # Without colour, terminal and notebook, so that the text is the same wherever it is printed.
    console = Console(
        file=io.StringIO(), width=width or 10_000, color_system=None, force_terminal=False, force_jupyter=False,
        legacy_windows=False,
    )  # fmt: skip
    with console.capture() as captured:
        console.print(drawn)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())
