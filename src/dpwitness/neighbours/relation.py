"""Relations: a relation proposes pairs of inputs, and says whether a claim calls a pair neighbouring.

A relation of another package inherits `Relation` and gives at least `candidates`; everything else has a default. The
functions here hold any relation to its own `contains`: a pair that it does not contain is never run.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, is_dataclass, replace
from functools import partial
from itertools import islice
from typing import Any, ClassVar, Final, TypeVar

import numpy as np
from typing_extensions import override

from dpwitness.checks import brief, class_and_text, is_ours, items
from dpwitness.checks import kind as check_kind
from dpwitness.codec import Codec, Family, JsonFields, UnknownKind, keys_of, read_fields, register, require_free
from dpwitness.errors import DPWitnessError, InvalidNeighbours
from dpwitness.frames import frames_of
from dpwitness.neighbours.inputs import Data, Input, as_array, as_input, require_shallow
from dpwitness.neighbours.pair import Pair, holds

#: Candidates compared with a pair at most, by a relation without a `contains` of its own: it may give any number.
MOST_COMPARED: Final = 10_000

T = TypeVar("T")


class Relation(ABC):
    """The pairs of inputs that are neighbours under a claim. A relation inherits this class and defines `candidates`.

    The search tries `candidates`, then `variations` of the best ones; a witness is shrunk by the steps of `smaller`.
    `contains` must accept all these pairs.
    """

    kind: ClassVar[str]  # its name in files, where it is written by its fields
    #: Whether `candidates`, `variations` and `smaller` give those pairs alone that `contains` accepts: to ask again
    #: takes as long as to make them.
    judged: ClassVar[bool] = False

    @property
    def noun(self) -> str:
        """The word for one entry of an output, for people."""
        return "value"

    @property
    def unit(self) -> str | int | None:
        """The field that says whose a record is, where neighbours differ in all records of one unit; else None."""
        return None

    @property
    def adjacency(self) -> str | None:
        """The name of the adjacency of datasets, such as "add-remove"; None if it has no name or is left open."""
        return None

    @property
    def described(self) -> str:
        """The relation as a report describes it; by default its text."""
        return str(self)

    @property
    def sensitivity(self) -> float | None:
        """The largest difference of an answer between neighbours; None if the relation states no sensitivity."""
        return None

    def of_sensitivity(self, sensitivity: float) -> "Relation":
        """The relation with another sensitivity, if it has a sensitivity."""
        if self.sensitivity is None or not is_dataclass(self):
            return self
        return replace(self, sensitivity=sensitivity)

    @abstractmethod
    def candidates(self, data: Data | None = None, *, centre: float = 0.0, scale: float = 1.0) -> Iterator[Pair]:
        """Pairs to try, the most promising kinds first.

        `data`: D as given by the user, or None; `centre`: the value that the mechanism compares with (a threshold);
        `scale`: roughly the scale of its noise. Every pair is used in both directions: leave out mirror images.
        """

    def variations(self, pair: Pair, *, scale: float = 1.0) -> Iterator[Pair]:
        """Pairs like this one, to try if it shows a large difference; by default no pairs."""
        return iter(())

    def unusual(self, *, centre: float = 0.0, scale: float = 1.0) -> Iterator[Pair]:
        """Many more pairs, of values that code may treat as special; most show nothing. By default no pairs.

        A search makes few runs of each, and goes on with the one or two that promise most.
        """
        return iter(())

    def smaller(self, pair: Pair) -> Iterator[Pair]:
        """Shrinking steps: pairs that are simpler to read than this one, largest steps first; by default no pairs."""
        return iter(())

    def contains(self, pair: Pair, data: Data | None = None) -> bool:
        """Whether the claim calls the two inputs adjacent; symmetric in D and D′, and False for equal inputs.

        If `data` are given, one of the two must equal them: the same numbers, of the same kind and shape. By default
        only the relation's own candidates are adjacent. A relation changes no input that it gave or is asked about, and
        compares the contents of inputs, not whether they are one object.
        """
        return any(pair.key == proposed.key for proposed in islice(self.candidates(data), MOST_COMPARED))

    def take(self, data: object) -> Data:
        """Data of a user, in the form in which the other methods take them. Raises `InvalidNeighbours`.

        By default lists of numbers become arrays, and everything else stays as it is.
        """
        array = as_array(data)
        return as_input(data if array is None else array)

    def alternatives(self) -> "tuple[Relation, ...]":
        """The relations with a verdict each: several if the adjacency is left open, else the relation itself."""
        return (self,)

    def to_json(self) -> dict[str, object] | None:
        """The JSON values from which `relation_from_json` builds the relation again; by default None.

        A witness file then holds null for it.
        """
        return None


@contextmanager
def _naming_errors(relation: Relation, method: str) -> Iterator[None]:
    """Turn an exception of another package's relation into `InvalidNeighbours`; a fault of ours stays as it is."""
    try:
        yield
    except DPWitnessError:
        raise
    except Exception as error:
        if is_ours(relation):
            raise
        raise InvalidNeighbours(f"neighbours={brief(relation)}: its {method} raised {class_and_text(error)}") from error


