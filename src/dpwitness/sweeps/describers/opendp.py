"""OpenDP: constructors of measurements, whose claim is `map(d_in)`, and of transformations, with noise by their map.

Inputs and neighbours follow from the input domain and the input metric of what a constructor makes. A transformation
claims that outputs of neighbours are no further apart than `map(d_in)` says. It is tested with noise of that scale,
drawn here, so that its claim is ε = 1 (or μ = 1 for the L2 distance).
"""

import inspect
import math
import os
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product
from typing import Any, Final

import numpy as np

from dpwitness.checks import first_line
from dpwitness.claims import ApproxDP, Claim, GaussianDP
from dpwitness.errors import BadInput, InvalidParameter
from dpwitness.mechanisms.libraries.opendp import LIBRARY, in_carrier
from dpwitness.neighbours import Relation, categories, flags, integers, numbers, pairs, queries, records
from dpwitness.sweeps.describers.describer import Attempt, Recipe
from dpwitness.sweeps.describers.signatures import Released, from_json
from dpwitness.tables import tables_of

EMPTY: Final = inspect.Parameter.empty
#: Plans that are made of one constructor, and of one space; and failures after which a space is left.
MOST_PLANS: Final = 8
MOST_OF_SPACE: Final = 2
MOST_FAILURES: Final = 8
#: A claim of more is kept by almost anything, and so is one of a larger δ. One of less is of rounding.
LEAST_EPSILON: Final = 1e-9
MOST_EPSILON: Final = 6.0
MOST_DELTA: Final = 0.3
#: Values in a histogram of the output of a row-by-row transformation.
KINDS: Final = 12
LARGEST: Final = 2**31 - 1

#: Types of atoms: a low and a high value, and one in between.
ATOMS: Final[Mapping[str, tuple[Any, Any, Any]]] = {
    "f64": (0.0, 5.0, 1.0), "i32": (0, 5, 1), "String": ("a", "c", "b"), "bool": (False, True, True),
    "usize": (0, 5, 1),
}  # fmt: skip
#: Keys of counts that are asked for.
KEYS: Final = ("a", "b")
#: Parameters that take an input space.
OF_SPACE: Final = ("input_domain", "input_metric", "domain", "metric")
#: Parameters with a default that does not do.
NEEDED: Final = ("value_limit",)
#: Columns of frames that are read of texts, of which the first is looked at; and lines of such a text.
COLUMNS: Final = ("a", "b")
SEPARATOR: Final = ","
LINES: Final = ("a,1", "b,2", "1,", "a", "")
#: The noisy count from which on a key is released.
THRESHOLD: Final = 4
#: Output measures by the functions that make them.
MEASURES: Final = ("max_divergence", "zero_concentrated_divergence")


def listed(dp: Any, metric: Any, size: int | None = None, **atom: Any) -> tuple[Any, Any]:
    """A space of lists of an atom, with a metric."""
    return dp.vector_domain(dp.atom_domain(**atom), size=size), metric


def by_text(dp: Any, metric: Callable[[Any], Any], **atom: Any) -> tuple[Any, Any]:
    """A space of dicts from texts to an atom, with a metric of how far its values move."""
    moved = dp.absolute_distance(T=atom["T"])
    return dp.map_domain(dp.atom_domain(T=str), dp.atom_domain(**atom)), metric(moved)


