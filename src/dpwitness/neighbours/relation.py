"""Relations: a relation proposes pairs of inputs, and says whether a claim calls a pair neighbouring.

A relation of another package inherits `Relation` and defines at least `candidates`. The functions here check the pairs
of any relation by its own `contains`: a pair that the relation does not contain is never run.
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

#: The largest number of candidates that the default `contains` compares with a pair: a relation may give any number.
MOST_COMPARED_CANDIDATES: Final = 10_000

T = TypeVar("T")


class Relation(ABC):
    """The pairs of inputs that are neighbours under a claim. Subclasses define `candidates`.

    The search tries `candidates`, then `variations` of the best candidates; a witness is shrunk by the steps of
    `smaller`. `contains` must accept all these pairs.
    """

    kind: ClassVar[str]  # the class's name in files, if it is written by its fields
    #: Whether `contains` accepts all pairs of `candidates`, `variations` and `smaller`, and so is not asked again.
    judged: ClassVar[bool] = False

    @property
    def noun(self) -> str:
        """The word for one entry of an output, for people."""
        return "value"

    @property
    def unit(self) -> str | int | None:
        """The field that names a record's unit, if neighbours differ in all records of one unit; else None."""
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
        """The relation with another sensitivity; the relation itself if it states no sensitivity."""
        if self.sensitivity is None or not is_dataclass(self):
            return self
        return replace(self, sensitivity=sensitivity)

    @abstractmethod
    def candidates(self, data: Data | None = None, *, centre: float = 0.0, scale: float = 1.0) -> Iterator[Pair]:
        """Pairs to try, the most promising kinds first.

        `data`: D as given by the user, or None; `centre`: the value with which the mechanism compares (a threshold);
        `scale`: roughly the scale of its noise. Every pair is used in both directions: leave out mirror images.
        """

    def variations(self, pair: Pair, *, scale: float = 1.0) -> Iterator[Pair]:
        """Pairs similar to `pair`, to try if `pair` shows a large difference; by default no pairs."""
        return iter(())

    def unusual(self, *, centre: float = 0.0, scale: float = 1.0) -> Iterator[Pair]:
        """Many more pairs, of values that code may treat as special; most pairs show nothing. By default no pairs.

        A search makes few runs of each pair, and goes on with the one or two most promising pairs.
        """
        return iter(())

    def smaller(self, pair: Pair) -> Iterator[Pair]:
        """Shrinking steps: pairs that are simpler to read than `pair`, largest steps first; by default no pairs."""
        return iter(())

    def contains(self, pair: Pair, data: Data | None = None) -> bool:
        """Whether the claim calls the two inputs adjacent; symmetric in D and D′, and False for equal inputs.

        If `data` are given, one of the two must equal them: the same numbers, of the same kind and shape. By default
        only the relation's own candidates are adjacent. A relation never changes an input, and compares the contents of
        inputs, not their identity.
        """
        return any(pair.key == proposed.key for proposed in islice(self.candidates(data), MOST_COMPARED_CANDIDATES))

    def take(self, data: object) -> Data:
        """Data of a user in the form that the other methods take. Raises `InvalidNeighbours`.

        By default lists of numbers become arrays, and everything else stays as it is.
        """
        array = as_array(data)
        return as_input(data if array is None else array)

    def alternatives(self) -> "tuple[Relation, ...]":
        """The relations of a check's verdicts: one for each adjacency if none is given, else the relation itself."""
        return (self,)

    def to_json(self) -> dict[str, object] | None:
        """The JSON values from which `relation_from_json` builds the relation; None, the default, is null in files."""
        return None


@contextmanager
def _naming_errors(relation: Relation, method: str) -> Iterator[None]:
    """Turn an exception of another package's relation into `InvalidNeighbours`; our own exceptions pass."""
    try:
        yield
    except DPWitnessError:
        raise
    except Exception as error:
        if is_ours(relation):
            raise
        raise InvalidNeighbours(f"neighbours={brief(relation)}: its {method} raised {class_and_text(error)}") from error