def _check_all(relation: Relation, method: str, wanted: type[T], given: Iterable[object]) -> Iterator[T]:
    """The results of a method of a relation, each checked to be of a class. Raises `InvalidNeighbours`."""
    for one in given:
        if not isinstance(one, wanted):
            raise InvalidNeighbours(
                f"neighbours={brief(relation)}: its {method} gave {brief(one)}, which must be a "
                f"dpwitness.neighbours.{wanted.__name__}"
            )
        yield one


def _pairs_of(relation: Relation, method: str, *given: Any, **settings: Any) -> Iterator[Pair]:
    """The pairs of a method of a relation. Raises `InvalidNeighbours` where it raises, or gives other objects."""
    with _naming_errors(relation, method):
        yield from _check_all(relation, method, Pair, getattr(relation, method)(*given, **settings))


def adjacent(relation: Relation, pair: Pair, data: Data | None = None) -> bool:
    """Whether a relation calls the two inputs of a pair adjacent; one of them must be `data` where data are given."""
    with _naming_errors(relation, "contains"):
        return bool(relation.contains(pair, data))


def require_adjacent(relation: Relation, pair: Pair, data: Data | None = None, *, what: str = "the pair") -> None:
    """Raise `InvalidNeighbours`, which names pair and relation, unless the pair is `adjacent` in both directions."""
    for one in (pair, pair.swapped()):
        if not adjacent(relation, one, data):
            given = "" if data is None else " with the given data"
            advice = "give the relation of the claim, or a pair of it"
            if type(relation).contains is Relation.contains:  # which asks for candidates once more
                advice = (
                    f"it has no `contains` of its own, so that it contains its first {MOST_COMPARED:,} candidates at "
                    "centre 0 and scale 1 alone, by equal inputs: define `contains`"
                )
            raise InvalidNeighbours(
                f"{what} {one} is not one that {relation!s:.200} calls neighbouring{given}: {advice}"
            )


def proposed_pairs(
    relation: Relation, data: Data | None = None, *, centre: float = 0.0, scale: float = 1.0
) -> Iterator[Pair]:
    """The candidates of a relation, not yet judged. Raises `InvalidNeighbours` where the relation raises."""
    return _pairs_of(relation, "candidates", data, centre=centre, scale=scale)


def taken(relation: Relation, data: object) -> Data:
    """The user's data, in the form in which a relation takes them. Raises `InvalidNeighbours`."""
    with _naming_errors(relation, "take"):
        return relation.take(data)


def alternatives(relation: Relation) -> tuple[Relation, ...]:
    """The relations of an open adjacency, each with its own verdict. Raises `InvalidNeighbours` for other objects."""
    with _naming_errors(relation, "alternatives"):
        return tuple(_check_all(relation, "alternatives", Relation, relation.alternatives()))  # type: ignore[type-abstract]  # of isinstance alone


def adjacent_candidates(
    relation: Relation, data: Data | None = None, *, centre: float = 0.0, scale: float = 1.0
) -> Iterator[Pair]:
    """The candidates of a relation. Raises `InvalidNeighbours` at the first that the relation does not contain."""
    pair = None
    for pair in proposed_pairs(relation, data, centre=centre, scale=scale):
        if not relation.judged:
            require_adjacent(relation, pair, data, what="the candidate")
        yield pair
    if pair is None:  # it gave one where the mechanism was tried out
        raise InvalidNeighbours(
            f"neighbours={brief(relation)}: its candidates gave no pair the second time: let each call make all of them"
        )


def adjacent_unusual(relation: Relation, *, centre: float = 0.0, scale: float = 1.0) -> Iterator[Pair]:
    """The unusual pairs of a relation that the relation contains."""
    pairs = _pairs_of(relation, "unusual", centre=centre, scale=scale)
    return (pair for pair in pairs if adjacent(relation, pair))


def adjacent_variations(
    relation: Relation, pair: Pair, data: Data | None = None, *, scale: float = 1.0
) -> Iterator[Pair]:
    """The variations of a pair that the relation contains and, if data are given, that hold the data."""
    return _within(relation, _pairs_of(relation, "variations", pair, scale=scale), data)


