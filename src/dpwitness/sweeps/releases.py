"""The mechanism of the case that this process is for, as functions at the top of a module.

So the health check of a violation can load it in a new process, where remembered noise would be another one.
"""

import json
import os
from functools import cache
from itertools import islice
from typing import Any, Final

from dpwitness.codec import read_fields
from dpwitness.files import read_frame
from dpwitness.mechanisms.catalog import load_object
from dpwitness.sweeps.case import Plan
from dpwitness.sweeps.describers import Attempt, Recipe, describer_named

#: The environment variable that holds the case as JSON, and which of its attempts is run.
CASE: Final = "DPWITNESS_SWEEP_CASE"


def attempts_of(case: Plan) -> Any:
    """The attempts at a case. Raises whatever loading the thing and making the mechanism raises."""
    thing, describer = load_object(case.place), describer_named(case.describer)
    records = None if case.records is None else read_frame(case.records)
    return describer.attempts(thing, Recipe(label=case.label, settings=case.settings), records)


def choose(case: Plan, number: int) -> None:
    """Let this process, and those that it starts, run an attempt at a case."""
    os.environ[CASE] = json.dumps({"case": case.to_json(), "attempt": number})
    chosen.cache_clear()


@cache
def chosen() -> Attempt:
    """The attempt that this process runs."""
    asked = json.loads(os.environ[CASE])
    found: Attempt = next(islice(attempts_of(read_fields(Plan, "case", asked["case"])), asked["attempt"], None))
    return found


def released(data: object) -> Any:
    """Run the mechanism, which draws its own randomness."""
    return chosen().mechanism(data)


def drawn(rng: object, data: object) -> object:
    """Run the mechanism, which draws from a generator."""
    return chosen().mechanism(data, rng)


def as_it_is(output: object) -> object:
    """What is released of an output where a describer does not say: all of it."""
    return output