def _check_all(relation: Relation, method: str, wanted: type[T], given: Iterable[object]) -> Iterator[T]:
    """The results of a relation's method. Raises `InvalidNeighbours` for a result of another class than `wanted`."""
    for one in given:
        if not isinstance(one, wanted):
            raise InvalidNeighbours(
                f"neighbours={brief(relation)}: its {method} gave {brief(one)}, which must be a "
                f"dpwitness.neighbours.{wanted.__name__}"
            )
        yield one


def _pairs_of(relation: Relation, method: str, *given: Any, **settings: Any) -> Iterator[Pair]:
    """The pairs of a relation's method. Raises `InvalidNeighbours` if the method raises, or gives other objects."""
    with _naming_errors(relation, method):
        yield from _check_all(relation, method, Pair, getattr(relation, method)(*given, **settings))


def adjacent(relation: Relation, pair: Pair, data: Data | None = None) -> bool:
    """Whether a relation calls the inputs of a pair adjacent; if `data` are given, one input must equal them."""
    with _naming_errors(relation, "contains"):
        return bool(relation.contains(pair, data))


def require_adjacent(relation: Relation, pair: Pair, data: Data | None = None, *, what: str = "the pair") -> None:
    """Raise `InvalidNeighbours`, which names pair and relation, unless the pair is `adjacent` in both directions."""
    for one in (pair, pair.swapped()):
        if not adjacent(relation, one, data):
            given = "" if data is None else " with the given data"
            advice = "give the relation of the claim, or a pair of it"
            if type(relation).contains is Relation.contains:  # the default compares with other candidates
                advice = (
                    "it has no `contains` of its own, so that it contains its first "
                    f"{MOST_COMPARED_CANDIDATES:,} candidates at centre 0 and scale 1 alone, by equal inputs: define "
                    "`contains`"
                )
            raise InvalidNeighbours(
                f"{what} {one} is not one that {relation!s:.200} calls neighbouring{given}: {advice}"
            )


def proposed_pairs(
    relation: Relation, data: Data | None = None, *, centre: float = 0.0, scale: float = 1.0
) -> Iterator[Pair]:
    """The candidates of a relation, not yet checked. Raises `InvalidNeighbours` if the relation raises."""
    return _pairs_of(relation, "candidates", data, centre=centre, scale=scale)


def taken(relation: Relation, data: object) -> Data:
    """The user's data in the form that a relation takes. Raises `InvalidNeighbours`."""
    with _naming_errors(relation, "take"):
        return relation.take(data)


def alternatives(relation: Relation) -> tuple[Relation, ...]:
    """The `alternatives` of a relation. Raises `InvalidNeighbours` if they are not relations."""
    with _naming_errors(relation, "alternatives"):
        return tuple(_check_all(relation, "alternatives", Relation, relation.alternatives()))  # type: ignore[type-abstract]  # of isinstance alone


def adjacent_candidates(
    relation: Relation, data: Data | None = None, *, centre: float = 0.0, scale: float = 1.0
) -> Iterator[Pair]:
    """The candidates of a relation. Raises `InvalidNeighbours` at the first pair that the relation does not contain."""
    pair = None
    for pair in proposed_pairs(relation, data, centre=centre, scale=scale):
        if not relation.judged:
            require_adjacent(relation, pair, data, what="the candidate")
        yield pair
    if pair is None:  # there was a candidate when the mechanism was tried out
        raise InvalidNeighbours(
            f"neighbours={brief(relation)}: its candidates gave no pair the second time: let each call make all pairs"
        )


def adjacent_unusual(relation: Relation, *, centre: float = 0.0, scale: float = 1.0) -> Iterator[Pair]:
    """The unusual pairs of a relation that the relation contains."""
    pairs = _pairs_of(relation, "unusual", centre=centre, scale=scale)
    return (pair for pair in pairs if adjacent(relation, pair))


def adjacent_variations(
    relation: Relation, pair: Pair, data: Data | None = None, *, scale: float = 1.0
) -> Iterator[Pair]:
    """The variations of a pair within the relation; if data are given, the variations with these data as an input."""
    return _within(relation, _pairs_of(relation, "variations", pair, scale=scale), data)


def smaller(relation: Relation, pair: Pair, data: Data | None = None) -> Iterator[Pair]:
    """The shrinking steps of a pair within the relation; no steps if data are given, since data must not change."""
    return iter(()) if data is not None else _within(relation, _pairs_of(relation, "smaller", pair))


