"""The structure of a record: a single value, a tuple, a list or a dict of fields, nested to any depth."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeAlias

import numpy as np

from dpwitness.checks import brief
from dpwitness.codec import AnyCodec, Codec, Definitions, Schema, codec_of
from dpwitness.errors import InvalidNeighbours
from dpwitness.neighbours.domains import Domain, Value, categories, integers, key_of, numbers, text
from dpwitness.neighbours.inputs import require_shallow

#: The internal form of a record: the values of its fields in order, without nesting.
Record = tuple[Value, ...]
#: The largest number of fields of a record: every field is tried, and a file may name any number of fields.
MOST_FIELDS: Final = 10_000
#: The seed of the records that fill a dataset, fixed so that a relation proposes the same pairs each time.
FILL_SEED: Final = 20_060_101


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """A record's structure: a domain alone (one part without a name), or parts by position or by name.

    A part is a `Domain` or `Fields` again.
    """

    parts: tuple["Domain | Fields", ...]
    kind: str = "value"  # "value", "tuple", "list" or "dict"
    names: tuple[str | int, ...] = ()

    @property
    def domains(self) -> tuple[Domain, ...]:
        """The domains of the flat record."""
        domains: list[Domain] = []
        for part in self.parts:
            domains += part.domains if isinstance(part, Fields) else [part]
        return tuple(domains)

    @property
    def flat(self) -> bool:
        """Whether every part is a domain."""
        return not any(isinstance(part, Fields) for part in self.parts)

    @property
    def paths(self) -> tuple[str, ...]:
        """The names of the values of the flat record, for people."""
        labels = self.names if self.kind == "dict" else [f"field {k + 1}" for k in range(len(self.parts))]
        labels = ["value"] if self.kind == "value" else labels
        paths: list[str] = []
        for label, part in zip(labels, self.parts, strict=True):
            inner = part.paths if isinstance(part, Fields) else ("",)
            paths += [f"{label} {path}".strip() for path in inner]
        return tuple(paths)

    def __str__(self) -> str:
        if self.kind == "dict":
            return "{" + ", ".join(f"{name!r}: {part}" for name, part in zip(self.names, self.parts, strict=True)) + "}"
        inside = ", ".join(map(str, self.parts))
        if self.kind == "tuple":
            return f"({inside}{',' if len(self.parts) == 1 else ''})"
        return f"[{inside}]" if self.kind == "list" else inside

    def build(self, record: Record) -> Value:
        """The record as the user's code gets it."""
        return self._build(iter(record))

    def _build(self, values: Iterator[Value]) -> Value:
        items = [part._build(values) if isinstance(part, Fields) else next(values) for part in self.parts]
        if self.kind == "dict":
            return dict(zip(self.names, items, strict=True))
        if self.kind == "tuple":
            return tuple(items)
        if self.kind == "list":
            return items
        return items[0]

    def read_all(self, records: Sequence[object]) -> list[Record] | None:
        """The flat records; None if a record does not match."""
        columns = self._columns(records)
        return None if columns is None else list(zip(*columns, strict=True))

    def _columns(self, records: Sequence[Any]) -> list[list[Value]] | None:
        """The values of each field of the flat records, in their internal form; None if a record does not match."""
        if self.kind == "value":
            given = [records]
        elif all(map(self._has_structure, records)):
            of_each = [r.values() for r in records] if self.kind == "dict" else records
            given = list(zip(*of_each, strict=True)) or [()] * len(self.parts)
        else:
            return None
        columns: list[list[Value]] = []
        for part, values in zip(self.parts, given, strict=True):
            if isinstance(part, Fields):
                inner = part._columns(values)
            else:
                read = part.read_all(values)
                inner = None if read is None else [read]
            if inner is None:
                return None
            columns += inner
        return columns

    def _has_structure(self, record: Any) -> bool:
        """Whether a record has exactly the parts of this structure, whatever they hold."""
        if self.kind == "dict":
            return type(record) is dict and self.has_names(record)
        return type(record) is (tuple if self.kind == "tuple" else list) and len(record) == len(self.parts)

    def has_names(self, given: Iterable[object]) -> bool:
        """Whether names equal the fields' names, in order and in type: True is not the name 1."""
        names = tuple(given)
        return names == self.names and list(map(type, names)) == list(map(type, self.names))

    def middle(self) -> Record:
        """An ordinary record of the fields."""
        return tuple(domain.middle() for domain in self.domains)

    def draw(self, n: int) -> list[Record]:
        """`n` records as real data may hold them, the same records every time."""
        domains, rng = self.domains, np.random.default_rng(FILL_SEED)
        return [tuple(domain.draw(rng) for domain in domains) for _ in range(n)]

    def to_json(self) -> dict[str, object] | None:
        """The structure as JSON values; None where a domain cannot be written."""
        parts = [part.to_json() for part in self.parts]
        if None in parts:
            return None
        if self.kind == "value":
            return parts[0]
        if self.kind != "dict":
            return {self.kind: parts}
        if not all(isinstance(name, str) for name in self.names):  # keys in JSON are texts
            return {"dict": parts, "names": list(self.names)}
        return {"dict": dict(zip(self.names, parts, strict=True))}


