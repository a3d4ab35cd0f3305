"""The kinds of events by name: `register_event` adds one, `event_from_json` reads any of them."""

from collections.abc import Mapping
from typing import TypeVar

from dpwitness.checks import brief
from dpwitness.errors import InvalidWitness
from dpwitness.events.event import Event

__all__ = ["event_from_json", "register_event"]

Kind = TypeVar("Kind", bound=type[Event])

_kinds: dict[str, type[Event]] = {}


def register_event(kind: Kind) -> Kind:
    """Make a kind of event readable from JSON, so that witnesses with it can be saved and replayed; a class decorator.

    A witness file never decides which code runs: a kind of somebody else's is known once its module was imported.
    Raises `ValueError` where another class has the same `kind` already.
    """
    other = _kinds.setdefault(kind.kind, kind)
    if other is not kind and (other.__module__, other.__qualname__) != (kind.__module__, kind.__qualname__):
        raise ValueError(f"kind={kind.kind!r} is taken by {other.__module__}.{other.__qualname__}: give another name")
    _kinds[kind.kind] = kind  # of the same name: its module was loaded again
    return kind


def event_from_json(value: object) -> Event:
    """Build an event from parsed JSON that nobody has checked; raises `InvalidWitness`."""
    if not isinstance(value, Mapping):
        raise InvalidWitness(f"event {brief(value)} must be an object with a 'kind'")
    name = value.get("kind")
    kind = _kinds.get(name) if isinstance(name, str) else None
    if kind is None:
        raise InvalidWitness(
            f"event kind {name!r} is unknown; known are {', '.join(_kinds)}, and what imported modules register"
        )
    try:
        return kind.from_json(value)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        what = f"{error} is missing" if isinstance(error, KeyError) else error
        raise InvalidWitness(f"event of kind {name!r} is damaged: {what}") from error