def _within(relation: Relation, pairs: Iterator[Pair], data: Data | None = None) -> Iterator[Pair]:
    """The pairs that a relation contains; if `data` are given, the pairs with these data as an input."""
    return pairs if data is None and relation.judged else (pair for pair in pairs if adjacent(relation, pair, data))


#: A function that builds a relation from the keys of a file.
Reader = Callable[[Mapping[str, Any]], Relation]
RelationClass = TypeVar("RelationClass", bound=type[Relation])

#: The readers of relations in files, by their kind.
_RELATION_READERS: Final[dict[str, Reader]] = {}
#: The relations that are written and read by their fields.
_REGISTRY: Final = Family()


def register_relation(kind: str, reader: Reader) -> None:
    """Let `relation_from_json` read another kind of relation, also from witness files.

    `kind` is the value that the relation's `to_json` writes under "kind"; `reader` gets all other keys and raises
    `InvalidNeighbours`. Raises `ValueError` for a `kind` that is not a text or is taken, and for another `reader`.
    """
    if not isinstance(kind, str):
        raise ValueError(f"kind={brief(kind)} must be a text")
    if not callable(reader):
        raise ValueError(f"reader={brief(reader)} must be a function that makes the relation from the keys of a file")
    require_free(kind, reader, _REGISTRY.kinds.get(kind, reader))
    _RELATION_READERS[kind] = reader


def written_by_fields(kind: RelationClass) -> RelationClass:
    """Let witness files hold a relation that is written and read by its fields; a class decorator."""
    _REGISTRY.register(kind)
    _RELATION_READERS[kind.kind] = partial(_read_fields, kind)
    return kind


def _read_fields(kind: type[Relation], value: Mapping[str, object]) -> Relation:
    names = [key.name for key in keys_of(kind)[1:]]
    try:
        if not set(value) <= set(names):  # an unknown key may narrow the relation
            raise KeyError
        relation: Relation = read_fields(kind, kind.kind, {"kind": kind.kind, **value})
    except KeyError:
        given = ", ".join(sorted(map(str, value))) or "nothing"
        raise InvalidNeighbours(f"a relation of kind {kind.kind} holds {', '.join(names)}, not {given:.80}") from None
    except ValueError as error:
        raise error if isinstance(error, InvalidNeighbours) else InvalidNeighbours(str(error)) from error
    return relation


def relation_from_json(value: Any) -> Relation:
    """Build a relation from unchecked JSON; no code of the file is run. Raises `InvalidNeighbours`."""
    require_shallow(value, "a relation")
    kind = value.get("kind") if isinstance(value, Mapping) else None
    if not isinstance(kind, str):
        raise InvalidNeighbours(
            f"relation {brief(value)} must be an object whose kind is one of {', '.join(_RELATION_READERS)}"
        )
    if kind not in _RELATION_READERS:
        raise UnknownKind.of("relation", kind, _RELATION_READERS)
    relation: object = _RELATION_READERS[kind]({name: item for name, item in value.items() if name != "kind"})
    if not isinstance(relation, Relation):
        raise InvalidNeighbours(
            f"the reader of relations of kind {kind!r} gave {brief(relation)}, which must be a "
            "dpwitness.neighbours.Relation"
        )
    return relation


def relation_to_json(relation: Relation | None) -> dict[str, object] | None:
    """A relation as JSON values; None if it has no JSON. Raises `InvalidNeighbours` if its `to_json` raises."""
    if relation is None:
        return None
    with _naming_errors(relation, "to_json"):
        return relation.to_json()


def _write(relation: Relation) -> dict[str, object] | None:
    """A relation as JSON that can be read back; None for a relation that only another package could build again."""
    try:
        written = relation_to_json(relation)
        relation_from_json(written)
    except InvalidNeighbours:  # the result is valid without its relation
        return None
    return written


register(Relation, Codec(_write, lambda _, value: relation_from_json(value), _REGISTRY.schema))


def same_relation(first: Relation | None, second: Relation | None) -> bool:
    """Whether two relations call the same pairs adjacent, judged by their JSON; False without JSON."""
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
        """The list of the pairs, since their adjacency has no name."""
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
        """The inputs of each pair, as files hold them, without the label."""
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
    # Arrays of different dtypes have different keys even if their numbers are equal.
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
