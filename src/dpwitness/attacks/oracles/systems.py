"""The user's system: a callable, a factory that makes one, or an object that answers many questions at once."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import numpy as np

from dpwitness.attacks.oracles.form import Form
from dpwitness.errors import InvalidParameter, OracleFailed
from dpwitness.mechanisms.catalog import load_object
from dpwitness.mechanisms.signature import GENERATOR_NAMES

__all__ = ["System", "load_system", "system_of"]

Q = TypeVar("Q")

#: Questions that an object with `ask_all` gets at once.
AT_ONCE: Final = 4096
#: Tells the generator of a factory from all others made of the same seed.
STREAM: Final = 0x5F57


@dataclass(frozen=True, slots=True, kw_only=True)
class System(Generic[Q]):
    """What answers: `answers` takes at most `at_once` questions and gives as many answers, not yet looked at."""

    name: str
    answers: Callable[[Sequence[Q]], Sequence[object]]
    at_once: int


def load_system(name: str, form: Form[Q], seed: int) -> System[Q]:
    """The system that --oracle names. Raises `UnknownTarget`, and as `system_of`."""
    return system_of(load_object(name), form, seed=seed, name=name)


def system_of(thing: Any, form: Form[Q], *, seed: int, name: str | None = None) -> System[Q]:
    """What the user has, as a system.

    Parameters
    ----------
    thing
        A callable of one question; a callable without required parameters but `rng` (a `numpy.random.Generator`) or
        `seed` (an int), which makes one; or an object with `ask_all`, a list of questions → as many answers.
    seed
        What `rng` and `seed` of a factory are made of.

    Raises
    ------
    InvalidParameter
        For what is none of these.
    OracleFailed
        Where a factory raises.
    """
    named = name or str(getattr(thing, "__name__", type(thing).__name__))
    made = _made(thing, seed, named)
    if callable(ask_all := getattr(made, "ask_all", None)):

        def answers(some: Sequence[Q]) -> Sequence[object]:
            return _many(ask_all, [form.handed(one) for one in some])

        return System(name=named, answers=answers, at_once=AT_ONCE)
    if not callable(made):
        told = "" if made is thing else ": it takes no question, so it was called to make a system"
        raise InvalidParameter(
            f"oracle {named} {'is' if made is thing else 'returned'} {type(made).__name__}{told}; give a function of "
            "one question, a function without parameters that returns one, or an object with ask_all(questions)"
        )
    return System(name=named, answers=lambda some: [made(form.handed(one)) for one in some], at_once=1)


def _made(thing: Any, seed: int, name: str) -> Any:
    """The thing itself, or what it makes where it is a factory."""
    if not callable(thing) or (hasattr(thing, "ask_all") and not inspect.isclass(thing)):
        return thing
    try:
        parameters = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):  # of an extension: it says nothing of its parameters
        return thing
    generators = GENERATOR_NAMES | {"seed"}
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return thing
    needed = (p for p in parameters if p.default is p.empty and p.kind is not p.VAR_KEYWORD)
    if any(p.name not in generators for p in needed):
        return thing
    given = {
        p.name: seed if p.name == "seed" else np.random.default_rng([seed, STREAM])
        for p in parameters
        if p.name in generators
    }
    try:
        return thing(**given)
    except Exception as error:  # the user's code: it may raise anything
        raise OracleFailed(f"oracle {name} could not be made: {type(error).__name__}: {error}") from error


def _many(ask_all: Callable[[list[Any]], Any], questions: list[Any]) -> Sequence[object]:
    answers = ask_all(questions)
    if not hasattr(answers, "__iter__"):
        raise WrongNumber(f"{type(answers).__name__} from ask_all")
    found = list(answers)
    if len(found) != len(questions):
        raise WrongNumber(f"{len(found)} answers from ask_all")
    return found


class WrongNumber(ValueError):
    """Not one answer a question; what came instead."""
