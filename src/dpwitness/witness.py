"""Two neighbouring inputs, an event and counts: JSON in, JSON out, never pickle."""

import json
import math
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpwitness.claim import Claim
from dpwitness.counts import Counts
from dpwitness.errors import BadInput, InvalidWitness
from dpwitness.events import Event, event_from_json
from dpwitness.evidence import Estimate
from dpwitness.files import read_text, write_atomically
from dpwitness.neighbours import Pair, as_input

if TYPE_CHECKING:
    from dpwitness.verdict import Verdict

FORMAT = "dpwitness-witness/1"


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
    versions: dict[str, str] = field(default_factory=versions)

    def to_json(self) -> dict[str, Any]:
        """Everything, as JSON values."""
        c, e = self.counts, self.estimate
        return {
            "format": FORMAT,
            "mechanism": self.mechanism,
            "parameters": {k: repr(v) if v in (math.inf, -math.inf) else v for k, v in self.parameters.items()},
            "claim": {"epsilon": self.claim.epsilon, "delta": self.claim.delta},
            "alpha": self.alpha,
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
            raise InvalidWitness(f"this is no witness: its format is {found!r}, not {FORMAT!r}")
        try:
            data, neighbour = as_input(value["input"]), as_input(value["neighbour"])
            if data.shape != neighbour.shape:
                raise ValueError("input and neighbour have different lengths")
            alpha = _real(value["alpha"], "alpha")
            if not 0 < alpha < 1:
                raise ValueError(f"alpha={alpha!r} must lie between 0 and 1")
            if data.dtype != neighbour.dtype:
                data, neighbour = as_input(data.astype(np.float64)), as_input(neighbour.astype(np.float64))
            return cls(
                mechanism=_text(value["mechanism"], "mechanism"),
                parameters=_parameters(value["parameters"]),
                claim=Claim(
                    epsilon=_real(value["claim"]["epsilon"], "epsilon"), delta=_real(value["claim"]["delta"], "delta")
                ),
                alpha=alpha,
                pair=Pair(data, neighbour, _text(value.get("label", "given"), "label")),
                event=event_from_json(value["event"]),
                description=_text(value["event"].get("description", ""), "description"),
                counts=Counts(**{name: _whole(value["counts"][name], name) for name in ("n10", "n11", "n01", "n00")}),
                estimate=_estimate(value["estimate"]),
                seed=_whole(value["seed"], "seed"),
                versions={_text(k, "a name"): _text(v, "a version") for k, v in value.get("versions", {}).items()},
            )
        except KeyError as error:
            raise InvalidWitness(f"the witness lacks {error}") from error
        except (TypeError, ValueError, AttributeError) as error:
            raise InvalidWitness(f"the witness is damaged: {error}") from error

    def replay(self, mechanism: Any = None, **settings: Any) -> "Verdict":
        """Count the event on fresh runs; see `dpwitness.replay`."""
        from dpwitness.pipeline import replay  # the one step upwards: a convenience of the interface

        return replay(self, mechanism, **settings)


def _estimate(value: Any) -> Estimate:
    both = value.get("both")
    return Estimate(
        p=_real(value["p"], "p"), q=_real(value["q"], "q"), both=None if both is None else _real(both, "both")
    )


def _refuse(name: str) -> float:
    raise InvalidWitness(f"{name} is no JSON number")


def _real(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{name}={value!r} must be a finite number")
    return float(value)


def _whole(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{name}={value!r} must be a whole number of at least 0")
    return value


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{name}={value!r} must be text")
    return value


def _parameters(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"parameters={value!r} must be an object")
    for name, item in value.items():
        if not isinstance(item, bool | int | float | str | type(None) | list):
            raise ValueError(f"parameter {name}={item!r} must be a number, a text or a list")
    # JSON has no infinities; `job.plain` writes them as these texts.
    return {name: float(item) if item in ("inf", "-inf") else item for name, item in value.items()}