def smaller(relation: Relation, pair: Pair, data: Data | None = None) -> Iterator[Pair]:
    """Shrinking steps of a pair within the relation; no steps if data are given, since data stay as they are."""
    return iter(()) if data is not None else _within(relation, _pairs_of(relation, "smaller", pair))


def _within(relation: Relation, pairs: Iterator[Pair], data: Data | None = None) -> Iterator[Pair]:
    """The pairs that a relation contains and that hold the data, if given."""
    return pairs if data is None and relation.judged else (pair for pair in pairs if adjacent(relation, pair, data))


#: A function that reads a relation from the keys of a file.
Reader = Callable[[Mapping[str, Any]], Relation]
Kind = TypeVar("Kind", bound=type[Relation])

#: The readers of relations in files, by their kind.
_READERS: Final[dict[str, Reader]] = {}
#: The relations that are written and read by their fields.
_FAMILY: Final = Family()


def register_relation(kind: str, reader: Reader) -> None:
    """Let `relation_from_json`, and so witness files, hold another kind of relation.

    `kind` is the value that its `to_json` writes under that key; `reader` gets the rest and raises `InvalidNeighbours`.
    Raises `ValueError` if `kind` is not a text or is one of this package, and if `reader` is not a function.
    """
    if not isinstance(kind, str):
        raise ValueError(f"kind={brief(kind)} must be a text")
    if not callable(reader):
        raise ValueError(f"reader={brief(reader)} must be a function that makes the relation from the keys of a file")
    require_free(kind, reader, _FAMILY.kinds.get(kind, reader))
    _READERS[kind] = reader


def written_by_fields(kind: Kind) -> Kind:
    """Let witness files hold a relation that is written and read by its fields; a class decorator."""
    _FAMILY.register(kind)
    _READERS[kind.kind] = partial(_read_fields, kind)
    return kind


def _read_fields(kind: type[Relation], value: Mapping[str, object]) -> Relation:
    names = [key.name for key in keys_of(kind)[1:]]
    try:
        if not set(value) <= set(names):  # a key that is not known may narrow the relation
            raise KeyError
        relation: Relation = read_fields(kind, kind.kind, {"kind": kind.kind, **value})
    except KeyError:
        given = ", ".join(sorted(map(str, value))) or "nothing"
        raise InvalidNeighbours(f"a relation of kind {kind.kind} holds {', '.join(names)}, not {given:.80}") from None
    except ValueError as error:
        raise error if isinstance(error, InvalidNeighbours) else InvalidNeighbours(str(error)) from error
    return relation


def relation_from_json(value: Any) -> Relation:
    """Build a relation from unchecked JSON; no code of the file is run.

    Raises `InvalidNeighbours`.
    """
    require_shallow(value, "a relation")
    kind = value.get("kind") if isinstance(value, Mapping) else None
    if not isinstance(kind, str):
        raise InvalidNeighbours(f"relation {brief(value)} must be an object whose kind is one of {', '.join(_READERS)}")
    if kind not in _READERS:
        raise UnknownKind.of("relation", kind, _READERS)
    relation: object = _READERS[kind]({name: item for name, item in value.items() if name != "kind"})
    if not isinstance(relation, Relation):
        raise InvalidNeighbours(
            f"the reader of relations of kind {kind!r} gave {brief(relation)}, which must be a "
            "dpwitness.neighbours.Relation"
        )
    return relation


def relation_to_json(relation: Relation | None) -> dict[str, object] | None:
    """A relation as JSON values; None where it cannot be written. Raises `InvalidNeighbours` if its `to_json` does."""
    if relation is None:
        return None
    with _naming_errors(relation, "to_json"):
        return relation.to_json()


def _write(relation: Relation) -> dict[str, object] | None:
    """A relation as JSON that can be read back; None for a relation that only another package could build again."""
    try:
        written = relation_to_json(relation)
        relation_from_json(written)
    except InvalidNeighbours:  # the result that it is of stands without it
        return None
    return written


register(Relation, Codec(_write, lambda _, value: relation_from_json(value), _FAMILY.schema))


def same_relation(first: Relation | None, second: Relation | None) -> bool:
    """Whether two relations call the same pairs adjacent, judged by their JSON; False if one has no JSON."""
    if first is second:
        return True
    # As texts: 1 and 1.0 are equal, but integers and floats are different inputs.
    texts = [json.dumps(relation_to_json(relation), sort_keys=True) for relation in (first, second)]
    return texts[0] == texts[1] != "null"


