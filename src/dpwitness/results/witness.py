"""Two neighbouring inputs, an event and counts: JSON in, JSON out, never pickle."""

import json
import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from dpwitness.candidate import Estimate
from dpwitness.claims import Claim, claim_from_json
from dpwitness.errors import BadInput, InvalidNeighbours, InvalidWitness
from dpwitness.events import Event, event_from_json
from dpwitness.evidence import Counts
from dpwitness.files import read_text, write_atomically
from dpwitness.neighbours import (
    Data,
    Pair,
    Relation,
    adjacent,
    as_input,
    relation_from_json,
    relation_to_json,
)
from dpwitness.neighbours.pair import brief
from dpwitness.results.values import Unreadable, value_from_json, value_to_json

FORMAT = "dpwitness-witness/2"
EARLIER = "dpwitness-witness/1"


def versions() -> dict[str, str]:
    """What the numbers depend on."""
    found = {"python": platform.python_version()}
    for name in ("dpwitness", "numpy", "numba", "scipy"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed as a package"
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """All that is needed to show again that a mechanism violates a claim.

    `mechanism` is a bundled name, `path/file.py:function` or `package.module:object`; `counts` are those of the confirm
    runs that made it; `estimate` is what the search thought of the event, on which the e-value's bet was placed.
    `relation` is what calls the pair neighbouring (None: not known, as for a third party's that cannot be written), and
    `data` the input that was given, which is one of the pair's (None: none was given).
    """

    mechanism: str
    parameters: dict[str, Any]
    claim: Claim
    alpha: float
    pair: Pair
    event: Event
    description: str
    counts: Counts
    estimate: Estimate
    seed: int
    relation: Relation | None = None
    data: Data | None = None
    versions: dict[str, str] = field(default_factory=versions)

    def to_json(self) -> dict[str, Any]:
        """Everything, as JSON values."""
        c, e = self.counts, self.estimate
        return {
            "format": FORMAT,
            "mechanism": self.mechanism,
            "parameters": {name: value_to_json(value) for name, value in self.parameters.items()},
            "claim": self.claim.to_json(),
            "alpha": self.alpha,
            "relation": _relation_json(self.relation),
            "data": None if self.data is None else self.data.tolist(),
            "input": self.pair.data.tolist(),
            "neighbour": self.pair.neighbour.tolist(),
            "label": self.pair.label,
            "event": {**self.event.to_json(), "description": self.description},
            "counts": {"n10": c.n10, "n11": c.n11, "n01": c.n01, "n00": c.n00},
            "estimate": {"p": e.p, "q": e.q, "both": e.both},
            "seed": self.seed,
            "versions": self.versions,
        }

    def save(self, path: str | Path) -> None:
        """Write it to a file, whole or not at all."""
        write_atomically(path, json.dumps(self.to_json(), ensure_ascii=False, indent=1, allow_nan=False) + "\n")

    @classmethod
    def load(cls, path: str | Path) -> "Witness":
        """Read a witness, or the witness within a saved result. Raises `InvalidWitness` or `InvalidData`."""
        try:
            value = json.loads(read_text(path), parse_constant=_refuse)
        except (ValueError, RecursionError) as error:
            if isinstance(error, BadInput):
                raise
            raise InvalidWitness(f"{path} is not JSON: {error}") from error
        if isinstance(value, dict) and isinstance(value.get("witness"), dict):
            value = value["witness"]
        return cls.from_json(value)

    @classmethod
    def from_json(cls, value: Any) -> "Witness":
        """Build a witness from parsed JSON that nobody has checked. Raises `InvalidWitness`."""
        if not isinstance(value, Mapping) or value.get("format") != FORMAT:
            found = value.get("format") if isinstance(value, Mapping) else type(value).__name__
            if found == EARLIER:
                raise InvalidWitness(
                    f"this witness has the format {EARLIER!r}, which does not say which inputs are neighbours: make it "
                    "anew with `dpwitness check … --save FILE`"
                )
            raise InvalidWitness(f"this is no witness: its format is {brief(found)}, not {FORMAT!r}")
        try:
            witness = cls._parsed(value)
        except KeyError as error:
            raise InvalidWitness(f"the witness lacks {error}") from error
        except (TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
            raise InvalidWitness(f"the witness is damaged: {error}") from error
        if witness.relation is not None and not adjacent(witness.relation, witness.pair, witness.data):
            given = "" if witness.data is None else " with the data in the file"
            raise InvalidWitness(
                f"the inputs {witness.pair} of the witness are not neighbours under the relation in the file{given}: "
                f"{witness.relation!s:.200}"
            )
        return witness

    @classmethod
    def _parsed(cls, value: Mapping[str, Any]) -> "Witness":
        """Each field checked by itself; raises errors of many kinds."""
        data, neighbour = as_input(value["input"]), as_input(value["neighbour"])
        if data.shape != neighbour.shape:
            raise ValueError("input and neighbour have different lengths")
        alpha = _real(value["alpha"], "alpha")
        if not 0 < alpha < 1:
            raise ValueError(f"alpha={alpha!r} must lie between 0 and 1")
        if data.dtype != neighbour.dtype:
            data, neighbour = as_input(data.astype(np.float64)), as_input(neighbour.astype(np.float64))
        relation, given = value["relation"], value["data"]
        return cls(
            mechanism=_text(value["mechanism"], "mechanism"),
            parameters=_parameters(value["parameters"]),
            claim=claim_from_json(value["claim"]),
            alpha=alpha,
            relation=None if relation is None else relation_from_json(relation),
            data=None if given is None else as_input(given),
            pair=Pair(data, neighbour, _text(value.get("label", "given"), "label")),
            event=event_from_json(value["event"]),
            description=_text(value["event"].get("description", ""), "description"),
            counts=Counts(**{name: _whole(value["counts"][name], name) for name in ("n10", "n11", "n01", "n00")}),
            estimate=_estimate(value["estimate"]),
            seed=_whole(value["seed"], "seed", 1 << 128),
            versions={_text(k, "a name"): _text(v, "a version") for k, v in value.get("versions", {}).items()},
        )

    @property
    def unreadable(self) -> tuple[str, ...]:
        """The parameters that a file could not hold."""
        return tuple(name for name, value in self.parameters.items() if isinstance(value, Unreadable))


def _relation_json(relation: Relation | None) -> dict[str, Any] | None:
    """A relation as it can be read back; None for one that only another package could build again."""
    written = relation_to_json(relation)
    try:
        relation_from_json(written)
    except InvalidNeighbours:
        return None
    return written


def _estimate(value: Any) -> Estimate:
    both = value.get("both")
    return Estimate(
        p=_real(value["p"], "p"), q=_real(value["q"], "q"), both=None if both is None else _real(both, "both")
    )


def _refuse(name: str) -> float:
    raise InvalidWitness(f"{name} is no JSON number")


def _real(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= sys.float_info.max:
        raise ValueError(f"{name}={brief(value)} must be a finite number")
    return float(value)


def _whole(value: Any, name: str, limit: int = 1 << 63) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < limit:
        raise ValueError(f"{name}={brief(value)} must be a whole number from 0 to below 2^{limit.bit_length() - 1}")
    return value


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{name}={brief(value)} must be text")
    value.encode()  # half of a surrogate pair could not be written again
    return value


def _parameters(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"parameters={brief(value)} must be an object")
    found = {}
    for name, item in value.items():
        try:
            found[name] = value_from_json(item)
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"parameter {name}={brief(item)} cannot be read: {error}") from error
    return found
