"""The program by which another interpreter runs a function for dpwitness; `remote` starts it.

It runs under Python 3.8 without dpwitness, and imports NumPy and pandas only for values of their types.
Requests and answers are lines of JSON on the standard input and output; values in them are written as
`dpwitness.values` writes them.
"""

from __future__ import annotations

import base64
import functools
import importlib
import importlib.util
import inspect
import json
import math
import operator
import os
import pickle
import queue
import random
import signal
import sys
import threading
import traceback
from typing import Any, Callable  # noqa: UP035  # Python 3.8

#: The types of sequences and sets besides lists, by their name in JSON.
SEQUENCES_BY_NAME: dict[str, Any] = {"tuple": tuple, "set": set, "frozenset": frozenset}


def serve(answer: Callable[[Any], Any]) -> None:
    """Answer each line of the standard input by one line; the process ends when its input ends.

    Text that `answer` prints goes to standard error; an exception that it raises becomes an answer.
    """
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    waiting: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def read() -> None:
        for line in requests:
            waiting.put(line)
        if os.getpgrp() == os.getpid():  # the processes that were started here end too
            os.killpg(0, signal.SIGKILL)
        os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    while True:
        try:
            written = json.dumps(answer(json.loads(waiting.get())))
        except BaseException as error:
            written = json.dumps({"raised": [type(error).__qualname__, str(error), traceback.format_exc()]})
        answers.write(written.encode() + b"\n")
        answers.flush()


class Unsendable(Exception):
    """A value that cannot be sent between two interpreters; the text names it."""


def to_json(value: Any) -> Any:
    """An outcome as JSON values. Raises `Unsendable`."""
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return value
    if isinstance(value, float):
        plain = math.isfinite(value) and (value or math.copysign(1.0, value) > 0)
        return float(value) if plain else {"float": repr(float(value))}
    if isinstance(value, (list, range)):
        return [to_json(item) for item in value]
    for name, known in SEQUENCES_BY_NAME.items():
        if isinstance(value, known):
            return {name: [to_json(item) for item in value]}
    if isinstance(value, dict):
        return {"items": [[to_json(key), to_json(item)] for key, item in value.items()]}
    if isinstance(value, (bytes, bytearray)):
        return {"bytes": base64.b64encode(value).decode()}
    family = kind.__module__.partition(".")[0]
    if family == "numpy" and hasattr(value, "dtype") and value.dtype.kind in "biufOSU" and value.dtype.itemsize <= 8:
        entries = to_json(value.tolist())
        plain = value.ndim and value.dtype.kind in "biuf" and not hasattr(value, "mask")
        shape = {} if value.size else {"shape": list(value.shape)}
        return {"array": entries, "dtype": value.dtype.name, **shape} if plain else entries
    if kind.__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, str) and not hasattr(kind, "__members__"):
        return str(value)
    raise Unsendable("a value of the type " + kind.__name__)


