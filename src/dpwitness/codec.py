"""JSON derived from types: how values are written, read back and checked, and the JSON Schema that describes them.

========================================  ===========================================================================
``str``, ``int``, ``float``, ``bool``     themselves; a float is finite, an int has 64 bits
``list[T]``, ``tuple[T, …]``              a list
``tuple[A, B]``                           a list of exactly these entries
``dict[str, T]``                          an object
``A | None``                              null, or the JSON of ``A``
``A | B``                                 an object of one of these classes, told apart by its first key, a constant
a dataclass                               an object of its fields
``Annotated[T, codec]``                   as the `Codec` says
========================================  ===========================================================================

The object of a dataclass begins with the class's `kind`, if that is a text. Then come its fields. Every field is
written, and a file that lacks a field is damaged, even if the constructor has a default. The metadata of a field change
this: ``{"json": "optional"}``: older files lack the field; ``"sparse"``: the field is written only if it differs from
its default; ``"flat"``: the field is a dataclass whose keys are among the object's own.

Two attributes of a class change more. `json_keys` lists the keys in order: fields, constants (a ``ClassVar[str]``) or
properties, as ``"key"`` or as ``"key: attribute"``. `from_keys`, a class method, replaces the constructor and gets the
keys by name; files may lack keys for which it has a default. A property that `from_keys` does not take is written for
people and never read.

Files are unchecked. `Codec.read` checks each value and runs no code of a file. It raises `KeyError` for a missing key
and `ValueError`, with one line that names the key, for a wrong value.
"""

import inspect
import sys
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import cache, partial
from operator import attrgetter
from typing import Annotated, Any, ClassVar, Final, Generic, Literal, TypeAlias, TypeVar, Union, get_args, get_origin
from typing import get_type_hints as hints_of

from dpwitness import checks
from dpwitness.checks import brief, finite, text
from dpwitness.errors import InvalidClaim, InvalidNeighbours, InvalidWitness

T = TypeVar("T")
#: A type as an annotation writes it.
TypeHint: TypeAlias = Any
#: A JSON Schema.
Schema = dict[str, Any]
#: The JSON Schemas to which another schema refers, by name.
Definitions = dict[str, Schema]

#: The value of a property whose key is not written.
OMITTED_VALUE: Final[Any] = object()


@dataclass(frozen=True, slots=True)
class Codec(Generic[T]):
    """The functions that write values of a type as JSON, read JSON (the name is for errors), and make the schema."""

    write: Callable[[T], Any]
    read: Callable[[str, object], T]
    schema: Callable[[Definitions], Schema] = lambda _: {}


AnyCodec: TypeAlias = Codec[Any]


class JsonFields:
    """A base of dataclasses whose JSON follows from their fields."""

    __slots__ = ()

    def to_json(self) -> dict[str, Any]:
        """The JSON values from which `read_fields` builds the object."""
        return write_fields(self)


def checked(check: Callable[[str, object], T], **schema: object) -> Codec[T]:
    """The codec of a JSON type; `check` takes a name and a value, returns the value or raises `ValueError`."""
    return Codec(lambda value: value, check, lambda _: dict(schema))


def whole_below(limit: int, least: int = 0) -> Codec[int]:
    """The codec of integers in [least, limit), where `limit` is a power of 2. Floats are rejected, 1.0 too."""

    def check(name: str, value: object) -> int:
        if type(value) is not int or not least <= value < limit:
            above = f" and at least {least}" if least >= 0 else ""
            raise ValueError(f"{name}={brief(value)} must be a whole number below 2^{limit.bit_length() - 1}{above}")
        return value

    return checked(check, type="integer", minimum=least, exclusiveMaximum=limit)


def or_infinite(infinity: float, other: TypeHint = float) -> Codec[float]:
    """The codec that writes `infinity`, which JSON lacks, as null, and other numbers by the codec of `other`."""
    codec = codec_of(other)
    return Codec(
        lambda value: None if value == infinity else codec.write(value),
        lambda name, value: infinity if value is None else codec.read(name, value),
        lambda definitions: {"anyOf": [codec.schema(definitions), {"type": "null"}]},
    )


def listed(name: str, value: object) -> list[object]:
    """The value as a list. Raises `ValueError`."""
    return list(checks.kind(name, value, (list, tuple), "a list", ValueError))


