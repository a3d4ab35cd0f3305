# ruff: noqa: PT018
"""Runs a function in the interpreter that runs this file, for dpwitness in another one.

It needs Python 3.8, has no newer syntax, and loads `wire.py` beside it; NumPy and pandas only for inputs and outcomes
that are theirs. Messages go over the standard input and output that it was started with; what is printed does not.
"""

from __future__ import annotations

import copy
import importlib
import importlib.util
import inspect
import operator
import os
import queue
import random
import re
import struct
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any


def _beside(name: str) -> ModuleType:
    """Load a file of this folder, under a name that no other module has."""
    place = os.path.join(os.path.dirname(os.path.abspath(__file__)), name + ".py")
    spec = importlib.util.spec_from_file_location("_dpwitness_" + name, place)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


wire = _beside("wire")


def array_of(dtype: str, shape: list[int], held: bytes, order: str = "C") -> object:
    """Return an array of its own, or where there is no NumPy, lists of numbers."""
    try:
        import numpy as np
    except ImportError:
        kind = {"i": "q", "f": "d", "b": "?"}[dtype[1]]
        numbers = (entry for (entry,) in struct.iter_unpack("<" + kind, held))
        if order == "C":
            return _nested(shape, numbers)
        return [list(row) for row in zip(*_nested(shape[::-1], numbers))]  # noqa: B905  # Python 3.8 has no strict
    entries = np.frombuffer(held, dtype)
    return (entries.reshape(shape[::-1]).T if order == "F" else entries.reshape(shape)).copy(order="K")


def _nested(shape: list[int], entries: Iterator[float]) -> Any:
    if not shape:
        return next(entries)
    return [_nested(shape[1:], entries) for _ in range(shape[0])]


def object_of(kind: str, content: Any) -> Any:
    """Return an object of a library that an input holds: a table, or a time in one."""
    if kind in wire.FILES:
        return wire.table_of(kind, content)
    if kind not in (wire.TABLE, "missing", "time Timestamp", "time Timedelta"):
        raise ValueError("an input holds a " + kind)
    import pandas as pd  # type: ignore[import-untyped]  # no stubs

    if kind == "missing":
        return pd.NaT if content == "NaT" else pd.NA
    if kind != wire.TABLE:
        content = content.partition(wire.FOLD)[0]  # the distance from UTC is in the text
        return pd.Timestamp(content) if kind == "time Timestamp" else pd.Timedelta(content)
    names, columns, labels, types, (ends, label_type, label_name, column_name), _ = content
    if ends is None:
        column = typed(pd, labels, label_type)
        index = pd.Index(column, dtype=column.dtype, name=label_name)
    else:
        index = pd.RangeIndex(*ends, name=label_name)
    series = {}
    for k, column in enumerate(columns):
        column = typed(pd, column, types[k])
        series[k] = pd.Series(column, index=index, dtype=column.dtype)  # with its type: texts in an object column stay
    frame = pd.DataFrame(series, index=index)
    frame.columns = pd.Index(names, name=column_name)
    return frame


def typed(pd: ModuleType, values: list[object], name: Any) -> Any:
    """Return a column of the type that it had on the other side, or of the nearest that pandas has here.

    It follows from the type alone, never from the values: neighbours must not differ in it.
    """
    if isinstance(name, list):
        categories = typed(pd, name[0], name[1])
        categories = pd.Index(categories, dtype=categories.dtype)
        return pd.Categorical(values, categories=categories, ordered=name[2])
    if name.startswith(("datetime64", "timedelta64")):
        plain = pd.Series(values, dtype=object)
        times = pd.to_datetime(plain, utc=", " in name) if name.startswith("d") else pd.to_timedelta(plain)
        try:
            return times.astype(name).array
        except TypeError:  # a pandas that knows nanoseconds alone
            return times.astype(re.sub(r"\[\w+", "[ns", name)).array
    if name == "str" and pd.Series([""]).dtype == object:
        name = "object"
    return pd.Series(values, dtype=name).array


def _handed_on(function: Any, places: list[str]) -> set[str]:
    """What a wrapper (`functools.wraps`) takes of whatever it is given: values by their place, by name.

    `places`: the parameters of the function behind it. Of one that takes these by name too, no places where it has one
    of them by its name, or at another place.
    """
    if not hasattr(function, "__wrapped__"):
        return set()
    try:
        own = inspect.signature(function, follow_wrapped=False).parameters
    except ValueError:  # what `functools.cache` makes has none of its own
        return set()
    taken = {p.kind.name for p in own.values()} & {"VAR_POSITIONAL", "VAR_KEYWORD"}
    named = [(k, p.name) for k, p in enumerate(own.values()) if p.kind.name not in taken]
    if len(taken) > 1 and any(name in places and places.index(name) != k for k, name in named):
        taken.remove("VAR_POSITIONAL")
    return taken


