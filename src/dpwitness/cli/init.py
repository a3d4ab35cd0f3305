"""The command `init`: a first test, for a function or for objects of DP libraries; sources are read, never run."""

import argparse
import ast
import json
import keyword
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dpwitness.cli.console import NOT_REFUTED, show
from dpwitness.cli.parser import CODE, WRITTEN, command
from dpwitness.errors import InvalidData, UnknownTarget

#: Packages whose objects are mechanisms, and what a test of one says besides the object.
LIBRARIES: Final = {
    "diffprivlib": "",
    "opendp": "d_in=1, neighbours={pair}",
    "pydp": "epsilon=1.0, neighbours={pair}",
}
#: Folders that hold nobody's own sources.
SKIPPED: Final = frozenset({"node_modules", "site-packages", "build", "dist", "__pycache__"})
#: Source files that are looked at, at most.
MOST_FILES: Final = 2_000
#: The relation of an input, by a part of the name of the parameter; the last is that of any other name.
RELATIONS: Final = (
    (("df", "frame", "table"), 'dpw.records({"value": dpw.numbers(0, 1)}, form="dataframe")',
     "name its columns and their ranges"),
    (("quer", "answer"), "dpw.queries(5)", "answers to 5 queries, each of sensitivity 1"),
    (("count", "hist", "cell"), "dpw.histogram(5)", "5 counts, of which one person changes one by 1"),
    (("bit", "flag"), "dpw.bits(5)", "5 bits, of which one differs"),
    (("",), "dpw.records(dpw.numbers(0, 1))", "a list of numbers from 0 to 1, one more or less; say the real range"),
)  # fmt: skip
#: diffprivlib's models: whether they are fitted to labels, too, and the attributes that a fit releases, where they are
#: numbers.
MODELS: Final = {
    "DecisionTreeClassifier": (True, ""),
    "GaussianNB": (True, "theta_,var_,class_count_"),
    "KMeans": (False, "cluster_centers_"),
    "LinearRegression": (True, "coef_,intercept_"),
    "LogisticRegression": (True, "coef_,intercept_"),
    "PCA": (False, "components_"),
    "RandomForestClassifier": (True, ""),
    "StandardScaler": (False, "mean_,var_"),
}
#: Two inputs of OpenDP's lists at a distance of 1, by the metric.
LISTS: Final = {
    **dict.fromkeys(("symmetric_distance", "insert_delete_distance"), "[([1], [])]"),
    **dict.fromkeys(("change_one_distance", "hamming_distance"), "[([0], [1])]"),
    **dict.fromkeys(("l1_distance", "l2_distance", "linf_distance"), "[([0.0], [1.0])]"),
}
NAME: Final = "test_privacy.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A mechanism in a source file: a function with its parameters, or an object of a library made at the top."""

    file: Path
    name: str
    parameters: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    library: str = ""
    columns: tuple[str, ...] = ()  # those that a function reads of its input by name
    pair: str = ""  # of an object of a library: two inputs of its domain; empty where the source does not tell
    model: str = ""  # the class of a model of diffprivlib


def add(commands: argparse._SubParsersAction) -> None:  # type: ignore[type-arg]  # generic for type checkers only
    """Declare it."""
    below = command(
        commands,
        "init",
        summary="write a first test for a function, or for objects of diffprivlib, OpenDP and python-dp",
        run=run,
        examples=("init mine.py:noisy_sum", "init", "init mine.py:noisy_sum --output tests/test_noisy_sum.py"),
    )
    below.add_argument(
        "target",
        type=CODE,
        nargs="?",
        metavar="FILE.py:FUNCTION",
        help="what to test (default: objects of DP libraries in the sources of this folder)",
    )
    below.add_argument(
        "--output", type=WRITTEN, metavar="FILE", help=f"where to write the test (default {NAME} beside the source)"
    )
    below.add_argument("--force", action="store_true", help="overwrite a file that exists")


