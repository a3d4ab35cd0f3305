"""Two neighbouring inputs, an event and counts: JSON in, JSON out, never pickle.

Beside them stands where in the code the leak may come from (`Explanation`), for people: it is no evidence.
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
from dpwitness.codec import OMITTED, whole_below
from dpwitness.errors import DPWitnessError, InvalidData, InvalidWitness
from dpwitness.events import Event
from dpwitness.evidence import Counts, bet_on
from dpwitness.files import shown, write_json
from dpwitness.mechanisms.columns import Columns, Entry
from dpwitness.neighbours import Pair, Relation, adjacent, relation_to_json
from dpwitness.neighbours.difference import both
from dpwitness.neighbours.inputs import Input
from dpwitness.neighbours.pair import ATTACK
from dpwitness.results.fields import Alpha, CheckedFields, Count, Parameters, Seed, Texts, read_json, read_result
from dpwitness.results.text import label, named, rate, rounded, wrapped_label
from dpwitness.values import Unreadable, unreadable_in

FORMAT: Final = "dpwitness-witness/2"
#: Of a file of pytest's that holds a witness beside what was tested.
DATABASE_FORMAT: Final = "dpwitness-database/1"
EARLIER: Final = "dpwitness-witness/1"
#: Steps to entries that version 0.2 read within texts.
WITHIN_TEXTS: Final = frozenset({"length of text", "character", "last character", "number in text"})
#: What to do with the file of a whole sweep.
OF_SWEEP: Final = "is of a sweep: give one of the verdicts in it, in a file of its own"


def versions() -> dict[str, str]:
    """What the numbers depend on."""
    packages = {name: _version(name) for name in ("dpwitness", "numpy", "numba", "scipy")}
    return {"python": platform.python_version(), **packages}


@cache
def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed as a package"


#: What was found: noise whose scale follows from the data; probabilities that are too far apart; another number of
#: draws; a branch; noise that is too small for the difference of the outputs; one draw for several entries; an entry
#: that no draw changes.
Cause = Literal["scale", "probabilities", "draws", "branch", "noise", "reuse", "exact"]
#: The least and the largest number of a line.
LINES: Final = (1, 1 << 31)


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation(CheckedFields):
    """The first place at which runs on D and D′ part that draw from the same seeds.

    It is of few runs, which were chosen for nothing, and of the witness's pair alone. So it is no evidence: a line
    where the runs part may be right, and the fault elsewhere.

    Attributes
    ----------
    cause
        What kind of place it is.
    file
        The file's name; below the working folder, or the folder of installed packages, its path from there.
    line
        The line, from 1.
    text
        What happens there, for people.
    on_data, on_neighbour
        What happens there on D, and on D′.
    pairs
        Paired runs that were recorded, each from one seed on both inputs.
    """

    cause: Cause
    file: str
    line: Annotated[int, whole_below(LINES[1], LINES[0])]
    text: str
    on_data: str
    on_neighbour: str
    pairs: Count

    @property
    def basis(self) -> str:
        """What it rests on, for people."""
        return f"an explanation from {self.pairs} recorded pairs of runs with the same seeds, no evidence"

    def __str__(self) -> str:
        return f"line {self.line} of {self.file}: {self.text}"

    def lines(self) -> list[str]:
        """The lines of a report."""
        return [*wrapped_label("where", str(self)), *wrapped_label("", f"({self.basis})")]


@dataclass(frozen=True, slots=True)
class DescribedEvent:
    """An event and its text, as they stand in JSON: one object."""

    event: Event = field(metadata={"json": "flat"})
    description: str = field(default="", metadata={"json": "optional"})


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Witness(CheckedFields):
    """Everything needed to prove again that a mechanism violates a claim.

    `mechanism` is a bundled name, `path/file.py:function` or `package.module:object`; `counts` are those of the confirm
    runs; `estimate` is the search's estimate of the event's probabilities, on which the bet was based. `relation` is
    the relation under which the pair is adjacent (None: not known, as for a third party's that cannot be written);
    `data` is the input that was given, one of the pair's (None: none was given). If outcomes have keys, `layout` says
    which of their entries the event uses; `texts` are those behind numbers of the event. `by_position`: the witness is
    of a compiled mechanism, or from an older file without layouts. `explanation`: where in the code the violation may
    come from, which is no evidence; None if this is not clear. `outcome`, `errors`, `python`: what the check was given
    for these options, as a command line says it; a replay keeps to `errors`.
    """

    format: ClassVar[str] = FORMAT
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
        """The entries that the event looks at; none where outcomes have no keys. Not written where rows have places."""
        entries: tuple[Entry, ...] = () if self.layout is None else self.layout.entries
        if self.by_position:
            entries = OMITTED
        return entries

    @classmethod
    def from_keys(
        cls,
        *,
        event: DescribedEvent,
        entries: tuple[Entry, ...] | None = None,
        versions: Mapping[str, str] = MappingProxyType({}),
        **fields: Any,
    ) -> "Witness":
        """Build it from the keys of its object, and from what they say together."""
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
        """Write it to a file, whole or not at all. Raises `InvalidData`; `InvalidWitness` if it could not be read back.

        That is so if its event is of a class of your own that is not registered, or its relation writes another one.
        """
        place = _place(path)
        try:
            relation_to_json(self.relation)  # what it raises: the witness itself leaves out a relation that fails
            value = self.to_json()
            Witness.from_json(value)
        except Exception as error:  # of any kind: it may be of another package's class
            text = on_one_line(error)
            raise InvalidWitness(f"{shown(place)} was not written, since it could not be read back: {text}") from error
        write_json(place, value)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Witness":
        """Read a witness, or the witness in a saved result or in a file of `.dpwitness/`.

        Raises `InvalidWitness` or `InvalidData`.

        From a pass it reads the witness of the last bits if they leak, else the best candidate.
        """
        place = _place(path)
        return cls._of(read_json(place), shown(place))

    @classmethod
    def from_json(cls, value: object) -> "Witness":
        """Build a witness from unchecked JSON, its own or a result's. Raises `InvalidWitness`."""
        return cls._of(value, "the result")

    @classmethod
    def _of(cls, value: object, where: str) -> "Witness":
        """The witness that parsed JSON is, or that stands within it."""
        if isinstance(value, Mapping) and value.get("format") in (None, DATABASE_FORMAT) and "witness" in value:
            by_bits = value.get("floating_point")
            value = (by_bits if isinstance(by_bits, Mapping) and "witness" in by_bits else value)["witness"]
            if value is None:
                raise InvalidWitness(f"{where} holds no witness: nothing was refuted there")
        if isinstance(value, Mapping) and "sweep" in value:
            raise InvalidWitness(f"{where} {OF_SWEEP}")
        file_format = value.get("format") if isinstance(value, Mapping) else type(value).__name__
        if file_format == EARLIER:
            raise InvalidWitness(
                f"{where} has the format {EARLIER!r}, which does not say which inputs are neighbours: make it "
                "anew with `dpwitness check … --save FILE`"
            )
        if file_format != FORMAT or not isinstance(value, Mapping):
            raise InvalidWitness(
                f"{where} is no witness, as --save of check, bound or profile writes it: its format is "
                f"{brief(file_format)}, not {FORMAT!r}"
            )
        if value.get("observe") is not None:
            raise _of_earlier(where, "runs whose time was part of the outcome")
        witness: Witness = read_result(cls, "witness", value)
        entries = () if witness.layout is None else witness.layout.entries
        if any(word in WITHIN_TEXTS for entry in entries for word, _ in entry.path):
            raise _of_earlier(where, "what stands within texts")
        if not witness._adjacent:
            given = "" if witness.data is None else " with the data in the file"
            raise InvalidWitness(
                f"the inputs {witness.pair} of the witness are not neighbours under the relation in the file{given}: "
                f"{witness.relation!s:.200}"
            )
        return witness

    @property
    def _adjacent(self) -> bool:
        """Whether its relation, if it is known, calls its inputs neighbours. Raises `InvalidWitness`."""
        try:
            return self.relation is None or self.unreadable_inputs or adjacent(self.relation, self.pair, self.data)
        except DPWitnessError:
            raise
        except Exception as error:  # of a relation that was not made for whatever stands in a file
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
        """How often the event happened on D and on D′, for people."""
        counts = self.counts
        return rate(counts.hits, counts.runs), rate(counts.neighbour_hits, counts.runs)

    @property
    def not_reproducible(self) -> str:
        """What a mechanism whose runs no seed repeats says of its counts."""
        counts = self.counts
        if {counts.hits, counts.neighbour_hits} <= {0, counts.runs}:  # as those of a function without randomness
            why = "the mechanism takes no generator; if it draws randomness at all,"
        else:
            why = "the mechanism draws its own randomness:"
        return f"{why} a seed cannot reproduce these counts"

    @property
    def unreadable(self) -> tuple[str, ...]:
        """The parameters that a file could not hold."""
        return tuple(name for name, value in self.parameters.items() if isinstance(value, Unreadable))

    @property
    def unreadable_inputs(self) -> bool:
        """Whether it was read from a file that could not hold its inputs."""
        return any(map(unreadable_in, self.pair.sides))

    def comparison(self, *, tested: bool = True) -> str:
        """What was seen beside what the claim allows, for people; `tested`: whether a claim was."""
        claim = self.claim if tested else None
        bet = bet_on(self.counts, self.claim, self.estimate)
        return bet.parts[0].comparison(self.counts, claim)

    def lines(self, *, tested: bool = True) -> list[str]:
        """Inputs, event, observed rates and, where a claim was tested, what it allows, a line each."""
        first, second = both(self.pair.data, self.pair.neighbour)
        proposal = self.pair.label.removeprefix(ATTACK)
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

    def where(self) -> list[str]:
        """Where in the code it may come from, for people; nothing where that is not known."""
        return [] if self.explanation is None else self.explanation.lines()

    def __str__(self) -> str:
        return "\n".join([f"witness of {named(self.mechanism, self.parameters)}", *self.lines(), *self.where()])

    def __repr__(self) -> str:
        return f"<Witness against {self.claim} of {self.mechanism}: {self.description}>"


def _of_earlier(where: str, what: str) -> InvalidWitness:
    return InvalidWitness(f"{where} is a witness of {what}: dpwitness 0.2 replays it, later versions do not")


def _place(path: object) -> str:
    """A path as a text. Raises `InvalidData` for what is none."""
    place = os.fspath(kind("path", path, (str, os.PathLike), "the path of a file", InvalidData))
    try:
        return os.fsdecode(os.fsencode(place))
    except UnicodeEncodeError as error:  # half of a surrogate pair
        raise InvalidData(f"path={brief(path)} can be the name of no file") from error
