"""`outcome=`: what a user has an output summarised by, a function or the names of its attributes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final

from dpwitness.checks import brief
from dpwitness.errors import InvalidOutcome, InvalidParameter

#: Attributes of an object of no known kind that an error message names.
NAMED: Final = 5
#: What a user gives as `outcome=`: a function from an output to an outcome, or names of its attributes, as
#: "coef_,intercept_" or ("coef_", "intercept_").
Outcome = Callable[[Any], Any] | str | Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attributes:
    """Reads attributes of an output, such as those of a fitted model: of one name its value, of several a tuple."""

    names: tuple[str, ...]

    def __call__(self, output: Any) -> Any:
        """Return the values. Raises `AttributeError` for an output that lacks one."""
        return attrgetter(*self.names)(output)


def summary(given: Outcome | None) -> Callable[[Any], Any] | None:
    """Return the function that `outcome=` stands for. Raises `InvalidParameter` where it is none and no names."""
    if given is None or callable(given):
        return given
    names = given.split(",") if isinstance(given, str) else [*given] if isinstance(given, Sequence) else []
    plain = [name.strip() if isinstance(name, str) else "" for name in names]
    if not plain or not all(part.isidentifier() for name in plain for part in name.split(".")):
        raise InvalidParameter(
            f"outcome={brief(given)} must be a function of what the mechanism returns, or names of its attributes, as "
            "'coef_,intercept_'"
        )
    return Attributes(names=tuple(plain))


def advice(value: Any) -> str:
    """What to do about an object of a type that is no kind of outcome."""
    kept = [name for name in vars(value) if name.endswith("_") and not name.startswith("_")] if _has_vars(value) else []
    if kept:
        return f"name the attributes of it that are released, as outcome={','.join(kept[:NAMED])!r}"
    return (
        "return a number, a flag, text, bytes, a date, a dict, a set, a dataclass, an array, a table or a list of such"
    )


def _has_vars(value: Any) -> bool:
    return hasattr(value, "__dict__") and not isinstance(value, type)


def summarised(outcome: Callable[[Any], Any], output: Any, name: str, run: int) -> Any:
    """What the user's `outcome` makes of an output of a mechanism. Raises `InvalidOutcome` where that raises."""
    try:
        return outcome(output)
    except Exception as error:
        raise InvalidOutcome(
            f"outcome= raised {type(error).__name__} ({error}) for {brief(output)}, which {name} returned on run "
            f"{run}: return a number, a flag, text or a list of such for every output"
        ) from error
