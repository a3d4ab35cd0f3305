"""The program by which another interpreter runs a function for dpwitness; `remote` starts it.

It runs under Python 3.8 without dpwitness, and imports NumPy, pandas and Polars only for values of their types.
Requests and answers are lines of JSON on the standard input and output; values in them are written as
`dpwitness.values` writes them.
"""

from __future__ import annotations

import base64
import decimal
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
            written = json.dumps({"raised": [0, 0, type(error).__name__, str(error), traceback.format_exc()]})
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
    if family == "pandas" and kind.__name__ in ("DataFrame", "Series"):
        return _table_to_json(value)
    if isinstance(value, str) and not hasattr(kind, "__members__"):
        return str(value)
    raise Unsendable("a value of the type " + kind.__name__)


def _table_to_json(value: Any) -> Any:
    """A table of pandas as JSON values, all columns with the type object."""
    labels, name = value.index, to_json(value.index.name)
    if type(labels).__name__ == "RangeIndex":
        index = {"range": [labels.start, labels.stop, labels.step], "name": name}
    else:
        index = {"labels": to_json(labels.tolist()), "dtype": "object", "name": name}
    if not hasattr(value, "columns"):
        return {"series": to_json(value.tolist()), "dtype": "object", "name": to_json(value.name), "index": index}
    columns = [to_json(value.iloc[:, k].tolist()) for k in range(len(value.columns))]
    names = map(to_json, value.columns)
    return {"dataframe": [[name, "object", own] for name, own in zip(names, columns)], "index": index}  # noqa: B905


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
    if str(value.get("table")).startswith("polars"):
        return _polars(value)
    raise Unsendable(value.get("object", "a table of Arrow"))


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

    if isinstance(dtype, dict):
        categories = _column(None, dtype["dtype"], dtype["categories"], None)
        known = pd.Index(categories, dtype=categories.dtype)
        values = pd.Categorical.from_codes(entries, known, dtype["ordered"])
    elif dtype.startswith(("datetime64", "timedelta64")):
        unit, _, zone = dtype[dtype.index("[") + 1 : -1].partition(", ")
        counts = pd.array(entries, "Int64").to_numpy("int64", na_value=-(2**63))
        # Old versions of pandas convert all units to nanoseconds.
        values = pd.Series(counts.view(("M8[" if dtype.startswith("d") else "m8[") + unit + "]"))
        values = values.dt.tz_localize("UTC").dt.tz_convert(zone).array if zone else values.array
    else:
        known = "object" if dtype == "str" and pd.Series([""]).dtype == object else dtype
        values = pd.Series([of_json(entry) for entry in entries], dtype=known).array
    return pd.Series(values, index=index, dtype=values.dtype, name=of_json(name))


def _polars(value: dict[str, Any]) -> Any:
    """A table of Polars; dates and times are sent as whole numbers of their unit."""
    import polars as pl

    columns = {}  # by name, since Polars would rename a column with the name ""
    for name, kind, entries in value["columns"]:
        ((named, settings),) = kind.items() if isinstance(kind, dict) else [(kind, [])]
        dtype = getattr(pl, named)(*settings)
        if named in ("Date", "Datetime", "Duration", "Time"):
            columns[name] = pl.Series(entries, dtype=pl.Int64).cast(dtype)
        else:
            read = decimal.Decimal if named == "Decimal" else of_json
            columns[name] = pl.Series([None if entry is None else read(entry) for entry in entries], dtype=dtype)
    frame = pl.DataFrame(columns)
    return frame.lazy() if value["table"] == "polars-lazy" else frame


@functools.lru_cache(8)
def source(written: str) -> Callable[[], Any]:
    """A function that returns a sent value: for each call a new copy, if the value is mutable. Raises `Unsendable`."""
    value = of_json(json.loads(written))
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        return lambda: value
    held = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)  # pickled and read here: five times as fast as `copy.deepcopy`
    return lambda: pickle.loads(held)