def mapping(name: str, value: object) -> dict[str, object]:
    """The value as a dict. Raises `ValueError`."""
    return dict(checks.kind(name, value, Mapping, "an object", ValueError))


def _text(name: str, value: object) -> str:
    return text(name, checks.kind(name, value, str, "a text", ValueError))


#: The codecs of types that do not consist of other types, by type; `register` adds codecs.
_known: dict[object, AnyCodec] = {
    str: checked(_text, type="string"),
    bool: checked(lambda name, value: checks.kind(name, value, bool, "true or false", ValueError), type="boolean"),
    int: Codec(lambda value: value, whole_below(1 << 63, -(1 << 63)).read, lambda _: {"type": "integer"}),
    float: Codec(float, finite, lambda _: {"type": "number"}),
    type(None): checked(lambda *_: None, type="null"),
    dict: checked(mapping, type="object"),
    Any: checked(lambda _, value: value),
}


def register(kind: TypeHint, codec: AnyCodec) -> None:
    """Let a codec write and read the values of a protocol, or of a class that is not a dataclass."""
    _known[kind] = codec


@cache
def codec_of(kind: TypeHint) -> AnyCodec:
    """The codec of a type."""
    if kind in _known:
        return _known[kind]
    origin: Any = get_origin(kind)
    arguments = get_args(kind)
    if origin is Annotated:
        return arguments[1] if isinstance(arguments[1], Codec) else codec_of(arguments[0])
    if origin in (Union, types.UnionType):
        parts = [part for part in arguments if part is not type(None)]
        one = codec_of(parts[0]) if len(parts) == 1 else _any_of(parts)
        return _optional(one) if len(parts) < len(arguments) else one
    if origin is Literal:
        return _literal(arguments)
    if origin is list or (origin is tuple and arguments[-1] is Ellipsis):
        return _list(codec_of(arguments[0]), origin)
    if origin is tuple:
        return _fixed([codec_of(part) for part in arguments])
    if origin in (dict, Mapping):
        return _object_of(codec_of(arguments[1]))
    if hasattr(kind, "from_json"):
        return Codec(write_object, lambda _, value: kind.from_json(value), lambda d: _schema(kind, d))
    if is_dataclass(kind) or hasattr(kind, "json_keys"):
        return Codec(write_fields, lambda name, value: read_fields(kind, name, value), lambda d: _schema(kind, d))
    raise TypeError(f"JSON has no form of the type {kind!r}")


def _optional(codec: AnyCodec) -> AnyCodec:
    return Codec(
        lambda value: None if value is None else codec.write(value),
        lambda name, value: None if value is None else codec.read(name, value),
        lambda definitions: {"anyOf": [codec.schema(definitions), {"type": "null"}]},
    )


def _literal(values: tuple[object, ...]) -> AnyCodec:
    def check(name: str, value: object) -> object:
        if value not in values:
            raise ValueError(f"{name}={brief(value)} must be {' or '.join(map(repr, values))}")
        return value

    return checked(check, **({"const": values[0]} if len(values) == 1 else {"enum": list(values)}))


def _list(codec: AnyCodec, make: Callable[[list[object]], object]) -> AnyCodec:
    return Codec(
        lambda values: [codec.write(value) for value in values],
        lambda name, value: make([codec.read(name, item) for item in listed(name, value)]),
        lambda definitions: {"type": "array", "items": codec.schema(definitions)},
    )


def _fixed(codecs: list[AnyCodec]) -> AnyCodec:
    def read(name: str, value: object) -> tuple[object, ...]:
        entries = listed(name, value)
        if len(entries) != len(codecs):
            raise ValueError(f"{name}={brief(value)} must be a list of {len(codecs)} entries")
        return tuple(codec.read(name, entry) for codec, entry in zip(codecs, entries, strict=True))

    def schema(definitions: Definitions) -> Schema:
        items = [codec.schema(definitions) for codec in codecs]
        return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}

    return Codec(lambda values: [codec.write(v) for codec, v in zip(codecs, values, strict=True)], read, schema)


def _object_of(codec: AnyCodec) -> AnyCodec:
    return Codec(
        lambda values: {name: codec.write(value) for name, value in values.items()},
        lambda name, value: {_text(name, key): codec.read(key, item) for key, item in mapping(name, value).items()},
        lambda definitions: {"type": "object", "additionalProperties": codec.schema(definitions)},
    )