def unpacked(held: bytes) -> Any:
    """Return the value of a message."""
    return wire.Reader(held, object_of, array_of).value()


class Service:
    """A function, and the inputs and parameters that were sent for it."""

    def __init__(self) -> None:
        self.function: Any = None
        self.by_position: list[str] = []
        self.places: list[str] = []
        self.handed_on: set[str] = set()
        self.stored: dict[int, Any] = {}
        self.shared: dict[int, tuple[Any, bytes]] = {}
        self.generators: dict[int, Any] = {}

    def answer(self, held: bytes) -> bytes:
        """Do what a message asks for; the answer, encoded."""
        request = unpacked(held)
        if request["do"] == "load":
            return bytes(wire.packed(self.load(request["place"], request["name"])))
        if request["do"] == "call":  # once, with what is no input of a mechanism
            self.load(request["place"], request["name"])
            return bytes(wire.packed({"value": self.function(*request["arguments"])}))
        for number in request["forget"]:
            del self.stored[number]
            self.shared.pop(number, None)
        for number, value in request["store"]:
            self.stored[number] = value
        return self.run(request)

    def load(self, place: str, name: str) -> dict[str, object]:
        """Import the function; its name, its parameters, and what its interpreter has."""
        if place.endswith(".py"):
            sys.path.insert(0, os.path.dirname(place))
            spec = importlib.util.spec_from_file_location(os.path.basename(place)[:-3], place)
            assert spec is not None and spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            sys.modules[spec.name] = module
            spec.loader.exec_module(module)
        else:
            sys.path.insert(0, os.getcwd())
            module = importlib.import_module(place)
        self.function = operator.attrgetter(name)(module)
        parameters = inspect.signature(self.function).parameters
        self.by_position = [p.name for p in parameters.values() if p.kind is p.POSITIONAL_ONLY]
        self.places = [p.name for p in parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        self.handed_on = _handed_on(self.function, self.places)
        return {"parameters": [_parameter(p) for p in parameters.values()]}

    def without_name(self, data: str) -> list[str]:
        """The first parameters, which are given without a name: as `signature.declared_by` has it here."""
        if "VAR_POSITIONAL" not in self.handed_on:
            return self.by_position
        if "VAR_KEYWORD" not in self.handed_on or data not in self.places:
            return self.places
        return self.places[: max(self.places.index(data) + 1, len(self.by_position))]

    def held(self, number: int) -> Any:
        """Return a value that was sent: the same one as long as no run changes it, else a new copy."""
        value = self.stored[number]
        if not isinstance(value, bytes):
            return value[0]
        content = unpacked(value)
        if wire.immutable(content):
            self.stored[number] = (content,)
        return content

    def share(self, number: int) -> Any:
        """Return a value that was sent, for many runs: one object, and how it is written before any run."""
        if number not in self.shared:
            content = self.held(number)
            self.shared[number] = content, wire.packed(content)
        return self.shared[number][0]

    def unchanged(self) -> bool:
        """Whether no run has changed what runs share; else they share nothing of it any more."""
        if all(wire.packed(content) == before for content, before in self.shared.values()):
            return True
        self.shared.clear()
        return False

    def begin(self, side: int, words: bytes, *, seed_globals: bool) -> object:
        """Return a side's generator, begun from 32 random bytes: NumPy's, or the standard library's without NumPy."""
        if seed_globals:
            random.seed(words)
            if "numpy" in sys.modules:
                import numpy as np

                np.random.seed(np.frombuffer(words, "<u4"))  # noqa: NPY002  # what the function draws from
        if side not in self.generators:
            try:
                from numpy.random import SFC64, Generator
            except ImportError:
                return random.Random(words)
            self.generators[side] = Generator(SFC64(int.from_bytes(words, "little")))  # for its children by `spawn`
        import numpy as np

        state = {"state": np.frombuffer(words, "<u8").astype("u8")}
        self.generators[side].bit_generator.state = {
            "bit_generator": "SFC64", "state": state, "has_uint32": 0, "uinteger": 0,
        }  # fmt: skip
        return self.generators[side]

    def run(self, request: dict[str, object]) -> bytes:
        """Run the function so many times on each input; what it returned, input by input, up to the run that raised.

        Run by run the inputs come in the order that is asked for: 1 where the second comes first. All runs get the same
        objects; if one changes them, all are made again with copies, and `again` is in the answer. Where `copies` are
        asked for, each run gets some at once.
        """
        answer = None if request["copies"] else self._made(request, self.share)
        again = answer is None and not request["copies"]
        return _encoded({**(answer or self._made(request, self.held) or {}), "again": again})

    def _made(self, request: dict[str, Any], get: Callable[[int], Any]) -> dict[str, object] | None:
        """The answer of `run`, where `get` returns values that were sent; None where a run changed what runs share."""
        names = request["outcome"]
        summary = operator.attrgetter(*names) if names else None
        name, seeded = request["generator"], request["seed_globals"]
        inputs, parameters = request["inputs"], request["parameters"]
        without_name = self.without_name(request["data"])
        rngs: list[object] = [None for _ in inputs]
        self.generators = {}  # new ones: how many children one has by `spawn` is no matter of earlier messages
        outcomes: list[list[object]] = [[] for _ in inputs]
        turns = [side for turned in request["order"] for side in ((1, 0) if turned else range(len(inputs)))]
        look = 1
        for made, side in enumerate(turns):
            if made == look:  # what is turned round twice is as it was: so not in the end alone
                if not self.unchanged():
                    return None
                look *= 2
            run = len(outcomes[side])
            arguments = dict(get(parameters))
            arguments[request["data"]] = get(inputs[side])
            own = request["words"][side][32 * run : 32 * run + 32]
            if own and (name is not None or seeded):
                rngs[side] = self.begin(side, own, seed_globals=seeded)
            if name is not None:
                arguments[name] = rngs[side]
            try:
                first: list[object] = []
                for key in without_name:
                    if key not in arguments:  # it has its default, which cannot be sent
                        break
                    first.append(arguments.pop(key))
                outcome = self.function(*first, **arguments)
            except BaseException as error:
                if not self.unchanged():
                    return None
                if isinstance(error, SystemExit):
                    return {"exit": error.code if type(error.code) in SINGLE_VALUES else repr(error.code)}
                trace = [type(error).__qualname__, str(error), traceback.format_exc()]
                if not request["errors"]:
                    return {"raised": [run, side, *trace]}
                outcome = wire.Tagged(wire.RAISES, trace[0])
            else:
                if summary is not None:
                    try:
                        outcome = summary(outcome)
                    except AttributeError as error:
                        return {"summary": [run, str(error)]}
            outcomes[side].append(outcome if type(outcome) in SINGLE_VALUES else _kept(outcome))
        if not self.unchanged():
            return None
        held = [outcome for one in outcomes for outcome in one]
        floats = wire.floats(held)
        return {"values": held} if floats is None else {"floats": floats}


#: Types of outcomes that nothing changes any more.
SINGLE_VALUES = frozenset([float, int, bool, str, type(None)])


def _kept(outcome: object) -> object:
    """A copy of an outcome that the function may change later."""
    if wire.immutable(outcome):
        return outcome
    try:
        return copy.deepcopy(outcome)
    except Exception:  # what cannot be copied is most likely what cannot be sent: that says what is wrong with it
        return outcome


def _encoded(answer: dict[str, Any]) -> bytes:
    try:
        return bytes(wire.packed(answer))
    except TypeError:
        for number, outcome in enumerate(answer["values"]):
            try:
                wire.packed(outcome)
            except TypeError as error:
                return bytes(wire.packed({"unknown": [number, str(error), repr(outcome)[:80]]}))
        raise


def _parameter(parameter: inspect.Parameter) -> list[object]:
    """A parameter: its name, its kind, whether it has a default, and the default where that can be sent."""
    default, sent = parameter.default, True
    try:
        wire.packed(default)
    except TypeError:
        default, sent = None, False
    has = parameter.default is not inspect.Parameter.empty
    return [parameter.name, parameter.kind.name, has, sent, default if has else None]


def main() -> None:
    """Answer messages until the other side ends."""
    inward, outward = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)  # what the user's code prints is no message
    if not getattr(sys.flags, "safe_path", False):  # of Python 3.11: then this folder is not there
        sys.path.pop(0)  # this file's folder: its modules must not take the place of the user's
    waiting: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def read() -> None:
        while True:
            try:
                held = wire.receive(inward)
            except ValueError:
                held = None
            if held is None:  # nobody listens any more, whatever the function is doing
                os._exit(0)
            waiting.put(held)

    threading.Thread(target=read, daemon=True).start()
    service = Service()
    while True:
        try:
            answer = service.answer(waiting.get())
        except BaseException as error:  # of the user's code, SystemExit included: reported, then the next message
            answer = wire.packed({"error": [type(error).__name__, str(error), traceback.format_exc()]})
        wire.send(outward, answer)


if __name__ == "__main__":
    main()
