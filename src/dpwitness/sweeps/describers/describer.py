"""The protocol of describers, and what they give: recipes, which are listed, and attempts, which are run."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from dpwitness.claims import Claim
from dpwitness.mechanisms.python import Outcome
from dpwitness.neighbours import Relation


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How a mechanism is made of a thing, before anything is made.

    Attributes
    ----------
    label
        What tells the recipe from others of the same thing, as bounds=(0, 10); empty where there is one.
    settings
        JSON values from which the describer makes it in another process.
    refused
        Why it cannot be run; empty where it can be tried.
    time
        Of the time of a case how many times it gets: slow mechanisms more than once.
    """

    label: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    refused: str = ""
    time: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A mechanism with its claim, and which inputs are neighbours.

    Attributes
    ----------
    mechanism
        A function as `check` takes it.
    claim
        What it claims.
    relations
        Which inputs are neighbours. Where the claim does not say, there are several, and only a mechanism that is
        refuted under each of them is refuted.
    adjacency
        The same for people.
    parameters
        Values for parameters of the mechanism, ε among them.
    outcome
        What of an output is released; None: all of it.
    of_records
        Whether the input is records of several people: what returns an entry for each of them is run on one at a time,
        and its claim is about that one.
    bits
        Whether the last bits of floating-point outcomes are looked at: not where the noise is drawn here.
    strict
        Whether it is only an attempt if it runs on all of the first pairs and on the smallest inputs: what refuses
        numbers beyond its bounds, or few records, is to be run without them.
    """

    mechanism: Callable[..., Any]
    claim: Claim
    relations: tuple[Relation, ...]
    adjacency: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    outcome: Outcome | None = None
    of_records: bool = False
    bits: bool = True
    strict: bool = False


class Describer(Protocol):
    """Knows what the names of one library are as mechanisms."""

    def describes(self, thing: object, place: str) -> bool:
        """Whether it knows what this is; `place`: the module and the name, as package.module:name. Runs nothing."""

    def recipes(self, thing: object, place: str) -> Sequence[Recipe]:
        """What is to be run of it, at least one recipe. The same for the same thing in every process."""

    def attempts(self, thing: object, recipe: Recipe, records: object = None) -> Iterator[Attempt]:
        """What the recipe may mean, the most likely first: the first that runs is checked. Asked in a new process.

        `records`: a DataFrame of records to start from; None where the user gave none. Raises whatever making the
        mechanism raises.
        """