def run(arguments: argparse.Namespace) -> int:
    """Write the file and say what to do with it."""
    from dpwitness.cli.output import check_places
    from dpwitness.files import overwrites, write_atomically

    found = [_function(arguments.target)] if arguments.target else list(_objects(Path()))
    if not found:
        raise UnknownTarget(
            "no object of diffprivlib, OpenDP or python-dp is made at the top of a source file here: give "
            "FILE.py:FUNCTION"
        )
    output = Path(arguments.output or (found[0].file.parent if arguments.target else Path()) / NAME)
    arguments.output = str(output)
    if output.exists() and not arguments.force:
        raise InvalidData(f"{output} exists: give another --output, or --force to overwrite it")
    check_places(arguments)
    for source in dict.fromkeys(one.file for one in found):
        if overwrites(output, source):
            raise InvalidData(f"{output} is the source that it is written for: give another --output")
    write_atomically(output, text_of(found, output))
    several = f"{len(found)} tests" if len(found) > 1 else "a test"
    show(
        f"wrote {several} to {output}\n"
        f"  next: run pytest {output}; a test fails until what it guesses, such as the inputs, is set\n"
        "  it looks for two neighbouring inputs and an event that refute the claim; a pass is no proof"
    )
    return NOT_REFUTED


def _function(target: str) -> Found:
    """A function of a file. Raises `UnknownTarget`."""
    place, _, name = target.rpartition(":")
    if not place.endswith(".py") or not name.isidentifier():
        raise UnknownTarget(f"{target!r} must be FILE.py:FUNCTION, such as mine.py:noisy_sum")
    tree = _parsed(Path(place))
    if tree is None:
        raise UnknownTarget(f"there is no Python source {place} that can be read")
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    if name not in functions:
        from dpwitness.checks import near

        known = near(name, functions) or f"; it has: {', '.join(functions) or 'no functions'}"
        raise UnknownTarget(f"{place} has no function {name!r} at its top{known}")
    given = functions[name].args
    parameters = [*given.posonlyargs, *given.args]
    required = parameters[: len(parameters) - len(given.defaults)]
    required += [one for one, default in zip(given.kwonlyargs, given.kw_defaults, strict=True) if default is None]
    names = tuple(one.arg for one in (*parameters, *given.kwonlyargs))
    data = _data_of(names)
    if not (data or given.vararg or functions[name].decorator_list):  # a decorator may add the parameter
        raise UnknownTarget(f"{target} has no parameter for the input: give it one, such as `data`")
    return Found(
        file=Path(place),
        name=name,
        parameters=names,
        required=tuple(one.arg for one in required),
        columns=_columns(functions[name], data),
    )


def _data_of(parameters: Sequence[str]) -> str:
    """The parameter that is the input; empty where there is none."""
    from dpwitness.mechanisms.signature import DATA_FREE

    return next((name for name in parameters if name not in DATA_FREE), "")


def _columns(function: ast.FunctionDef, data: str) -> tuple[str, ...]:
    """The columns that a function reads of its input, as data["age"]."""
    found = {
        (node.lineno, node.col_offset): node.slice.value
        for node in ast.walk(function)
        if isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Name)
        and node.value.id == data
        and isinstance(node.slice, ast.Constant)
        and isinstance(node.slice.value, str)
    }
    return tuple(dict.fromkeys(found[place] for place in sorted(found)))


def _parsed(file: Path) -> ast.Module | None:
    """A source as a tree; None where it cannot be read or is no Python."""
    try:
        return ast.parse(file.read_bytes())
    except (OSError, ValueError, SyntaxError, RecursionError):
        return None


def _sources(folder: Path) -> Iterator[Path]:
    """The sources below a folder, without those of environments and hidden folders."""
    left = MOST_FILES
    for place, folders, files in os.walk(folder):
        here = Path(place)
        folders[:] = sorted(
            name
            for name in folders
            if name not in SKIPPED and not name.startswith(".") and not (here / name / "pyvenv.cfg").exists()
        )
        for name in sorted(files):
            if name.endswith(".py") and not name.startswith("test_") and name != "conftest.py" and left:
                left -= 1
                yield here / name


