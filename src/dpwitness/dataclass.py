"""The standard library's `dataclass`, without compiling methods that a process does not use.

That decorator writes the source of up to six methods of each class and compiles it: .7 ms a frozen class, of which a
check imports two hundred and makes objects of sixty. Here `__init__` is compiled when it is first used, and the others
are functions that all classes share: a check in a new process takes an eighth less processor time.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import FrozenInstanceError, fields
from functools import partial
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any


class _Init:
    """The `__init__` of a frozen dataclass, until it is first used."""

    def __init__(self, owner: type, kw_only: bool) -> None:
        self.owner = owner
        self.kw_only = kw_only

    def __get__(self, instance: object, kind: type | None = None) -> Any:
        owner: Any = self.owner
        if vars(owner)["__init__"] is self:
            body = {one.name: one for one in fields(owner)} | {
                "__annotations__": {one.name: one.type for one in fields(owner)},
                "__module__": owner.__module__,
                "__qualname__": owner.__qualname__,
            }
            if hasattr(owner, "__post_init__"):
                body["__post_init__"] = owner.__post_init__
            options = {"frozen": True, "slots": True, "eq": False, "repr": False, "kw_only": self.kw_only}
            owner.__init__ = vars(dataclasses.dataclass(**options)(type(owner.__name__, (), body)))["__init__"]
        return owner.__init__.__get__(instance, kind)


def _refuse(self: Any, name: str, value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deletion(self: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


@recursive_repr()
def _repr(self: Any) -> str:
    shown = ", ".join(f"{one.name}={getattr(self, one.name)!r}" for one in fields(self) if one.repr)
    return f"{type(self).__qualname__}({shown})"


def _comparing(made: type) -> Any:
    """How to get what is compared of an object; `attrgetter` takes a tenth of the time of a loop over fields."""
    names = [one.name for one in fields(made) if one.compare]
    return attrgetter(*names) if len(names) > 1 else staticmethod(lambda self: tuple([getattr(self, n) for n in names]))


def _eq(self: Any, other: Any) -> bool:
    return self.__compared__(self) == self.__compared__(other) if type(self) is type(other) else NotImplemented


def _hash(self: Any) -> int:
    return hash(self.__compared__(self))


def _state(self: Any) -> list[Any]:
    return [getattr(self, one.name) for one in fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for one, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, one.name, value)


def _frozen(cls: type, *, init: bool, slots: bool, eq: bool, repr: bool, kw_only: bool) -> Any:
    """`cls` as a dataclass that cannot be changed. Its own methods stay."""
    own = vars(cls)
    methods: dict[str, Any] = {"__setattr__": _refuse, "__delattr__": _refuse_deletion}
    if repr and "__repr__" not in own:
        methods["__repr__"] = _repr
    if eq and "__eq__" not in own:
        methods["__eq__"] = _eq
    if eq and own.get("__hash__") is None:
        methods["__hash__"] = _hash
    if slots and "__reduce__" not in own:
        methods |= {"__getstate__": _state, "__setstate__": _set_state}
    # The standard library compiles two methods to freeze a class; it has to where it has frozen a base.
    inherits = any(map(dataclasses.is_dataclass, cls.__bases__))
    options: dict[str, Any] = {"slots": slots, "kw_only": kw_only, "frozen": inherits}
    made: Any = dataclasses.dataclass(cls, init=False, repr=False, eq=False, **options)
    params = made.__dataclass_params__  # which it reads where another class inherits from this one
    params.init, params.repr, params.eq, params.frozen = init, repr, eq, True
    if eq:
        made.__compared__ = _comparing(made)
    for name, method in methods.items():
        setattr(made, name, method)
    if init:
        made.__init__ = _Init(made, kw_only)
    return made


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(*, frozen=False, init=True, slots=False, eq=True, repr=True, kw_only=False) -> Callable[[type], type]:
        """As `dataclasses.dataclass`, which makes those that are not frozen."""
        make = _frozen if frozen else dataclasses.dataclass
        return partial(make, init=init, slots=slots, eq=eq, repr=repr, kw_only=kw_only)