#: Input spaces by name: a domain and a metric, of `opendp.prelude`.
SPACES: Final[Mapping[str, Callable[[Any], tuple[Any, Any]]]] = {
    "f64": lambda dp: (dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)),
    "i32": lambda dp: (dp.atom_domain(T=int), dp.absolute_distance(T=int)),
    "bool": lambda dp: (dp.atom_domain(T=bool), dp.discrete_distance()),
    "list of f64, L1": lambda dp: listed(dp, dp.l1_distance(T=float), T=float, nan=False),
    "list of i32, L1": lambda dp: listed(dp, dp.l1_distance(T=int), T=int),
    "list of f64, L2": lambda dp: listed(dp, dp.l2_distance(T=float), T=float, nan=False),
    "list of i32, L2": lambda dp: listed(dp, dp.l2_distance(T=int), T=int),
    "list of f64, L∞": lambda dp: listed(dp, dp.linf_distance(T=float), T=float, nan=False),
    "list of i32, L∞": lambda dp: listed(dp, dp.linf_distance(T=int), T=int),
    "list of i32, L∞ up": lambda dp: listed(dp, dp.linf_distance(T=int, monotonic=True), T=int),
    "counts by text": lambda dp: by_text(dp, dp.l01inf_distance, T=int),
    "counts by text, L2": lambda dp: by_text(dp, dp.l02inf_distance, T=int),
    "sums by text": lambda dp: by_text(dp, dp.l01inf_distance, T=float, nan=False),
    "records of f64 in bounds": lambda dp: listed(dp, dp.symmetric_distance(), bounds=(0.0, 5.0), nan=False),
    "records of i32 in bounds": lambda dp: listed(dp, dp.symmetric_distance(), bounds=(-1, 5)),
    "5 records of f64 in bounds": lambda dp: listed(dp, dp.symmetric_distance(), 5, bounds=(-1.0, 5.0), nan=False),
    "5 records of i32 in bounds": lambda dp: listed(dp, dp.symmetric_distance(), 5, bounds=(0, 5)),
    "5 records of f64, one changed": lambda dp: listed(dp, dp.change_one_distance(), 5, bounds=(0.0, 5.0), nan=False),
    "records of f64": lambda dp: listed(dp, dp.symmetric_distance(), T=float, nan=False),
    "records of f64, NaN among them": lambda dp: listed(dp, dp.symmetric_distance(), T=float),
    "records of i32": lambda dp: listed(dp, dp.symmetric_distance(), T=int),
    "records of text": lambda dp: listed(dp, dp.symmetric_distance(), T=str),
    "records of bool": lambda dp: listed(dp, dp.symmetric_distance(), T=bool),
    "records of i32 in order": lambda dp: listed(dp, dp.insert_delete_distance(), T=int),
    "records of usize": lambda dp: listed(dp, dp.symmetric_distance(), T="usize"),
    "frames of text": lambda dp: frames_of_text(dp).output_space,
    "8 bits": lambda dp: (dp.bitvector_domain(max_weight=8), dp.discrete_distance()),
}
#: Where a constructor takes no space.
OWN: Final = "its own"


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Which inputs of a domain are neighbours at a distance of `d_in`."""

    relation: Relation
    d_in: Any
    adjacency: str


class OpenDP:
    """Constructors `make_…` of the modules of OpenDP, and measurements and transformations that a module holds."""

    def describes(self, thing: object, place: str) -> bool:
        """Whether it is of OpenDP; the functions `then_…` make the same things."""
        module, _, name = place.rpartition(":")
        if inspect.isroutine(thing):
            of_plan = name.endswith(("_lazyframe", "_expr"))  # see `opendp_plans`
            return module.startswith("opendp.") and name.startswith("make_") and not of_plan
        return str(type(thing).__module__).startswith("opendp.") and hasattr(thing, "input_metric")

    def recipes(self, thing: object, place: str) -> Sequence[Recipe]:
        """A recipe for each space and choice of parameters for which it makes something that has a map."""
        if not inspect.isroutine(thing):
            return [Recipe()]
        dp = prelude()
        own = inspect.signature(thing).parameters
        takes_space = "input_domain" in own or "domain" in own
        found: list[Recipe] = []
        refused = ["no input space that is known fits it"]
        for space in SPACES if takes_space else (OWN,):
            atoms = [*ATOMS]
            if takes_space:
                domain = str(SPACES[space](dp)[0])
                atoms = [atom for atom in ATOMS if re.search(rf"\b{atom}\b", domain)][:1]
            made = failed = 0
            for settings in choices(own, atoms, approximate="threshold" in str(thing.__name__)):
                if isinstance(settings, str):
                    return [Recipe(refused=f"no value is known for its parameter {settings!r}")]
                recipe = Recipe(label=label_of(space, settings), settings={"space": space, "parameters": settings})
                why = why_not(self.attempts(thing, recipe))
                if why:
                    failed += 1
                    refused.append(why)
                elif recipe.label not in [one.label for one in found]:
                    made += 1
                    found.append(recipe)
                if made == MOST_OF_SPACE or failed == MOST_FAILURES:
                    break
        return spread(found, MOST_PLANS) or [Recipe(refused=min(refused, key=wrong_space))]

    def attempts(self, thing: object, recipe: Recipe, records: object = None) -> Iterator[Attempt]:
        """The measurement, or the transformation with noise."""
        made = self._make(thing, recipe)
        neighbours = neighbours_of(made)
        if hasattr(made, "output_measure"):
            call, claim = LIBRARY.function(made), LIBRARY.claim(made, neighbours.d_in)
            yield attempt_of(thing, lambda value, rng: answers(call(value)), claim, neighbours, noisy=False)
        else:
            call, claim = with_noise(made, neighbours)
            yield attempt_of(thing, call, claim, neighbours, noisy=True)

    def _make(self, thing: object, recipe: Recipe) -> object:
        if not inspect.isroutine(thing):
            return thing
        dp, settings = prelude(), recipe.settings
        named = {name: of_dp(dp, value) for name, value in settings["parameters"].items()}
        space = () if settings["space"] == OWN else SPACES[settings["space"]](dp)
        made = undeprecated(thing, *space, **named)
        if not hasattr(made, "input_domain"):
            raise InvalidParameter("it is post-processing, which claims nothing")
        # Python can neither make nor read a frame: it is read of a text, and a column of it is looked at.
        if str(getattr(made, "output_domain", "")).startswith("VectorDomain(VectorDomain"):
            made = made >> undeprecated(dp.t.make_create_dataframe, [*COLUMNS])
        if "key" in named and named.get("TOA") != "String":
            raise InvalidParameter("the columns of a frame that is read are texts")
        if "DataFrame" in str(made.input_domain):
            made = frames_of_text(dp) >> made
        if "DataFrame" in str(getattr(made, "output_domain", "")):
            kind = named.get("TOA", "String") if "cast" in thing.__name__ else "String"
            kind = "bool" if "is_equal" in thing.__name__ else kind
            made = made >> undeprecated(dp.t.make_select_column, COLUMNS[0], kind)
        return made


def why_not(attempts: Iterator[Attempt]) -> str:
    """Why a recipe makes nothing to be tested, by its attempts: it fails, or nothing could refute its claim."""
    try:
        claim = next(attempts).claim
    except KeyboardInterrupt:
        raise
    except BadInput as error:
        return str(error)
    except BaseException as error:  # of a constructor: panics of Rust are no Exception
        return first_line(error)
    found = getattr(claim, "points", None) or [(claim.parameter, getattr(claim, "delta", 0.0))]
    # What is known of all neighbours is released without noise, and rounding alone is claimed of some sums.
    if any(LEAST_EPSILON < epsilon <= MOST_EPSILON and delta <= MOST_DELTA for epsilon, delta in found):
        return ""
    return f"it claims {claim}, which nothing could refute"


def prelude() -> Any:
    """OpenDP's names, with all constructors that need no trust in the user's functions."""
    os.environ.setdefault("RUST_LIB_BACKTRACE", "0")  # with it each refusal of a constructor takes 0.3 s
    import opendp.prelude as dp  # type: ignore[import-not-found,import-untyped,unused-ignore]  # an extra

    dp.enable_features("contrib")
    return dp


def undeprecated(make: Callable[..., object], *given: Any, **named: Any) -> Any:
    """What a constructor makes, without a warning where it will be gone one day."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", FutureWarning)
        return make(*given, **named)


