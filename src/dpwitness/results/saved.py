"""Saved results of any kind, from their JSON."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from dpwitness.errors import InvalidWitness
from dpwitness.results.bound import Bound
from dpwitness.results.curve import Curve
from dpwitness.results.fields import read_result
from dpwitness.results.profile import Profile
from dpwitness.results.verdict import Verdict, verdict_from_json
from dpwitness.results.witness import SWEEP_ADVICE, WITNESS_FORMAT

#: A result that can be shown.
Shown = Verdict | Bound | Curve | Profile

#: The readers of results by a key of their JSON; the first of these keys in a result decides.
RESULT_READERS: Final[dict[str, Callable[[object], Shown]]] = {
    "lines": partial(read_result, Curve, "curve"),
    "band": partial(read_result, Profile, "profile"),
    "confidence": partial(read_result, Bound, "bound"),
    "log_e_value": verdict_from_json,
}


def result_from_json(value: object, where: str = "the file") -> Shown:
    """The result in unchecked JSON. Raises `InvalidWitness`, which names `where` for JSON of another kind."""
    if isinstance(value, Mapping):
        if "sweep" in value:
            raise InvalidWitness(f"{where} {SWEEP_ADVICE}")
        for key, read in RESULT_READERS.items():
            if key in value:
                return read(value)
        if value.get("format") == WITNESS_FORMAT:
            raise InvalidWitness(
                f"{where} is a witness without a verdict: `dpwitness replay {where} --save RESULT.json` makes one"
            )
    raise InvalidWitness(f"{where} is no result: give files that --save or --dp-report wrote")
