"""Witnesses: two neighbouring inputs, an event and counts, saved as JSON, never as a pickle.

A witness may name the line of code that leaks (`Explanation`), which is not evidence.
"""

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Final, Literal

from dpwitness.candidate import Estimate
from dpwitness.checks import brief, class_and_text, kind, on_one_line
from dpwitness.claims import Claim
from dpwitness.codec import OMITTED_VALUE, JsonFields, whole_below
from dpwitness.errors import DPWitnessError, InvalidData, InvalidWitness
from dpwitness.events import Event, is_partition
from dpwitness.evidence import Counts, bet_on
from dpwitness.files import shown, write_json
from dpwitness.mechanisms.columns import Columns, Entry
from dpwitness.neighbours import Pair, Relation, adjacent, relation_to_json
from dpwitness.neighbours.difference import both
from dpwitness.neighbours.inputs import Input
from dpwitness.neighbours.pair import ATTACK_PREFIX
from dpwitness.results.fields import Alpha, Count, Parameters, Seed, Texts, read_json, read_result
from dpwitness.results.text import label, named, rate, rounded, short_label, wrapped_label
from dpwitness.values import UnreadableValue, unreadable_in

#: WITNESS_FORMAT is the format of witness files.
WITNESS_FORMAT: Final = "dpwitness-witness/2"
#: DATABASE_FORMAT is the format of the pytest plugin's files, which hold a witness and its test.
DATABASE_FORMAT: Final = "dpwitness-database/1"
#: SWEEP_ADVICE is the advice on the file of a whole sweep.
SWEEP_ADVICE: Final = "is of a sweep: give one of the verdicts in it, in a file of its own"


def versions() -> dict[str, str]:
    """The versions of Python and of the packages on which the numbers depend."""
    packages = ("dpwitness", "numpy", "numba", "scipy")
    return {"python": platform.python_version(), **{name: _version(name) for name in packages}}


@cache
def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # on the path of modules alone
        return "not installed as a package"


