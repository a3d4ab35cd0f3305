"""Saved results of any kind, from their JSON."""

from collections.abc import Callable, Mapping
from typing import Final

from dpwitness.errors import InvalidWitness
from dpwitness.results.bound import Bound, bound_from_json
from dpwitness.results.curve import Curve, curve_from_json
from dpwitness.results.profile import Profile, profile_from_json
from dpwitness.results.verdict import Verdict, verdict_from_json
from dpwitness.results.witness import SWEEP_ADVICE, WITNESS_FORMAT

#: A result that can be shown.
Shown = Verdict | Bound | Curve | Profile

#: The readers of results by a key of their JSON; the first of these keys in a result decides.
READERS: Final[dict[str, Callable[[object], Shown]]] = {
    "lines": curve_from_json,
    "band": profile_from_json,
    "confidence": bound_from_json,
    "log_e_value": verdict_from_json,
}


def result_from_json(value: object) -> Shown:
    """Build a verdict, bound, curve or profile from unchecked JSON. Raises `InvalidWitness`."""
    return reader_of(value, "the file")(value)


def reader_of(value: object, where: str) -> Callable[[object], Shown]:
    """The reader of a result in unchecked JSON. Raises `InvalidWitness`, which names `where`, for other JSON."""
    if isinstance(value, Mapping):
        if "sweep" in value:
            raise InvalidWitness(f"{where} {SWEEP_ADVICE}")
        for key, read in READERS.items():
            if key in value:
                return read
        if value.get("format") == WITNESS_FORMAT:
            raise InvalidWitness(
                f"{where} is a witness without a verdict: `dpwitness replay {where} --save RESULT.json` makes one"
            )
    raise InvalidWitness(f"{where} is no result: give files that --save or --dp-report wrote")