def _objects(folder: Path) -> Iterator[Found]:
    """Objects of DP libraries to which the sources below a folder give a name, at their top."""
    for file in _sources(folder):
        tree = _parsed(file)
        if tree is None:
            continue
        imported = _imported(tree)
        made: dict[str, str] = {}
        texts: dict[str, str] = {}  # of each name what it is made of, with the names within
        for node in tree.body:
            value = getattr(node, "value", None)
            if not isinstance(node, ast.Assign | ast.AnnAssign) or value is None:
                continue
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [target.id for target in targets if isinstance(target, ast.Name)]
            within = (one.id for one in ast.walk(value) if isinstance(one, ast.Name))
            text = "".join([ast.dump(value), *(texts.get(name, "") for name in within)])
            texts |= dict.fromkeys(names, text)
            if not isinstance(value, ast.Call | ast.BinOp):  # what makes an object: a call, or OpenDP's chain of such
                continue
            library = _library_in(value, imported | made)
            for name in names:
                if library:
                    made[name] = library
                    if not name.startswith("_") and _is_mechanism(library, value):
                        pair = "[([0.0], [1.0])]" if library == "pydp" else _pair(text)
                        model = _model(value) if library == "diffprivlib" else ""
                        yield Found(file=file, name=name, library=library, pair=pair, model=model)