#: NOT_REPRODUCIBLE is the remark on a mechanism that draws its own randomness, or no randomness.
NOT_REPRODUCIBLE: Final = "the mechanism takes no generator: a seed cannot reproduce these counts"
#: Cause is the kind of fault: noise whose scale depends on the data; probabilities too far apart; different numbers of
#: draws; a branch; noise too small for the difference of the outputs; one draw for several entries; an entry that no
#: draw changes.
Cause = Literal["scale", "probabilities", "draws", "branch", "noise", "reuse", "exact"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation(JsonFields):
    """The line at which runs on D and on D′ from the same seeds show a fault, and the kind of fault (`cause`).

    An explanation rests on few runs of the witness's pair and is not evidence: the line may be right, and the fault
    elsewhere.
    """

    cause: Cause
    file: str  # relative to the working folder or to the folder of installed packages; else the file's name
    line: Annotated[int, whole_below(1 << 31, 1)]  # the number of the line, from 1
    text: str  # a sentence on the line, for people
    on_data: str  # the line's behaviour on D
    on_neighbour: str  # the line's behaviour on D′
    pairs: Count  # the number of recorded paired runs, each from one seed on both inputs

    @property
    def basis(self) -> str:
        """A sentence on the runs that the explanation rests on."""
        return f"an explanation from {self.pairs} recorded pairs of runs with the same seeds, no evidence"

    def __str__(self) -> str:
        return f"line {self.line} of {self.file}: {self.text}"

    def lines(self) -> list[str]:
        """The lines of the explanation in a report."""
        return [*wrapped_label("where", str(self)), *wrapped_label("", f"({self.basis})")]


@dataclass(frozen=True, slots=True)
class DescribedEvent:
    """An event and its text, one object in JSON."""

    event: Event = field(metadata={"json": "flat"})
    description: str = field(default="", metadata={"json": "optional"})


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Witness(JsonFields):
    """A violation of a claim, with the data for a proof on fresh runs.

    `mechanism` is a bundled name, `path/file.py:function` or `package.module:object`; `counts` are the counts of the
    confirm runs; `estimate`: the search's estimate of the event's probabilities, on which the bet was based;
    `relation`: the relation under which the pair is adjacent (None: unknown, as for a third-party relation without
    JSON); `data`: the input of the pair that the user gave (None: no input). If outcomes have keys, `layout` has the
    entries that the event uses; `texts` has the texts that the event's numbers encode. `by_position`: the mechanism was
    compiled, or the file is older than layouts. `explanation`: the line of code that may leak; None if it is not clear.
    `outcome`, `errors`, `python`: the check's options, as on a command line; a replay also uses `errors`.
    """

    format: ClassVar[str] = WITNESS_FORMAT
    json_keys: ClassVar[tuple[str, ...]] = (
        *("format", "mechanism", "parameters", "claim", "alpha", "relation", "data", "pair", "event: described"),
        *("entries", "outcome", "errors", "python"),
        *("texts", "counts", "estimate", "seed", "versions", "explanation"),
    )

    mechanism: str
    parameters: Parameters
    claim: Claim
    alpha: Alpha
    pair: Pair = field(metadata={"json": "flat"})
    event: Event
    description: str
    counts: Counts
    estimate: Estimate
    seed: Seed
    relation: Relation | None = None
    data: Input | None = None
    layout: Columns | None = None
    by_position: bool = False
    texts: Texts = field(default_factory=dict, metadata={"json": "sparse"})
    versions: dict[str, str] = field(default_factory=versions)
    explanation: Explanation | None = field(default=None, metadata={"json": "sparse"})
    outcome: str | None = field(default=None, metadata={"json": "sparse"})
    errors: Literal["outcome"] | None = field(default=None, metadata={"json": "sparse"})
    python: str | None = field(default=None, metadata={"json": "sparse"})

    @property
    def described(self) -> DescribedEvent:
        """The event with its text."""
        return DescribedEvent(self.event, self.description)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The entries that the event uses; empty if outcomes have no keys; `OMITTED_VALUE` if `by_position`."""
        known: tuple[Entry, ...] = () if self.layout is None else self.layout.entries
        return OMITTED_VALUE if self.by_position else known

    @classmethod
    def from_keys(
        cls,
        *,
        event: DescribedEvent,
        entries: tuple[Entry, ...] | None = None,
        versions: Mapping[str, str] = MappingProxyType({}),
        **fields: Any,
    ) -> "Witness":
        """The witness from the keys of its JSON."""
        layout = Columns(entries, full=event.event.width > len(entries)) if entries else None
        return cls(
            event=event.event,
            description=event.description,
            layout=layout,
            by_position=entries is None,
            versions=dict(versions),
            **fields,
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the witness to a file, whole or not at all. Raises `InvalidData`.

        Raises `InvalidWitness` for a witness that could not be read back, such as one whose event's class is not
        registered, or whose relation's JSON gives another relation.
        """
        place = _place(path)
        try:
            relation_to_json(self.relation)  # raises here, as `to_json` leaves out a relation that fails
            value = self.to_json()
            Witness.from_json(value)
        except Exception as error:  # a class of another package may raise anything
            text = on_one_line(error)
            raise InvalidWitness(f"{shown(place)} was not written, since it could not be read back: {text}") from error
        write_json(place, value)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Witness":
        """Read a witness, or the witness in a saved result or in a file of `.dpwitness/`.

        From a pass it reads the witness of the last bits if they leak, else the best candidate. Raises `InvalidWitness`
        or `InvalidData`.
        """
        place = _place(path)
        return cls._of(read_json(place), shown(place))

    @classmethod
    def from_json(cls, value: object) -> "Witness":
        """The witness in the unchecked JSON of a witness or a result. Raises `InvalidWitness`."""
        return cls._of(value, "the result")

    @classmethod
    def _of(cls, value: object, where: str) -> "Witness":
        """The witness in the JSON of a witness or a result. Raises `InvalidWitness`, whose message names `where`."""
        if isinstance(value, Mapping) and value.get("format") in (None, DATABASE_FORMAT) and "witness" in value:
            by_bits = value.get("floating_point")
            value = (by_bits if isinstance(by_bits, Mapping) and "witness" in by_bits else value)["witness"]
            if value is None:
                raise InvalidWitness(f"{where} holds no witness: nothing was refuted there")
        if isinstance(value, Mapping) and "sweep" in value:
            raise InvalidWitness(f"{where} {SWEEP_ADVICE}")
        file_format = value.get("format") if isinstance(value, Mapping) else type(value).__name__
        if file_format != WITNESS_FORMAT or not isinstance(value, Mapping):
            raise InvalidWitness(
                f"{where} must be a witness, as --save of check, bound or profile writes it: its format is "
                f"{brief(file_format)}, not {WITNESS_FORMAT!r}"
            )
        if value.get("observe") is not None:
            raise _earlier_kind(where, "runs whose time was part of the outcome")
        witness = read_result(cls, "witness", value)
        entries = () if witness.layout is None else witness.layout.entries
        within_texts = ("length of text", "character", "last character", "number in text")
        if any(word in within_texts for entry in entries for word, _ in entry.path):
            raise _earlier_kind(where, "parts of texts")
        if not witness._adjacent:
            given = "" if witness.data is None else " with the data in the file"
            raise InvalidWitness(
                f"the inputs {witness.pair} of the witness are not neighbours under the relation in the file{given}: "
                f"{witness.relation!s:.200}"
            )
        return witness

    @property
    def _adjacent(self) -> bool:
        """Whether the relation, if it is known, contains the pair. Raises `InvalidWitness`."""
        try:
            return self.relation is None or self.unreadable_inputs or adjacent(self.relation, self.pair, self.data)
        except DPWitnessError:
            raise
        except Exception as error:  # a relation may raise anything for inputs of a file
            raise InvalidWitness(
                f"the relation in the file cannot tell whether the inputs are neighbours: {class_and_text(error)}"
            ) from error

    @property
    def shares(self) -> tuple[float, float]:
        """The shares of the runs on D and on D′ in which the event happened."""
        counts = self.counts
        return counts.hits / max(counts.runs, 1), counts.neighbour_hits / max(counts.runs, 1)

    @property
    def rates(self) -> tuple[str, str]:
        """The numbers of runs on D and on D′ in which the event happened, for people."""
        counts = self.counts
        return rate(counts.hits, counts.runs), rate(counts.neighbour_hits, counts.runs)

    @property
    def unreadable(self) -> tuple[str, ...]:
        """The names of the parameters that a file could not hold."""
        return tuple(name for name, value in self.parameters.items() if isinstance(value, UnreadableValue))

    @property
    def unreadable_inputs(self) -> bool:
        """Whether the witness was read from a file that could not hold its inputs."""
        return any(map(unreadable_in, self.pair.sides))

    def comparison(self, *, tested: bool = True) -> str:
        """The text of the rate that a `tested` claim allows, or of the divergences seen and allowed; may be empty."""
        claim = self.claim if tested else None
        bet = bet_on(self.counts, self.claim, self.estimate)
        return bet.parts[0].comparison(self.counts, claim)

    def lines(self, *, tested: bool = True) -> list[str]:
        """The lines of inputs, event, observed rates and, if a claim was `tested`, the rate that it allows."""
        first, second = both(self.pair.data, self.pair.neighbour)
        proposal = self.pair.label.removeprefix(ATTACK_PREFIX)
        lines = [
            label("input D", first),
            label("neighbour D′", second),
            *([label("by an attack", proposal)] if proposal != self.pair.label else []),
            label("event", rounded(self.description)),
            label("on D", self.rates[0]),
            label("on D′", self.rates[1]),
        ]
        if comparison := self.comparison(tested=tested):
            lines.append(f"  {comparison}")
        return lines

    def short_lines(self) -> list[str]:
        """The lines of a short report: inputs in full, as only their ends may differ, event and rates in 80 columns."""
        first, second = both(self.pair.data, self.pair.neighbour)
        allowed = ""
        if self.counts.runs and not is_partition(self.event):
            allowed = f"; the claim allows {self.claim.largest(self.shares[1]):.4g}"
        return [
            label("input D", first),
            label("neighbour D′", second),
            short_label("event", rounded(self.description)),
            short_label("on D", f"{self.rates[0]}{allowed}"),
            short_label("on D′", self.rates[1]),
        ]

    def where(self) -> list[str]:
        """The lines of the explanation; empty without an explanation."""
        return [] if self.explanation is None else self.explanation.lines()

    def __str__(self) -> str:
        return "\n".join([f"witness of {named(self.mechanism, self.parameters)}", *self.lines(), *self.where()])

    def __repr__(self) -> str:
        return f"<Witness against {self.claim} of {self.mechanism}: {self.description}>"


def _earlier_kind(where: str, what: str) -> InvalidWitness:
    return InvalidWitness(f"{where} is a witness of {what}: dpwitness 0.2 replays it, later versions do not")


def _place(path: object) -> str:
    """The path as a text. Raises `InvalidData` for a value that is not a path."""
    place = os.fspath(kind("path", path, (str, os.PathLike), "the path of a file", InvalidData))
    try:
        return os.fsdecode(os.fsencode(place))
    except UnicodeEncodeError as error:  # half of a surrogate pair
        raise InvalidData(f"path={brief(path)} must be the name of a file, in valid Unicode") from error