def frames_of_text(dp: Any) -> Any:
    """What reads a frame of a text."""
    return undeprecated(dp.t.make_split_dataframe, SEPARATOR, [*COLUMNS])


def wrong_space(why: str) -> bool:
    """Whether a constructor only said that a domain or a metric is not one that it takes."""
    return any(part in why for part in ("FailedCast", "No match", "no attribute", "no input space", "list index"))


def spread(found: list[Recipe], most: int) -> list[Recipe]:
    """So many of the recipes, from all places of the list."""
    step = max(len(found) / most, 1.0)
    return [found[int(k * step)] for k in range(min(most, len(found)))]


def label_of(space: str, settings: Mapping[str, object]) -> str:
    """What tells a recipe from others of its constructor."""
    told = [
        f"{name}={value['measure']}"
        for name, value in settings.items()
        if isinstance(value, dict) and "measure" in value
    ]
    told += [f"{name}={value}" for name, value in settings.items() if name in ("TOA", "T", "bounds")]
    told = [re.sub(r"\{'tuple': \[(.*)\]\}", r"(\1)", one) for one in told]
    return ", ".join([*([] if space == OWN else [space]), *told])


def choices(
    own: Mapping[str, inspect.Parameter], atoms: Sequence[str], *, approximate: bool
) -> "Iterator[dict[str, Any] | str]":
    """Values for the parameters that have no default; the name of one alone, for which none is known."""
    for atom in atoms or ["f64"]:
        known = {
            name: values_of(name, atom, approximate=approximate)
            for name, one in own.items()
            if name not in OF_SPACE and (one.default is EMPTY or name in NEEDED)
        }
        if unknown := [name for name, values in known.items() if not values]:
            yield unknown[0]
            return
        for chosen in product(*known.values()):
            yield dict(zip(known, chosen, strict=True))