def _imported(tree: ast.Module) -> dict[str, str]:
    """The names that a source gives to modules and objects of DP libraries."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [(alias.asname or alias.name.partition(".")[0], alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [(alias.asname or alias.name, node.module or "") for alias in node.names]
        else:
            continue
        found |= {name: root for name, module in names if (root := module.partition(".")[0]) in LIBRARIES}
    return found


def _library_in(value: ast.expr, known: dict[str, str]) -> str:
    """The library whose names an expression uses; empty where it uses none."""
    names = (node.id for node in ast.walk(value) if isinstance(node, ast.Name))
    return next((known[name] for name in names if name in known), "")


def _is_mechanism(library: str, value: ast.expr) -> bool:
    """Whether an object of a library is one that adds noise: of OpenDP, where it is made of a measurement."""
    called = {_called(node) for node in ast.walk(value) if isinstance(node, ast.Call)}
    if library == "opendp":
        noisy = ("laplace", "gaussian", "geometric", "noise", "randomized_response", "exponential", "canonical")
        return any(name.startswith(("make_", "then_")) and any(one in name for one in noisy) for name in called)
    return any(name[:1].isupper() for name in called)


def _pair(text: str) -> str:
    """Two inputs at a distance of 1 of an OpenDP measurement, by its domain and metric; empty where these do not tell.

    `text`: what it is made of, as `ast.dump` writes it.
    """
    said = set(re.findall(r"'(\w+)'", text))
    if said & {"lazyframe_domain", "series_domain", "map_domain", "bitvector_domain"}:
        return ""
    if "vector_domain" in said:  # of a fixed size, which may be any, no two lists differ by one record
        return "" if "size" in said else next((pair for metric, pair in LISTS.items() if metric in said), "")
    return "[(0, 1)]" if said & {"absolute_distance", "discrete_distance"} else ""


def _model(value: ast.expr) -> str:
    """The class of a model of diffprivlib; empty for any other object."""
    name = _called(value)
    return name if name in MODELS else ""


def _called(value: ast.expr) -> str:
    """The name of the function that an expression calls, without what it is of; empty for anything else."""
    function = getattr(value, "func", None)
    return str(getattr(function, "attr", getattr(function, "id", "")))


def text_of(found: list[Found], output: Path) -> str:
    """The test file."""
    folders = dict.fromkeys(_importable(one.file)[0] for one in found)
    apart = [folder for folder in folders if folder.resolve() != output.parent.resolve()]
    head = ['"""Tests of differential privacy: each looks for a witness against its claim."""', ""]
    if apart:
        head += ["import sys", "from pathlib import Path", ""]
    tests = [_test(one) for one in found]
    used = {"import dpwitness as dpw": "dpw.", "import pytest": "pytest.fail("}
    imports = [line for line, name in used.items() if any(name in written for test in tests for written in test)]
    names = [f"from {_importable(one.file)[1]} import {one.name}" for one in found]
    paths = [
        f"sys.path.insert(0, str(Path(__file__).resolve().parent / {os.path.relpath(folder, output.parent)!r}))"
        for folder in apart
    ]
    late = "  # noqa: E402" if apart else ""
    lines = [*head, *paths, *([""] if paths else []), *(f"{line}{late}" for line in (*imports, *sorted(set(names))))]
    for test in tests:
        lines += ["", "", *test]
    return "\n".join(lines) + "\n"


def _importable(file: Path) -> tuple[Path, str]:
    """The folder from which a source is imported, and its name there: that of a package has its packages before it.

    Raises `UnknownTarget` for a name that no import can have.
    """
    folder, parts = file.resolve().parent, [file.stem]
    while (folder / "__init__.py").is_file():
        parts.insert(0, folder.name)
        folder = folder.parent
    parts = parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts
    if not all(part.isidentifier() and not keyword.iskeyword(part) for part in parts):
        raise UnknownTarget(f"{file} cannot be imported by its name: rename it")
    return folder, ".".join(parts)


def _test(one: Found) -> list[str]:
    """The lines of one test; where `init` has guessed a value, the test fails until its user has set that value."""
    guessed, call = _of_model(one) if one.model else _of_object(one) if one.library else _of_function(one)
    todo = f"TODO: set {guessed} of {one.name} below, then delete this line"
    return [
        f"def test_{one.name.lower()}_is_private(assert_private):",
        *([f"    pytest.fail({json.dumps(todo, ensure_ascii=False)})"] if guessed else []),
        *call,
    ]


def _of_object(one: Found) -> tuple[str, list[str]]:
    """What is guessed in the test of an object of a library, and its call."""
    said = LIBRARIES[one.library].format(pair=one.pair or None)
    guessed = "the claimed ε and two neighbouring inputs" if "epsilon" in said else ""
    if said and not one.pair:
        guessed = "neighbours=, two inputs as [(D, E)],"
    note = "    # The object says its claim" + (", for inputs at this distance." if "d_in" in said else ".")
    call = f"    assert_private({', '.join(filter(None, (one.name, said)))})"
    return guessed, [*([] if "epsilon" in said else [note]), call]


def _of_function(one: Found) -> tuple[str, list[str]]:
    """What is guessed in the test of a function, and its call."""
    from dpwitness.mechanisms.signature import DATA_FREE, DELTA_NAMES, EPSILON_NAMES

    data = _data_of(one.parameters)
    relation, meaning = next((text, why) for parts, text, why in RELATIONS if any(p in data.lower() for p in parts))
    if one.columns:
        columns = ", ".join(f"{json.dumps(name)}: dpw.numbers(0, 1)" for name in one.columns)
        relation = f'dpw.records({{{columns}}}, form="dataframe")'
        meaning = "the real range of each column, or its categories"
    claim = "epsilon=1.0" if EPSILON_NAMES & set(one.parameters) else "claim=1.0"
    own = [name for name in one.required if name not in DATA_FREE | {data}]
    guessed, more = ["the claimed ε"], []
    if DELTA_NAMES & set(one.parameters):
        guessed.append("the claimed δ")
        more.append("        delta=1e-5,  # the claimed δ, which the function gets")
    if own:
        guessed.append("the parameters")
        values = ", ".join(f'"{name}": 1.0' for name in own)
        more.append(f"        parameters={{{values}}},  # the function's own parameters")
    return f"{', '.join(guessed)} and the inputs", [
        "    assert_private(",
        f"        {one.name},",
        f"        {claim},  # the claimed ε" + (", which the function gets" if claim == "epsilon=1.0" else ""),
        *more,
        f"        neighbours={relation},  # {meaning}",
        "    )",
    ]


def _of_model(one: Found) -> tuple[str, list[str]]:
    """What is guessed in the test of a model of diffprivlib, and its call."""
    labelled, released = MODELS[one.model]
    domain, form = ("(dpw.numbers(0, 1), dpw.categories(0, 1))", "xy") if labelled else ("dpw.numbers(0, 1)", "array")
    outcome = json.dumps(released) if released else "None"
    inputs = "the features with their ranges, and the labels," if labelled else "the features with their ranges"
    return inputs if released else f"outcome=, a function of the fitted model, and {inputs}", [
        "    # The object says its claim.",
        "    assert_private(",
        f"        {one.name},",
        f'        neighbours=dpw.records({domain}, form="{form}", size=(10, 20)),',
        f"        outcome={outcome}," + ("  # the attributes that are released" if released else ""),
        "    )",
    ]
