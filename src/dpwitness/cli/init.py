"""The command `init`: a first test for a function, which fails until it is edited; the source is read, never run."""

import ast
import json
import keyword
from pathlib import Path
from types import SimpleNamespace
from typing import Final

from dpwitness.checks import near
from dpwitness.cli.command import CODE, Argument, Subcommand
from dpwitness.cli.console import NOT_REFUTED, show
from dpwitness.errors import InvalidData, UnknownTarget


def run(arguments: SimpleNamespace) -> int:
    """Write the test file and print the next steps."""
    from dpwitness.files import write_atomically

    place, function = _function(arguments.target)
    output = place.parent / f"test_{function.name.strip('_')}.py"
    if output.exists():
        raise InvalidData(f"{output} exists: move it, or delete it")
    write_atomically(output, text_of(place, function))
    show(
        f"wrote a test to {output}\n"
        f"  next: set the values that it guesses, such as the inputs, then run pytest {output}; until then it fails\n"
        "  it looks for two neighbouring inputs and an event that refute the claim; a pass is no proof"
    )
    return NOT_REFUTED


def _function(target: str) -> tuple[Path, ast.FunctionDef]:
    """The file of a target, and its function at the top level of the file. Raises `UnknownTarget`."""
    file, _, name = target.rpartition(":")
    place = Path(file)
    if place.suffix != ".py" or not name.isidentifier():
        raise UnknownTarget(f"{target!r} must be FILE.py:FUNCTION, such as mine.py:noisy_sum")
    try:
        tree = ast.parse(place.read_bytes())
    except (OSError, ValueError, SyntaxError, RecursionError) as error:
        raise UnknownTarget(f"there is no Python source {place} that can be read") from error
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    if name not in functions:
        known = near(name, functions) or f"; it has: {', '.join(functions) or 'no functions'}"
        raise UnknownTarget(f"{place} has no function {name!r} at its top{known}")
    found = functions[name]
    if not (_parameters(found)[0] or found.args.vararg or found.decorator_list):  # a decorator may add the parameter
        raise UnknownTarget(f"{target} has no parameter for the input: give it one, such as `data`")
    return place, found


def _parameters(function: ast.FunctionDef) -> tuple[str, dict[str, bool]]:
    """The name of the input parameter, empty without an input, and by name whether each parameter needs a value."""
    from dpwitness.mechanisms.signature import RESERVED_NAMES

    given = function.args
    positional = [*given.posonlyargs, *given.args]
    needed = {one.arg: k < len(positional) - len(given.defaults) for k, one in enumerate(positional)}
    needed |= {one.arg: value is None for one, value in zip(given.kwonlyargs, given.kw_defaults, strict=True)}
    return next((name for name in needed if name not in RESERVED_NAMES), ""), needed


def _find_module(file: Path) -> str:
    """The dotted name of a source, as pytest imports its folder. Raises `UnknownTarget` for impossible names."""
    folder, parts = file.resolve().parent, [file.stem]
    while (folder / "__init__.py").is_file():
        parts.insert(0, folder.name)
        folder = folder.parent
    if not all(part.isidentifier() and not keyword.iskeyword(part) for part in parts):
        raise UnknownTarget(f"{file} cannot be imported by its name: rename it")
    return ".".join(parts).removesuffix(".__init__")


def text_of(place: Path, function: ast.FunctionDef) -> str:
    """The text of the test file."""
    from dpwitness.mechanisms.signature import DELTA_NAMES, EPSILON_NAMES, RESERVED_NAMES

    module, name, (data, needed) = _find_module(place), function.name, _parameters(function)
    own = [one for one, needs in needed.items() if needs and one not in RESERVED_NAMES | {data}]
    lines = [f"{'epsilon' if EPSILON_NAMES & set(needed) else 'claim'}=1.0,  # the claimed ε"]
    lines += ["delta=1e-5,  # the claimed δ, which the function gets"] * bool(DELTA_NAMES & set(needed))
    if own:
        lines.append(f"parameters={json.dumps(dict.fromkeys(own, 1.0))},  # the function's own parameters")
    lines.append("neighbours=dpw.records(dpw.numbers(0, 1)),  # lists of numbers; or dpw.queries, dpw.histogram, …")
    return "\n".join(
        [
            '"""A test of differential privacy: it looks for a witness against the claim."""',
            "",
            "import dpwitness as dpw",
            "import pytest",
            f"from {module} import {name}",
            "",
            "",
            f"def test_{name.lower()}_is_private(assert_private):",
            f'    pytest.fail("TODO: set each value of {name} below, then delete this line")',
            "    assert_private(",
            f"        {name},",
            *(f"        {line}" for line in lines),
            "    )",
            "",
        ]
    )


#: COMMAND is the command `init`.
COMMAND: Final = Subcommand(
    "init",
    summary="write a first test for a function",
    run=run,
    parameters=[Argument("target", "FILE.py:FUNCTION", "what to test; the test is written beside it", type=CODE)],
    examples=("init mine.py:noisy_sum",),
)