@written_by_fields
@dataclass(frozen=True, slots=True)
class Pairs(JsonFields, Relation):
    """Exactly the pairs that the user gives, in either direction."""

    kind: ClassVar[str] = "pairs"
    json_keys: ClassVar[tuple[str, ...]] = ("kind", "given: inputs", "noun")

    given: tuple[Pair, ...]
    noun: str = "value"
    _keys: frozenset[Hashable] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_kind("noun", self.noun, str, "a text", InvalidNeighbours)
        given = items("given", self.given, InvalidNeighbours)
        if not all(isinstance(pair, Pair) for pair in given):
            raise InvalidNeighbours(
                f"given={brief(given)} must hold pairs as pairs(…) makes them: give pairs((D, D′), …)"
            )
        object.__setattr__(self, "given", tuple(given))
        object.__setattr__(self, "_keys", frozenset(pair.key for pair in self.given))

    def __str__(self) -> str:
        return f"pairs({self._listed})"

    @property
    @override
    def described(self) -> str:
        """The list of the pairs: they have no adjacency with a name."""
        return f"the pairs given: {self._listed}"

    @property
    def _listed(self) -> str:
        shown = [f"({str(pair).replace(' and ', ', ')})" for pair in self.given[:3]]
        more = [f"and {len(self.given) - len(shown)} more"] if len(self.given) > len(shown) else []
        return ", ".join([*shown, *more])

    @override
    def candidates(self, data: Data | None = None, *, centre: float = 0.0, scale: float = 1.0) -> Iterator[Pair]:
        if data is not None:
            raise InvalidNeighbours("explicit pairs already hold the data: give either pairs or data")
        yield from self.given

    @override
    def contains(self, pair: Pair, data: Data | None = None) -> bool:
        return pair.key in self._keys and (data is None or holds(pair, data))

    @override
    def take(self, data: object) -> Data:
        return as_input(data)

    @property
    def inputs(self) -> list[tuple[Input, Input]]:
        """The inputs of each pair, without labels, which no file holds."""
        return [pair.sides for pair in self.given]

    @classmethod
    def from_keys(cls, given: list[tuple[Data, Data]], noun: str) -> "Pairs":
        """Build the relation from the keys of a file. Raises `InvalidNeighbours`."""
        return cls(pairs(*given).given, noun)


def pairs(*given: Sequence[Data]) -> Pairs:
    """Explicit pairs of inputs of any kind: `pairs(([1, 1], [2, 0]), …)`. Raises `InvalidNeighbours` for equal inputs.

    The mechanism gets each input as given here; a compiled mechanism gets lists of numbers as arrays.
    """
    if not given:
        raise InvalidNeighbours("no pair was given")
    # The usual slip: D and D′ given as if each were a pair.
    hint = f": for one pair of two inputs give pairs(({brief(given[0])}, {brief(given[1])}))" if len(given) == 2 else ""
    return Pairs(tuple(pair if isinstance(pair, Pair) else _checked_pair(pair, hint) for pair in given))


def _checked_pair(given: Data, hint: str) -> Pair:
    """Two different inputs as a pair. Raises `InvalidNeighbours`."""
    if not isinstance(given, Sequence | np.ndarray) or isinstance(given, str | bytes):
        raise InvalidNeighbours(f"a pair is two inputs, not {brief(given)}" + (hint or ": give pairs((D, D′), …)"))
    count = 1 if isinstance(given, np.ndarray) and not given.ndim else len(given)
    if count != 2:
        raise InvalidNeighbours(f"a pair is two inputs, not {count}, {brief(given)}{hint}")
    pair = Pair(as_input(given[0]), as_input(given[1]))
    # Arrays of the same numbers may be of different kinds.
    if len(pair.key) == 1 or (all(isinstance(side, np.ndarray) for side in pair.sides) and np.array_equal(*pair.sides)):
        raise InvalidNeighbours(f"pair {pair}: both inputs are the same, so nothing could ever be found{hint}")
    return pair


def as_relation(given: Relation | Sequence[Data]) -> Relation:
    """A given relation, or a list of pairs as a relation. Raises `InvalidNeighbours` for any other object."""
    if isinstance(given, Relation):
        with _naming_errors(given, "adjacency"):
            name: object = given.adjacency
        if name is not None and not isinstance(name, str):
            raise InvalidNeighbours(
                f"neighbours={brief(given)}: its adjacency is {brief(name)}, which must be a text or None"
            )
        return given
    if not isinstance(given, list | tuple):
        own = hasattr(given, "candidates") and not isinstance(given, type)
        if frames_of(given) is not None:
            raise InvalidNeighbours("neighbours= is a table, not a relation: give dpw.records(dpw.like(frame))")
        raise InvalidNeighbours(
            f"neighbours={brief(given)} must be a relation, such as records(…) or queries(…), or a list of pairs"
            + ("; a relation of your own inherits dpwitness.neighbours.Relation" if own else "")
        )
    return pairs(*given)