def values_of(name: str, atom: str, *, approximate: bool) -> list[object]:
    """Values to try for a parameter, as JSON; none where it is not known."""
    low, high, middle = ATOMS[atom]
    known: dict[str, list[Any]] = {
        "output_measure": [{"measure": measure, "approximate": approximate} for measure in MEASURES],
        "scale": [1.0], "prob": [0.75], "f": [0.95], "alpha": [0.5], "k": [2], "total_limit": [10],
        "threshold": [3], "size": [5], "size_limit": [20], "leaf_count": [4],
        "branching_factor": [2], "d_in": [1.0], "d_out": [{"tuple": [1.0, 1e-3]}],
        "bounds": [{"tuple": [low, high]}, {"tuple": [-1 if atom == "i32" else -1.0, high]}],
        "categories": [["a", "b", "c"]] if atom == "String" else [[low, middle, high]],
        "candidates": [[low, middle, high]], "edges": [[low, middle, high]], "constant": [middle], "value": [middle],
        "TOA": ["i32", "f64", "String", "bool"], "TIA": ["String"], "null": [low], "value_limit": [10],
        "separator": [SEPARATOR], "col_names": [[*COLUMNS]], "column_name": [COLUMNS[0]], "key": [COLUMNS[0]],
        "bin_edges": [[low, middle, high]], "alphas": [[0.5]],
    }  # fmt: skip
    return known.get(name, [])


def of_dp(dp: Any, value: Any) -> object:
    """A value of a recipe as OpenDP takes it."""
    if isinstance(value, dict) and "measure" in value:
        measure = getattr(dp, value["measure"])()
        return dp.approximate(measure) if value.get("approximate") else measure
    return from_json(value)


def neighbours_of(made: Any) -> Neighbours:
    """Neighbours by the input domain and the input metric. Raises `InvalidParameter` where they are not known."""
    domain, metric = str(made.input_domain), str(made.input_metric)
    carrier = str(made.input_domain.carrier_type)
    kind = metric.partition("(")[0]
    if kind == "AbsoluteDistance" and carrier in ("f64", "f32", "i32", "i64"):
        return close_numbers(made, carrier)
    if kind in ("L1Distance", "L2Distance") and carrier in ("Vec<f64>", "Vec<i32>", "Vec<i64>"):
        return close_lists(kind, carrier)
    if kind == "LInfDistance" and carrier in ("Vec<f64>", "Vec<i32>", "Vec<i64>"):
        up = "monotonic" in metric
        relation = queries(3, direction="up" if up else "any")
        return Neighbours(relation, one_in(carrier), f"lists whose numbers move by 1{', all one way' if up else ''}")
    if kind in ("L01InfDistance", "L02InfDistance") and carrier in ("HashMap<String, i32>", "HashMap<String, f64>"):
        one = one_in(carrier)
        told = pairs(
            ({"a": one}, {}), ({"a": one, "b": 3 * one}, {"b": 3 * one}), ({"a": 3 * one}, {"a": 2 * one}),
            ({"a": one, "b": one}, {"b": one}),
        )  # fmt: skip
        return Neighbours(told, (1, one, one), "one value of a dict moves by 1")
    if kind == "DiscreteDistance":
        return any_two(made, domain, carrier)
    if kind == "SymmetricDistance" and carrier == "String":
        lines = records(categories(*LINES), size=(0, 20), form="list")
        return Neighbours(lines, 1, "texts of which one has a line more")
    if kind in ("SymmetricDistance", "InsertDeleteDistance", "ChangeOneDistance", "HammingDistance"):
        return datasets(domain, kind, carrier)
    raise InvalidParameter(f"no neighbours are known for {domain} and {metric}")