def _any_of(classes: list[TypeHint]) -> AnyCodec:
    """The codec of a union of classes, whose objects differ in their first key, a constant."""

    def read(name: str, value: object) -> Any:
        key = keys_of(classes[0])[0].name
        by_constant = {keys_of(one)[0].constant: one for one in classes}
        constant = value.get(key) if isinstance(value, Mapping) else None
        if not isinstance(constant, str) or constant not in by_constant:
            wanted = " or ".join(map(str, by_constant))
            raise ValueError(f"{name}={brief(value)} must be an object whose {key} is {wanted}")
        return codec_of(by_constant[constant]).read(name, value)

    schemas = [codec_of(one).schema for one in classes]
    return Codec(write_object, read, lambda definitions: {"anyOf": [schema(definitions) for schema in schemas]})


def write_object(value: object) -> dict[str, object]:
    """An object as JSON values: by its own `to_json`, or a dataclass by its fields."""
    own = getattr(value, "to_json", None)
    return dict(own() if callable(own) else write_fields(value))


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A key of a dataclass's object in JSON."""

    name: str
    get: Callable[[Any], Any]
    codec: AnyCodec
    argument: str | None = None  # the parameter of `from_keys` or the constructor; None: the key is not read back
    constant: str | None = None
    default: Any = inspect.Parameter.empty  # the value for a file without the key
    mode: str | None = None  # "optional", "sparse" or "flat", from the metadata of the field


@cache
def keys_of(kind: TypeHint) -> tuple[Key, ...]:
    """The keys of a class's objects in JSON, in order."""
    own = {one.name: one for one in fields(kind) if one.init} if is_dataclass(kind) else {}
    maker = getattr(kind, "from_keys", None)
    asked = inspect.signature(maker).parameters if maker else {}
    tag = ("kind",) if isinstance(getattr(kind, "kind", None), str) else ()
    hints = hints_of(kind, include_extras=True)
    keys = []
    for entry in getattr(kind, "json_keys", (*tag, *own)):
        name, _, attribute = entry.partition(": ")
        attribute = attribute or name
        value, hint = inspect.getattr_static(kind, attribute, None), hints.get(attribute)
        key = partial(Key, name=name, get=attrgetter(attribute))
        if isinstance(value, property):
            hint = hints_of(value.fget, include_extras=True)["return"]
        elif hint is None or get_origin(hint) is ClassVar:
            keys.append(key(codec=_literal((value,)), constant=value))
            continue
        default, mode = _default(own[attribute]) if attribute in own else (inspect.Parameter.empty, None)
        if name in asked and asked[name].default is not inspect.Parameter.empty:
            default = asked[name].default
        derived = isinstance(value, property) and name not in asked
        argument = None if derived else name if maker else attribute
        keys.append(key(codec=codec_of(hint), argument=argument, default=default, mode=mode))
    return tuple(keys)


def _default(one: "Field[Any]") -> tuple[object, str | None]:
    """The default of a field whose key a file lacks, and the JSON mode in the field's metadata."""
    mode = one.metadata.get("json")
    if mode not in ("optional", "sparse"):
        return inspect.Parameter.empty, mode
    return (one.default if one.default_factory is MISSING else one.default_factory()), mode


def write_fields(value: object) -> dict[str, object]:
    """A dataclass as JSON values, by its fields."""
    written: dict[str, object] = {}
    kind: TypeHint = type(value)
    for key in keys_of(kind):
        part = key.get(value)
        if key.mode == "flat":
            written |= key.codec.write(part)
        elif part is not OMITTED_VALUE and not (key.mode == "sparse" and part == key.default):
            written[key.name] = key.codec.write(part)
    return written


def read_fields(kind: TypeHint, name: str, value: object) -> Any:
    """The object that `write_fields` wrote. Raises `KeyError` for a missing key, `ValueError` for a wrong value."""
    given = mapping(name, value)
    arguments = {}
    for key in keys_of(kind):
        if key.argument is None and key.constant is None:
            continue  # written for people
        if key.mode == "flat":
            part = key.codec.read(name, given)
        elif key.name in given:
            part = key.codec.read(key.name, given[key.name])
        elif key.default is inspect.Parameter.empty:
            raise KeyError(key.name)
        else:
            part = key.default
        if key.argument is not None:
            arguments[key.argument] = part
    make: Callable[..., Any] = getattr(kind, "from_keys", None) or kind
    return make(**arguments)