def fields_of(given: object) -> Fields:
    """The structure that a domain, or tuples and dicts of domains, describe. Raises `InvalidNeighbours`."""
    if isinstance(given, Fields):
        return given
    require_shallow(given, "a domain")
    part = _part(given, "")
    fields = part if isinstance(part, Fields) else Fields(parts=(part,))
    if not 0 < len(fields.domains) <= MOST_FIELDS:
        raise InvalidNeighbours(f"domain {brief(given)} must have from 1 to {MOST_FIELDS} fields")
    if all(key_of(first) == key_of(second) for first, second, *_ in (domain.ends() for domain in fields.domains)):
        raise InvalidNeighbours(
            f"domain {fields!s:.200}: give one field at least two values, so that records can differ"
        )
    return fields


def _part(given: object, where: str) -> Domain | Fields:
    """A part of a record; `where` names the part in messages and is empty for the whole record."""
    if isinstance(given, Domain):
        return given
    if isinstance(given, Fields):
        return given.parts[0] if given.kind == "value" else given
    if isinstance(given, Mapping):
        for name in given:
            if type(name) not in (str, int):
                raise InvalidNeighbours(
                    f"domain{where}: the name {brief(name)} of a field must be a text or a whole number; of a "
                    "DataFrame, give frame.set_axis(frame.columns.map(str), axis=1)"
                )
        parts = tuple(_part(v, f" of {name!r}") for name, v in given.items())
        return Fields(kind="dict", names=tuple(given), parts=parts)
    if not isinstance(given, tuple | list):
        raise InvalidNeighbours(
            f"domain{where} {brief(given)} must be numbers(low, high), integers(low, high), categories(…), "
            "flags(), text(…), a tuple or a dict of domains, like(examples), or a hypothesis strategy"
        )
    if where and given and all(isinstance(end, int | float) for end in given):
        whole = all(isinstance(end, int) for end in given)
        how = f"integers({given[0]}, {given[-1]})" if whole else "numbers(low, high)"
        raise InvalidNeighbours(
            f"domain{where} {brief(given)} must be a domain: for a range give {how}, for a few values categories(…)"
        )
    kind = "tuple" if isinstance(given, tuple) else "list"
    return Fields(kind=kind, parts=tuple(_part(v, where) for v in given))


def _read(value: object) -> object:
    """The structure that unchecked JSON describes, for `fields_of`. Raises `InvalidNeighbours`."""
    if not isinstance(value, Mapping):
        raise InvalidNeighbours(f"domain {brief(value)} must be an object")
    match dict(value):
        case {"tuple": list(parts), **rest} if not rest:
            return tuple(_read(part) for part in parts)
        case {"list": list(parts), **rest} if not rest:
            return [_read(part) for part in parts]
        case {"dict": dict(parts), **rest} if not rest:
            return {name: _read(part) for name, part in parts.items()}
        case {"dict": list(parts), "names": list(names), **rest} if not rest and len(names) == len(parts):
            if {type(name) for name in names} <= {str, int} and len(set(names)) == len(names):
                return dict(zip(names, (_read(part) for part in parts), strict=True))
    for name, (make, codec, flags) in DOMAINS.items():
        if set(value) == {name, *flags}:
            given = codec.read(name, value[name])
            settings = {flag: codec_of(bool).read(flag, value[flag]) for flag in flags}
            return make(*(given if isinstance(given, tuple) else [given]), **settings)
    known = ", ".join(["tuple", "list", "dict", *DOMAINS])
    raise InvalidNeighbours(f"domain {brief(value)} must hold one of {known}, and its settings")


#: The functions that make domains, by their keys in files, with the codec of their arguments and their flags.
DOMAINS: Final[dict[str, tuple[Callable[..., Domain], AnyCodec, tuple[str, ...]]]] = {
    "numbers": (numbers, codec_of(tuple[float, float]), ("clipped", "missing")),
    "integers": (integers, codec_of(tuple[int, int]), ("clipped", "missing")),
    "categories": (categories, codec_of(tuple[Any, ...]), ("other", "missing")),
    "text": (text, codec_of(int), ("missing",)),
}


def _schema(definitions: Definitions) -> Schema:
    keys = ["tuple", "list", "dict", *DOMAINS]
    return {
        "description": "The values of a field, or the structure of a record.",
        "type": "object",
        "anyOf": [{"required": [key]} for key in keys],
    }


#: Fields with their codec; in JSON an object whose key is a domain's name, "tuple", "list" or "dict".
DescribedFields: TypeAlias = Annotated[Fields, Codec(Fields.to_json, lambda _, value: fields_of(_read(value)), _schema)]