def of_json(value: Any) -> Any:
    """An input or a parameter from JSON values. Raises `Unsendable`."""
    if isinstance(value, list):
        return [of_json(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "float" in value:
        return float(value["float"])
    if "bytes" in value:
        return base64.b64decode(value["bytes"])
    if "dict" in value:
        return {name: of_json(item) for name, item in value["dict"].items()}
    if "items" in value:
        return {of_json(name): of_json(item) for name, item in value["items"]}
    if "array" in value or "scalar" in value:
        return _array(value)
    if "dataframe" in value:
        return _frame(value)
    if "series" in value:
        return _column(value["name"], value["dtype"], value["series"], _index(value["index"]))
    for name, kind in SEQUENCES_BY_NAME.items():
        if name in value:
            return kind(map(of_json, value[name]))
    raise Unsendable(value.get("object", "a table of Polars"))


def _array(value: dict[str, Any]) -> Any:
    """An array or a scalar of NumPy; without NumPy lists of numbers, or a number."""
    entries = of_json(value["array"] if "array" in value else value["scalar"])
    try:
        import numpy as np
    except ImportError:
        return entries
    if "scalar" in value:
        return np.dtype(value["dtype"]).type(entries)
    array = np.array(entries, value["dtype"])
    return array.reshape(value["shape"]) if "shape" in value else array


def _frame(value: dict[str, Any]) -> Any:
    import pandas as pd  # type: ignore[import-untyped]  # no stubs

    index = _index(value["index"])
    columns = [_column(None, dtype, entries, index) for _, dtype, entries in value["dataframe"]]
    frame = pd.DataFrame(dict(enumerate(columns)), index=index)
    names = [of_json(name) for name, _, _ in value["dataframe"]]
    frame.columns = _index(value["columns"]) if "columns" in value else pd.Index(names)
    return frame


def _index(value: dict[str, Any]) -> Any:
    import pandas as pd

    name = of_json(value["name"])
    if "range" in value:
        return pd.RangeIndex(*value["range"], name=name)
    labels = _column(None, value["dtype"], value["labels"], None)
    return pd.Index(labels, dtype=labels.dtype, name=name)


def _column(name: Any, dtype: Any, entries: list[Any], index: Any) -> Any:
    """A column of the type `dtype`, or of the nearest type of this pandas; never of a type that the entries decide.

    Neighbours must not differ in the types of their columns.
    """
    import pandas as pd

    if isinstance(dtype, dict) or dtype.startswith(("datetime64", "timedelta64")):
        raise Unsendable("a column of times or of categories")
    known = "object" if dtype == "str" and pd.Series([""]).dtype == object else dtype
    values = pd.Series([of_json(entry) for entry in entries], dtype=known).array
    return pd.Series(values, index=index, dtype=values.dtype, name=of_json(name))


@functools.lru_cache(8)
def source(written: str) -> tuple[dict[str, Any], Callable[[], dict[str, Any]]]:
    """What a request says about its arguments, and a function that returns new copies of these.

    Raises `Unsendable`.
    """
    request = json.loads(written)
    held = pickle.dumps(of_json(request["arguments"]), pickle.HIGHEST_PROTOCOL)  # five times as fast as `copy.deepcopy`
    return request, lambda: pickle.loads(held)


class Service:
    """A service that imports a function into this interpreter and runs it on request."""

    function: Any = None

    def __init__(self) -> None:
        self.inputs: dict[int, Any] = {}  # the last arguments of each side

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """The answer to a request to import the function, or to run it once."""
        return self.load(*request["load"]) if "load" in request else self.run(request["input"], request["seed"])

    def load(self, place: str, name: str) -> dict[str, Any]:
        """Import the function `name` of a file or a module, and return its parameters."""
        if place.endswith(".py"):
            sys.path.insert(0, os.path.dirname(place))
            spec = importlib.util.spec_from_file_location(os.path.basename(place)[:-3], place)
            assert spec is not None and spec.loader is not None  # noqa: PT018
            module = importlib.util.module_from_spec(spec)
            sys.modules[spec.name] = module
            spec.loader.exec_module(module)
        else:
            sys.path.insert(0, os.getcwd())
            module = importlib.import_module(place)
        self.function = operator.attrgetter(name)(module)
        return {"parameters": [_described(one) for one in inspect.signature(self.function).parameters.values()]}

    def run(self, given: dict[str, Any], seed: int) -> dict[str, Any]:
        """Run the function once; return its outcome, or the exception that it raised.

        `given`: the side of the input and, unless an earlier request had it, the text of the arguments.
        """
        try:
            if "text" in given:
                self.inputs[given["side"]] = source(given["text"])
        except Unsendable as error:
            return {"unsendable": str(error)}
        request, copied = self.inputs[given["side"]]
        arguments = copied()
        if request["generator"]:
            arguments[request["generator"]] = _generator(seed)
        first = []
        for name in request["first"]:
            if name not in arguments:  # the parameter keeps its default, which cannot be sent
                break
            first.append(arguments.pop(name))
        try:
            output = self.function(*first, **arguments)
        except SystemExit as error:  # the process ends, and says why
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)
        try:
            read = operator.attrgetter(*request["attributes"]) if request["attributes"] else None
            return {"outcome": to_json(output if read is None else read(output))}
        except (AttributeError, Unsendable, ValueError, RecursionError) as error:
            return {"output": [repr(output)[:80], str(error)]}


def _generator(seed: int) -> Any:
    """A generator of a seed: NumPy's, or the standard library's without NumPy."""
    try:
        from numpy.random import SFC64, Generator
    except ImportError:
        return random.Random(seed)
    return Generator(SFC64(seed))


def _described(parameter: inspect.Parameter) -> list[Any]:
    """The name of a parameter, its kind, and a list that holds its default, if it has one."""
    if parameter.default is parameter.empty:
        return [parameter.name, parameter.kind.name, []]
    try:
        return [parameter.name, parameter.kind.name, [to_json(parameter.default)]]
    except (Unsendable, ValueError, RecursionError):
        return [parameter.name, parameter.kind.name, [{"object": "its own"}]]


if __name__ == "__main__":
    if os.path.realpath(sys.path[0]) == os.path.dirname(os.path.realpath(__file__)):
        sys.path.pop(0)  # modules beside this file must not shadow the user's; PYTHONSAFEPATH leaves the folder out
    serve(Service().answer)