class UnknownKind(InvalidWitness, InvalidNeighbours, InvalidClaim):
    """No imported module registers the kind of an event, a relation or a claim in a file."""

    @classmethod
    def of(cls, noun: str, kind: str, known: Iterable[str]) -> "UnknownKind":
        """The error for an unknown `kind`; `noun`: event, relation or claim; `known`: the registered kinds."""
        return cls(
            f"{noun} kind {brief(kind)} is unknown: import the module that registers it by register_{noun} (on the "
            f"command line --import MODULE); known are {', '.join(known)}"
        )


def require_free(kind: str, new: Any, other: Any) -> None:
    """Raise `ValueError` if another class, `other`, already has the `kind` of the class `new`.

    A class of the same name in the same file is the same class: its module may be loaded twice.
    """
    if _place(new) != _place(other):
        raise ValueError(f"kind={kind!r} is taken by {other.__module__}.{other.__qualname__}: give another name")


def _place(thing: Any) -> tuple[str, str]:
    module = thing.__module__
    file = getattr(sys.modules.get(module), "__file__", None)
    return file or module, getattr(thing, "__qualname__", type(thing).__qualname__)


class Family:
    """The classes of one protocol, by their `kind`; other packages may add classes."""

    __slots__ = ("kinds",)

    def __init__(self, *kinds: TypeHint) -> None:
        self.kinds: dict[str, TypeHint] = {kind.kind: kind for kind in kinds}

    def register(self, kind: TypeHint) -> None:
        """Add a class; a dataclass without `to_json` and `from_json` gets the JSON of its fields.

        Raises `ValueError` for an object that is not a class with a text `kind`, and for a `kind` that is taken.
        """
        is_class, name = isinstance(kind, type), getattr(kind, "kind", None)
        if not is_class or not isinstance(name, str):
            raise ValueError(f"{brief(kind)} must be a class whose kind is a text, such as kind = 'mine'")
        require_free(name, kind, self.kinds.get(name, kind))
        if not hasattr(kind, "to_json"):
            kind.to_json = JsonFields.to_json
        self.kinds[name] = kind

    def read(self, kind: str, name: str, value: Mapping[str, object]) -> Any:
        """An object of a registered kind. Raises `KeyError`, `ValueError`, or any error of another package's class."""
        one = self.kinds[kind]
        return one.from_json(value) if hasattr(one, "from_json") else read_fields(one, name, {"kind": kind, **value})

    def schema(self, definitions: Definitions) -> Schema:
        """The schema of objects of this package's classes, or of any other kind."""
        own = {name: kind for name, kind in self.kinds.items() if kind.__module__.startswith("dpwitness.")}
        other = {"type": "object", "properties": {"kind": {"not": {"enum": list(own)}}}, "required": ["kind"]}
        return {"anyOf": [*(codec_of(kind).schema(definitions) for kind in own.values()), other]}


def _schema(kind: TypeHint, definitions: Definitions) -> Schema:
    """A reference to the schema of a class; the schema itself is added to `definitions`."""
    name = kind.__name__
    if name not in definitions:
        definitions[name] = {}  # the schema may refer to itself
        about = (kind.__doc__ or "").strip().split("\n")[0]
        flat = [key.codec.schema(definitions) for key in keys_of(kind) if key.mode == "flat"]
        keys = [key for key in keys_of(kind) if key.mode != "flat"]
        # Older files may lack the keys that are written for people.
        read = [key for key in keys if key.constant is not None or key.argument is not None]
        definitions[name] = {
            "description": about,
            "type": "object",
            "properties": {key.name: key.codec.schema(definitions) for key in keys},
            "required": [key.name for key in read if key.default is inspect.Parameter.empty],
            **({"allOf": flat} if flat else {}),
        }
    return {"$ref": f"#/$defs/{name}"}


def schema_of(kind: TypeHint, title: str) -> Schema:
    """The JSON Schema of a type, with the schemas to which it refers."""
    definitions: Definitions = {}
    own = codec_of(kind).schema(definitions)
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title}
    return {**head, **own, "$defs": dict(sorted(definitions.items()))}
