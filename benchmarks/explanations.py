"""Whether explanations name the line of the fault: `python benchmarks/explanations.py [--seed 1] [--max-time 60]`.

Each function is checked as a user would, and what the verdict says of the line is compared with what is written here.
The broken functions of tests/broken.py get one pair of neighbours; their lines are marked there. The bugs of libraries
are those of known_bugs.py in plain Python, found by a search; their lines are given by a part of their text. A bug
whose release is not installed is left out.
"""

import argparse
import importlib
import inspect
import runpy
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import dpwitness as dpw

FOLDER: Final = Path(__file__).resolve().parent
MARK: Final = "# the defect"
#: Of each bug the package, the file, and what stands in the right lines: the fault, or the draw that it spoils.
LIBRARIES: Final[Mapping[str, tuple[str, str, tuple[str, ...]]]] = {
    **dict.fromkeys(
        ("linear_regression_0_5", "linear_regression_01_1"),
        ("diffprivlib", "linear_regression.py", ("[bounds_X[0][i], bounds_X[0][i]]", "randomise(coefs[2][i, i])")),
    ),
    "logistic_regression_100": ("diffprivlib", "logistic_regression.py", ("vector_mech.randomise(func)",)),
    "unary_encoding": ("pure_ldp", "ue_client.py", ("if random.random() < self.p", "oh_vec[index] = 1")),
    "rappor": ("pure_ldp", "rappor_client.py", ("if (bit == 1 and u <",)),
    "clamped_mean": ("eeprivacy", "operations.py", ("S = np.sum(values)", "A = S / C + np.random.laplace")),
    "vector_clamped_mean": ("eeprivacy", "mechanisms.py", ("return value + np.random.laplace(0, b)",)),
    "presto_gaussian": (
        "ornl_presto",
        "privacy_mechanisms.py",
        ("sigma = np.sqrt(sensitivity *", "np.random.normal(0, sigma"),
    ),
    "independent_mode": ("DataSynthesizer", "Attribute.py", (".min()", ".max()", "'min'", "'max'")),
}


def explain(function: Callable[..., Any], limits: Mapping[str, Any]) -> Any:
    """The verdict's explanation, or what there is instead of one, as a text."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            verdict = dpw.check(function, **limits)
    except dpw.DPWitnessError as error:
        return f"{type(error).__name__}: {error}"
    if not isinstance(verdict, dpw.Violation):
        return "not refuted"
    return verdict.witness.explanation or "no explanation"


def compare(name: str, expected: str, right: Callable[[Any], bool], found: Any) -> bool:
    """Print a row of the table; whether the line is right."""
    said = found if isinstance(found, str) else f"{Path(found.file).name}:{found.line}, {found.cause}: {found.text:.70}"
    good = not isinstance(found, str) and right(found)
    print(f"| `{name}` | {expected} | {said} | {'yes' if good else 'no'} |", flush=True)
    return good


def of_tests(seed: int, max_time: float) -> list[bool]:
    """The broken functions of the tests."""
    sys.path.insert(0, str(FOLDER.parent / "tests"))
    broken = importlib.import_module("broken")
    out = []
    for function, first, second in broken.BROKEN:
        things = [function if inspect.isfunction(function) else type(function)]
        things += [broken.helper] if "helper" in str(function) else []
        lines = set()
        for thing in things:
            text, start = inspect.getsourcelines(thing)
            lines |= {start + i for i, line in enumerate(text) if MARK in line}
        limits = {"epsilon": 1.0, "neighbours": dpw.pairs((first, second)), "seed": seed, "max_time": max_time}
        name = getattr(function, "__name__", type(function).__name__)
        expected = f"broken.py:{', '.join(map(str, sorted(lines)))}"

        def right(found: Any, lines: set[int] = lines) -> bool:
            return Path(found.file).name == "broken.py" and found.line in lines

        out.append(compare(name, expected, right, explain(function, limits)))
    return out


def of_libraries(seed: int, max_time: float) -> list[bool]:
    """The known bugs of libraries, as far as they are plain Python and installed."""
    out = []
    for bug in runpy.run_path(str(FOLDER / "known_bugs.py"))["BUGS"]:
        if bug.name not in LIBRARIES or bug.missing():
            continue
        package, file, texts = LIBRARIES[bug.name]
        try:
            importlib.import_module(package)
        except ImportError as error:  # what the package itself needs is not there
            print(f"{bug.name} is left out: {error}", file=sys.stderr)
            continue
        bug.function.of_module = package  # the library's lines are those that are looked for
        limits = {"claim": bug.claim(), "neighbours": bug.neighbours, "seed": seed, "max_time": max_time}

        def right(found: Any, package: str = package, file: str = file, texts: tuple[str, ...] = texts) -> bool:
            (place,) = importlib.import_module(package).__path__
            sources = [path for path in Path(place).rglob("*.py") if str(path).endswith(found.file)]
            lines = [path.read_text().splitlines()[found.line - 1] for path in sources]
            return found.file.endswith(file) and any(text in line for line in lines for text in texts)

        out.append(
            compare(f"{bug.requirement} {bug.name}", f"{file}: `{texts[0]}`", right, explain(bug.function, limits))
        )
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--max-time", type=float, default=60.0, help="seconds for each check (default 60)")
    parser.add_argument("--only", choices=("tests", "libraries"))
    arguments = parser.parse_args()
    started = time.perf_counter()
    print("| Function | The line of the fault | What is said | Right |\n|---|---|---|---|")
    for name, measured in (("tests", of_tests), ("libraries", of_libraries)):
        if arguments.only in (None, name):
            good = measured(arguments.seed, arguments.max_time)
            print(f"{name}: {sum(good)} of {len(good)} right", file=sys.stderr)
    print(f"{time.perf_counter() - started:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
