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
import random
import select
import signal
import sys
import threading
import traceback
from typing import Any, Callable, Iterator  # noqa: UP035  # Python 3.8

#: Sequences besides lists, by their name in JSON.
SEQUENCES_BY_NAME: dict[str, Any] = {"tuple": tuple, "set": set, "frozenset": frozenset}


def serve(answer: Callable[[Any], Any]) -> None:
    """Answer each line of the standard input by a line, or by each value of a generator; ends when its input ends.

    Text that `answer` prints goes to standard error; an exception that it raises becomes an answer.
    """
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    threading.Thread(target=end_with_input, args=(requests.fileno(),), daemon=True).start()
    for request in requests:
        try:
            answered = answer(json.loads(request))
            lines = [json.dumps(one) for one in (answered if inspect.isgenerator(answered) else (answered,))]
        except BaseException as error:
            lines = [json.dumps({"raised": described(error)})]
        answers.write("".join(line + "\n" for line in lines).encode())
        answers.flush()
    end_with_input(requests.fileno())


def end_with_input(file: int) -> None:
    """End this process, and the processes that were started here, once the other end of a pipe is closed."""
    ended = select.poll()
    ended.register(file, 0)  # a hang-up is always told
    ended.poll()
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(0)


def described(error: BaseException) -> list[str]:
    """The class, the text and the traceback of an exception."""
    return [type(error).__qualname__, str(error), traceback.format_exc()]


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
    raise Unsendable(value.get("object", "a table of another library than pandas"))


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
    frame.columns = (
        _index(value["columns"]) if "columns" in value else [of_json(name) for name, _, _ in value["dataframe"]]
    )
    return frame


def _index(value: dict[str, Any]) -> Any:
    import pandas as pd

    name = of_json(value["name"])
    if "range" in value:
        return pd.RangeIndex(*value["range"], name=name)
    return pd.Index(_column(None, value["dtype"], value["labels"], None), name=name)


def _column(name: Any, dtype: Any, entries: list[Any], index: Any) -> Any:
    """A column of the type `dtype`; never of a type that the entries decide: neighbours must not differ in types."""
    import pandas as pd

    if isinstance(dtype, dict) or dtype.startswith(("datetime64", "timedelta64")):
        raise Unsendable("a column of categories, dates or times")
    known = "object" if dtype == "str" and pd.Series([""]).dtype == object else dtype
    return pd.Series([of_json(entry) for entry in entries], index=index, dtype=known, name=of_json(name))


@functools.lru_cache(8)
def source(written: str) -> Callable[[], Any]:
    """A function that returns a sent value, if it is mutable a new copy each time. Raises `Unsendable`."""
    value = of_json(json.loads(written))
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        return lambda: value
    held = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)  # pickled and read here: five times as fast as `copy.deepcopy`
    return lambda: pickle.loads(held)


@functools.lru_cache(8)
def positional_names(function: Any, data: str) -> list[str]:
    """The names of the leading parameters that are passed by position, as in `signature.declared_by`.

    A wrapper (`functools.wraps`) with `*args` may read parameters up to the input by position; without `**kwargs` it
    reads all of them so.
    """
    parameters = inspect.signature(function).parameters.values()
    places = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    flags = getattr(getattr(function, "__code__", None), "co_flags", 0) if hasattr(function, "__wrapped__") else 0
    if flags & inspect.CO_VARARGS:
        return places[: places.index(data) + 1] if flags & inspect.CO_VARKEYWORDS and data in places else places
    return [p.name for p in parameters if p.kind is p.POSITIONAL_ONLY]


class Service:
    """The function that this interpreter runs on request."""

    function: Any = None

    def answer(self, request: dict[str, Any]) -> Any:
        """The answer to a request to import the function, or the answers to a request to run it."""
        return self.load(*request["load"]) if "load" in request else self.run(request)

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

    def run(self, request: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Run the function once for each of the request's `seeds`, 32 random bytes; yield an answer for each run."""
        try:
            parameters, data = source(request["parameters"]), source(request["input"])
        except Unsendable as error:
            yield from [{"unsendable": str(error)}] * len(request["seeds"])
            return
        names, attributes = positional_names(self.function, request["data"]), request["attributes"]
        release = operator.attrgetter(*attributes) if attributes else None
        rng = None
        for seed in request["seeds"]:
            arguments = parameters()
            arguments[request["data"]] = data()
            if request["generator"] is not None:
                arguments[request["generator"]] = rng = begun(rng, bytes.fromhex(seed))
            first = []
            for name in names:
                if name not in arguments:  # the parameter keeps its default, which cannot be sent
                    break
                first.append(arguments.pop(name))
            yield self.outcome(first, arguments, release)

    def outcome(self, first: list[Any], arguments: dict[str, Any], release: Any) -> dict[str, Any]:
        """The answer of one run: its outcome, by `release` of the output if it is given, or the error."""
        try:
            output = self.function(*first, **arguments)
        except SystemExit as error:
            return {"exit": error.code if isinstance(error.code, (int, str, type(None))) else repr(error.code)}
        except BaseException as error:
            return {"raised": described(error)}
        try:
            return {"outcome": to_json(output if release is None else release(output))}
        except AttributeError as error:
            return {"attribute": str(error)}
        except (Unsendable, ValueError, RecursionError) as error:
            return {"invalid": [repr(output)[:80], str(error)]}


def begun(rng: Any, words: bytes) -> Any:
    """A generator that begins from 32 random bytes: NumPy's, or the standard library's without NumPy.

    `rng`: the generator of the run before; None for a new generator, whose children made by `spawn` follow from the
    bytes.
    """
    try:
        import numpy as np
        from numpy.random import SFC64, Generator
    except ImportError:
        return random.Random(words)
    if rng is None:
        rng = Generator(SFC64(int.from_bytes(words, "little")))
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