def one_in(carrier: str) -> Any:
    """One, as a number of the type that a carrier holds."""
    return 1.0 if "f64" in carrier or "f32" in carrier else 1


def close_numbers(made: Any, carrier: str) -> Neighbours:
    """Numbers that differ by 1, the ends of their type and of bounds among them."""
    one = one_in(carrier)
    values = [0, -1, 100, 4, LARGEST - 1] if isinstance(one, int) else [0.0, -1.0, 0.5, 100.0, 4.0, 2.0**52]
    inside = [(value, value + one) for value in values]
    inside = [pair for pair in inside if all(made.input_domain.member(side) for side in pair)]
    if not inside:
        raise InvalidParameter(f"no two numbers of {made.input_domain} are known that differ by 1")
    return Neighbours(pairs(*inside), one, "numbers that differ by 1")


def close_lists(kind: str, carrier: str) -> Neighbours:
    """Lists of which one number moves by 1: at a distance of 1 in every norm."""
    if "i" not in carrier.removeprefix("Vec"):
        return Neighbours(queries(3, may_move="one"), 1.0, f"lists at an {kind[:2]} distance of 1")
    told = pairs(
        ([0, 0, 0], [1, 0, 0]),
        ([-1, 5, 0], [0, 5, 0]),
        ([0, 0, LARGEST - 1], [0, 0, LARGEST]),
        ([100, 0, 0], [99, 0, 0]),
    )
    return Neighbours(told, 1, f"lists at an {kind[:2]} distance of 1")


def any_two(made: object, domain: str, carrier: str) -> Neighbours:
    """Any two values of a domain."""
    told = "any two values"
    if carrier == "BitVector":
        zeros, ones, first = [0] * 8, [1] * 8, [1] + [0] * 7
        return Neighbours(pairs((np.array(zeros), np.array(ones)), (np.array(zeros), np.array(first))), 1, told)
    values = {"bool": (False, True), "String": ("a", "b", "c"), "i32": (0, 1, 5), "f64": (0.0, 1.0, 5.0)}.get(carrier)
    if values is None:
        raise InvalidParameter(f"no values are known of {domain}")
    return Neighbours(pairs(*((values[0], other) for other in values[1:]), (values[-2], values[-1])), 1, told)


def datasets(domain: str, kind: str, carrier: str) -> Neighbours:
    """Lists of records: one more or fewer, or one replaced where their number is fixed."""
    atom = carrier.removeprefix("Vec<").removesuffix(">")
    sized = re.search(r"size=(\d+)", domain)
    size = None if sized is None else int(sized[1])
    bounds = re.search(r"bounds=\[(\S+), (\S+)\]", domain)
    record: Any
    match atom:
        case "f64":
            low, high = (float(bounds[1]), float(bounds[2])) if bounds else (-10.0, 10.0)
            record = numbers(low, high, clipped=bounds is None, missing=False)
        case "i32" | "i64":
            low, high = (int(bounds[1]), int(bounds[2])) if bounds else (-LARGEST - 1, LARGEST)
            record = integers(int(low), int(high))
        case "usize":
            record = integers(0, LARGEST)
        case "String":
            record = categories("a", "b", "c", "1", "a,1", "")
        case "bool":
            record = flags()
        case _:
            raise InvalidParameter(f"no records are known of {domain}")
    if "nan=true" in domain:
        record = numbers(-10.0, 10.0, missing=True)
    replaced = size is not None or kind in ("ChangeOneDistance", "HammingDistance")
    adjacency = "replace-one" if replaced else "add-remove"
    relation = records(record, adjacency=adjacency, size=size or (0, 20), form="list")
    # One replaced is one removed and one added.
    d_in = 2 if replaced and kind in ("SymmetricDistance", "InsertDeleteDistance") else 1
    return Neighbours(relation, d_in, f"{adjacency}, {kind} {d_in}")


def attempt_of(
    thing: object, call: Callable[[object, object], object], claim: Claim, neighbours: Neighbours, *, noisy: bool
) -> Attempt:
    """An attempt at what a constructor has made."""
    name = str(getattr(thing, "__name__", type(thing).__name__))
    return Attempt(
        mechanism=Released(thing, name, call, generator=noisy),
        claim=claim,
        relations=(neighbours.relation,),
        adjacency=neighbours.adjacency,
        bits=not noisy,
    )


