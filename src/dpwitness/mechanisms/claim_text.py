"""A claim as a text, as the command line has it: 1, (1, 1e-5), zcdp:0.5, gdp:1, rdp:8,0.4, profile:FILE and others."""

import json
import math
from collections.abc import Callable
from typing import Any, Final

from dpwitness.checks import brief, near
from dpwitness.claims import ZCDP, ApproxDP, Claim, GaussianDP, PrivacyProfile, RenyiDP, TradeOff, claim_from_json
from dpwitness.errors import BadInput, InvalidClaim
from dpwitness.files import read_text, shown

__all__ = ["FORMS", "claim_of_text"]

#: For help and messages.
FORMS: Final = "1, 1,1e-5, zcdp:0.5, gdp:1.0, rdp:8,0.4, profile:FILE or tradeoff:FILE"
#: The claims of numbers: how many each takes.
NUMBERS: Final[dict[str, tuple[int, Callable[..., Claim]]]] = {
    "": (2, ApproxDP),
    "dp": (2, ApproxDP),
    "zcdp": (1, ZCDP),
    "gdp": (1, GaussianDP),
    "rdp": (2, RenyiDP),
}
FILES: Final[dict[str, Callable[[Any], Claim]]] = {"profile": PrivacyProfile, "tradeoff": TradeOff}


def claim_of_text(text: str) -> float | Claim:
    """A number, the claimed ε alone, or a claim; see `FORMS`.

    A file holds JSON: a list of pairs, or a claim as a witness holds it. Raises `InvalidClaim`, and `BadInput` for a
    file that cannot be read.
    """
    kind, colon, rest = text.partition(":") if ":" in text else ("", "", text)
    if colon and kind in FILES:
        return _of_file(kind, rest)
    if kind not in NUMBERS or (colon and not kind):
        raise InvalidClaim(f"claim={brief(text)} must be {FORMS}{near(kind, (*NUMBERS, *FILES))}")
    values = [_number(text, part) for part in rest.split(",")]
    most, make = NUMBERS[kind]
    if not kind and len(values) == 1:
        return values[0]
    if len(values) != most and not (kind == "dp" and len(values) == 1):
        raise InvalidClaim(f"claim={brief(text)} must be {FORMS}")
    return make(*values)


def _number(text: str, part: str) -> float:
    try:
        value = float(part)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InvalidClaim(f"claim={brief(text)}: {brief(part)} must be a finite number; a claim is {FORMS}")
    return value


def _of_file(kind: str, path: str) -> Claim:
    try:
        value = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        if isinstance(error, BadInput):
            raise
        raise InvalidClaim(f"{shown(path)} is not JSON: {error}") from error
    if isinstance(value, dict) and "verdict" not in value:
        return claim_from_json(value)
    if not isinstance(value, list):
        raise InvalidClaim(
            f"{shown(path)} must hold a list of pairs of numbers in JSON, such as [[0.5, 0.01], [1, 1e-5]], "
            "or a claim as a witness holds it; it is no result of dpwitness"
        )
    return FILES[kind](value)