def positional_count(function: Any, data: str) -> int:
    """The number of leading parameters that are passed by position, as in `signature.declared_by`.

    A wrapper (`functools.wraps`) with `*args` may read parameters up to the input by position; without `**kwargs` it
    reads all of them so.
    """
    parameters = inspect.signature(function).parameters.values()
    places = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    flags = getattr(getattr(function, "__code__", None), "co_flags", 0) if hasattr(function, "__wrapped__") else 0
    if flags & inspect.CO_VARARGS:
        return places.index(data) + 1 if flags & inspect.CO_VARKEYWORDS and data in places else len(places)
    return sum(p.kind is p.POSITIONAL_ONLY for p in parameters)


class Service:
    """A service that imports a function into this interpreter and runs it on request."""

    function: Any = None

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """The answer to a request to import the function, or to run it."""
        try:
            return self.load(*request["load"]) if "load" in request else self.run(request)
        except Unsendable as error:
            return {"unsendable": str(error)}

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

    def run(self, request: dict[str, Any]) -> dict[str, Any]:
        """Run the function on each input, once for each character of `order`, and return the outcomes by input.

        "1" in `order`: the second input comes first. `words`: for each input 32 random bytes for each run, or for the
        first run alone, with whose generator the other runs go on.
        """
        inputs, parameters = [source(written) for written in request["inputs"]], source(request["parameters"])
        words = [bytes.fromhex(own) for own in request["words"]]
        summary = operator.attrgetter(*request["attributes"]) if request["attributes"] else None
        count, data, generator = positional_count(self.function, request["data"]), request["data"], request["generator"]
        names = list(inspect.signature(self.function).parameters)[:count]
        rngs: list[Any] = [None for _ in inputs]
        outcomes: list[list[Any]] = [[] for _ in inputs]
        raises = []
        for swapped in request["order"]:
            for side in (1, 0) if swapped == "1" else range(len(inputs)):
                run = len(outcomes[side])
                arguments = {**parameters(), data: inputs[side]()}
                own = words[side][32 * run : 32 * run + 32]
                if own and (generator is not None or request["seed_globals"]):
                    rngs[side] = _begin_generator(rngs[side], own, request["seed_globals"])
                if generator is not None:
                    arguments[generator] = rngs[side]
                try:
                    first = []
                    for name in names:
                        if name not in arguments:  # the parameter keeps its default, which cannot be sent
                            break
                        first.append(arguments.pop(name))
                    outcome = self.function(*first, **arguments)
                except SystemExit as error:
                    return {"exit": error.code if isinstance(error.code, (int, str, type(None))) else repr(error.code)}
                except BaseException as error:
                    if not request["errors"]:
                        return {"raised": [run, side, type(error).__qualname__, str(error), traceback.format_exc()]}
                    raises.append([side, run, type(error).__qualname__])
                    outcomes[side].append(None)
                    continue
                try:
                    outcomes[side].append(to_json(outcome if summary is None else summary(outcome)))
                except AttributeError as error:
                    return {"attribute": [",".join(request["attributes"]), str(error)]}
                except (Unsendable, ValueError, RecursionError) as error:
                    return {"outcome": [repr(outcome)[:80], str(error)]}
        return {"outcomes": outcomes, "raises": raises}


def _begin_generator(rng: Any, words: bytes, seed_globals: bool) -> Any:
    """A generator of NumPy, or of the standard library without NumPy, that begins from 32 random bytes."""
    if seed_globals:
        random.seed(words)
        if "numpy" in sys.modules:
            import numpy as np

            np.random.seed(np.frombuffer(words, "<u4"))  # noqa: NPY002  # the function may draw from it
    try:
        import numpy as np
        from numpy.random import SFC64, Generator
    except ImportError:
        return random.Random(words)
    if rng is None:
        rng = Generator(SFC64(int.from_bytes(words, "little")))  # seeded by the words, for children made by `spawn`
    state = {"state": np.frombuffer(words, "<u8").astype("u8")}
    rng.bit_generator.state = {"bit_generator": "SFC64", "state": state, "has_uint32": 0, "uinteger": 0}
    return rng


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