def with_noise(made: Any, neighbours: Neighbours) -> tuple[Callable[[object, object], object], Claim]:
    """A transformation with noise of the scale of its map, and what that claims. Raises `InvalidParameter`."""
    if not hasattr(made, "output_metric"):
        raise InvalidParameter("it is post-processing, which claims nothing")
    dp = prelude()
    if "Option" in str(made.output_domain.carrier_type):
        made = made >> dp.t.then_drop_null()  # Python cannot read optional values
    d_out = made.map(neighbours.d_in)
    if str(made.output_metric).startswith("L01InfDistance"):
        _, scale, _ = d_out
        counted = made >> dp.m.then_laplace_threshold(scale=float(scale), threshold=THRESHOLD)
        call = LIBRARY.function(counted)
        return lambda value, rng: call(value), LIBRARY.claim(counted, neighbours.d_in)
    metric, carrier = str(made.output_metric).partition("(")[0], str(made.input_domain.carrier_type)
    if isinstance(d_out, tuple) or not 0 < d_out < math.inf:
        raise InvalidParameter(f"its map gives {d_out!r} for {neighbours.d_in!r}: there is no noise for that")
    scale = float(d_out)

    def transformed(value: Any) -> Any:
        text = carrier == "String" and isinstance(value, list)
        # Each line ends: else a text of one empty line would be one of none.
        return made("".join(f"{line}\n" for line in value) if text else in_carrier(value, carrier))

    if metric in ("AbsoluteDistance", "L1Distance"):
        return lambda value, rng: noisy(rng.laplace, transformed(value), scale), ApproxDP(1.0)
    if metric == "L2Distance":
        return lambda value, rng: noisy(rng.normal, transformed(value), scale), GaussianDP(1.0)
    if metric == "LInfDistance":
        length = np.size(transformed(example_of(neighbours)))
        return lambda value, rng: noisy(rng.laplace, transformed(value), scale * length), ApproxDP(1.0)
    if metric in ("SymmetricDistance", "InsertDeleteDistance", "ChangeOneDistance", "HammingDistance"):
        # A replaced record lowers one count of the histogram and raises another.
        scale *= 2 if metric in ("ChangeOneDistance", "HammingDistance") else 1
        known = kinds_of(transformed, neighbours)
        return lambda value, rng: noisy(rng.laplace, histogram(transformed(value), known), scale), ApproxDP(1.0)
    raise InvalidParameter(f"no noise is known for a transformation to {metric}")


def answers(released: object) -> object:
    """What is released; of an interactive one, what it answers to two questions."""
    return [released(key) for key in KEYS] if callable(released) else released


def noisy(draw: Callable[[float, float, tuple[int, ...]], Any], values: object, scale: float) -> object:
    """Numbers with noise of a scale, by a method of the generator."""
    exact = np.asarray(values, np.float64)
    return exact + draw(0.0, scale, exact.shape)


def example_of(neighbours: Neighbours) -> object:
    """One input."""
    return next(neighbours.relation.candidates()).data


def kinds_of(transformed: Callable[[object], object], neighbours: Neighbours) -> list[str]:
    """Records that a transformation makes of the first candidates: the bins of the histogram, the same for all runs."""
    found: dict[str, None] = {}
    for pair in islice(neighbours.relation.candidates(), 24):
        for side in pair.sides:
            try:
                found |= dict.fromkeys(map(repr, rows_of(transformed(side))))
            except Exception:  # an input that it refuses
                continue
    return [*found][:KINDS]


def rows_of(value: object) -> list[Any]:
    """The records of a dataset that a transformation returned."""
    tables = tables_of(value)
    if tables is not None:
        return tables.rows(value)
    if not isinstance(value, list | tuple | np.ndarray):
        raise InvalidParameter(f"it returns {type(value).__name__}, whose records are not known")
    return list(value)


def histogram(value: object, known: Sequence[str]) -> list[int]:
    """How often each known record occurs, and how many others there are."""
    rows = [repr(row) for row in rows_of(value)]
    counts = [rows.count(one) for one in known]
    return [*counts, len(rows) - sum(counts)]


DESCRIBER = OpenDP()
