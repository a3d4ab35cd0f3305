"""The parameters of the public functions, each said once: name, type, default, help and reference.

The signatures and the "Parameters" of docstrings (`api.door`), the fields of `Statement` and `Effort` (`problem`), the
options of the command line (`cli.options`) and the settings of `assert_private` (`plugin`) and of a project (`project`)
follow from this module. Types that take time to import are in quotes, since the command line's help needs no others.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Required, TypeAlias, TypedDict, get_args, get_origin

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from dpwitness.claims import Claim
    from dpwitness.mechanisms.claims import Accountant
    from dpwitness.mechanisms.mechanism import Mechanism
    from dpwitness.mechanisms.python import OutcomeSummary
    from dpwitness.neighbours import Relation
    from dpwitness.proposals import Attack
    from dpwitness.runs import Progress

#: The default of an option that must be given.
NO_DEFAULT: Final = inspect.Parameter.empty
#: The default probability of a false alarm, small enough for daily tests.
ALPHA: Final = 1e-6
#: The default number of paired confirm runs of a check.
CHECK_RUNS: Final = 4_000_000
#: The default time limit of a check in seconds, for which a person would wait.
MAX_TIME: Final = 60.0
#: The default time limit of shrinking in seconds.
SHRINK_TIME: Final = 10.0
#: The largest number of workers: more threads than a machine has cores only cost memory.
MOST_WORKERS: Final = 1024
#: The largest `detectable_ratio`: a pass that would not have detected twice the claim says nothing.
MOST_RATIO: Final = 2.0
#: The health checks of a test, which `suppress` leaves out by name.
HEALTH_CHECKS: Final = (
    "identical_inputs",
    "unlike_inputs",
    "deterministic_output",
    "unrepeated_texts",
    "stuck_generator",
    "input_ignored",
    "too_slow",
    "low_power",
)
#: The forms of a claim as text, for help; messages use `mechanisms.claims.CLAIM_TEXTS`.
CLAIM_FORMS: Final = "1, 1,1e-5, zcdp:0.5, gdp:1, rdp:8,0.4, profile:FILE, tradeoff:FILE"
#: Examples of relations, for help.
_RELATION_EXAMPLES: Final = "For example `queries(10)` or `[([1, 1], [2, 0])]`."
#: The meanings of the values of `errors`, for help.
_ERRORS_HELP: Final = (
    '"raise": the exception ends the check. "outcome": the exception\'s class is the outcome of the run; functions '
    "then run as plain Python."
)


@dataclass(frozen=True, slots=True)
class Option:
    """The help, default and setting of a parameter.

    `text` is the help on the command line and the first sentence of the reference, which continues with `more`. The
    command line has the option if it has a `metavar` or `choices`. `setting` is the key of `[tool.dpwitness]` in
    pyproject.toml for the option's default on the command line; empty: no setting.
    """

    text: str
    more: str = ""
    default: Any = None
    metavar: str | None = None
    choices: tuple[str, ...] = ()
    setting: str = ""

    @property
    def reference(self) -> str:
        """The option's paragraph in the reference."""
        value, colon, what = self.text.partition(":")
        if colon and value in self.choices:  # a text in Python, so quoted and without a capital
            return f'"{value}":{what}. {self.more}'
        first = self.text[0].upper() if self.text[0].isascii() else self.text[0]  # Δ would mean another thing than δ
        return f"{first}{self.text[1:]}. {self.more}".strip()


#: The treatment of an exception of the mechanism: it ends the check, or the exception's class is an outcome.
Errors: TypeAlias = Literal["raise", "outcome"]
#: The role of the last bits of floating-point outcomes: a finding beside the verdict, a violation, or not tested.
LastBits: TypeAlias = bool | Literal["strict"]
#: The evidence of an assertion: of its session alone, or also of earlier sessions.
EvidenceSource: TypeAlias = Literal["fresh", "kept"]
#: The kind of a curve's p-values.
Method: TypeAlias = Literal["exact", "score"]
#: The mechanism, an argument that public functions take without a name.
AnyMechanism: TypeAlias = Annotated[
    "Callable[..., Any] | Mechanism | str | None",
    Option(
        "a function of a generator, data and parameters",
        'Or a name: of a bundled target, "file.py:function" or "package.module:object". See `dpwitness.mechanisms`.',
    ),
]
Runs: TypeAlias = Annotated[
    int, Option("maximum number of paired confirm runs", default=CHECK_RUNS, metavar="N", setting="runs")
]
DetectableRatio: TypeAlias = Annotated[
    float | None,
    Option(
        "end a pass once its runs would have caught this multiple of the claim, such as 1.05",
        "From 1 to 2; 1 makes all runs. Runs go on while they show evidence against the claim. By default all runs are "
        "made, except for plain Python without `runs` and `max_time`: then a pass ends once twice the runs would lower "
        "its detectable parameter by less than 1 %.",
        metavar="RATIO",
        setting="detectable_ratio",
    ),
]
SearchRuns: TypeAlias = Annotated[
    int | None,
    Option("number of paired search runs", "They find the event and are not evidence."),
]
BitsOption: TypeAlias = Annotated[
    LastBits,
    Option(
        "strict: a leak in the last bits of floating-point outcomes is a violation too",
        "By default a pass reports it separately, as `floating_point`, since almost every mechanism that adds "
        "floating-point noise has such a leak (Mironov 2012). False: the last bits are not tested.",
        default=True,
        choices=("strict",),
        setting="bits",
    ),
]
Workers: TypeAlias = Annotated[
    int | None,
    Option("number of threads, or of processes for plain Python (default: all cores)", metavar="N", setting="workers"),
]
Reference: TypeAlias = Annotated[str | None, Option("the name of the mechanism in a saved witness")]


class MechanismOptions(TypedDict, total=False):
    """The parameters for a mechanism's making, inputs, outcomes and exceptions, and for its time limit."""

    make: Annotated[
        "Callable[[], Any] | None",
        Option(
            "in place of `mechanism`: a function without parameters that returns a new mechanism",
            "It is called for each run. For objects that can be used only once, or a few times.",
        ),
    ]
    neighbours: Annotated[
        "Relation | Sequence[Any] | None",
        Option(
            "which inputs are neighbours: a relation or a list of pairs",
            f"{_RELATION_EXAMPLES} By default the relation of the target.",
        ),
    ]
    data: Annotated[Any, Option("D, for which the relation makes the neighbours")]
    outcome: Annotated[
        "OutcomeSummary | None",
        Option(
            "the released part of an output: attributes such as coef_,intercept_, or a function FILE.py:FUNCTION",
            "In Python the function itself, which maps an output to its released part.",
            metavar="WHAT",
        ),
    ]
    errors: Annotated[
        Errors,
        Option(
            "how an exception of the mechanism is treated",
            _ERRORS_HELP,
            default="raise",
            choices=get_args(Errors),
            setting="errors",
        ),
    ]
    max_time: Annotated[
        float | str,
        Option(
            "time limit, such as 60s or 2m",
            "Compiling does not count.",
            default=MAX_TIME,
            metavar="TIME",
            setting="max_time",
        ),
    ]


class ClaimOptions(TypedDict, total=False):
    """The parameters of the claim and of the mechanism."""

    claim: Annotated[
        "Claim | Accountant | float | str | None",
        Option(
            f"the claim, if it is not the mechanism's own ε and δ: {CLAIM_FORMS}",
            "In Python also a claim such as `ApproxDP(1.0, 1e-5)`, a number (the claimed ε in nats), or an accountant "
            "of dp-accounting or Opacus, whose whole privacy profile is then the claim. The mechanism keeps its own ε.",
            metavar="CLAIM",
        ),
    ]
    delta: Annotated[
        float | None,
        Option(
            "the claimed δ, and the mechanism's parameter of that name (default 0)",
            "If the object itself states a δ, the default is that δ.",
            metavar="D",
        ),
    ]
    parameters: Annotated[Mapping[str, Any] | None, Option("values for other parameters of the mechanism, by name")]


class EpsilonOptions(TypedDict, total=False):
    """The parameters of the mechanism's own ε."""

    epsilon: Annotated[
        float | None,
        Option(
            "the mechanism's ε in nats, which is also the claim unless `claim` is given",
            "By default the ε that the object itself claims: diffprivlib's `.epsilon`, OpenDP's `map(d_in)`.",
            metavar="E",
        ),
    ]
    d_in: Annotated[Any, Option("the distance between neighbours for which an OpenDP measurement is checked")]


class MachineOptions(TypedDict, total=False):
    """The parameters of the workers that make runs, and of the random numbers."""

    seed: Annotated[
        int | None,
        Option(
            "seed of all random numbers (default: a new seed)",
            "The same seed gives the same counts, unless the measured time of a run lies at a limit between two ways "
            "to divide the runs.",
            metavar="N",
            setting="seed",
        ),
    ]
    workers: Workers
    cluster: Annotated[
        Any,
        Option(
            "run on a Dask cluster: the address of its scheduler",
            "In Python also a `distributed.Client`. The same seed gives counts as it does without a cluster.",
            metavar="ADDRESS",
        ),
    ]
    executor: Annotated[
        "Executor | None",
        Option(
            "an executor of `concurrent.futures` that makes the runs, such as `ProcessPoolExecutor(8)`",
            "Executors of loky, joblib, Dask and MPI work too, and an executor for Ray (docs/effort.md). No executor "
            "but Dask's may repeat a task if a process dies (Ray: `max_retries=0`): the repetition would select among "
            "runs that no seed repeats. The executor stays open. The same seed gives the same counts.",
        ),
    ]
    progress: Annotated[
        "Progress | None", Option("a function that is called with a stage, how much of it is done, its size and a note")
    ]


class BoundOptions(EpsilonOptions, ClaimOptions, MechanismOptions, MachineOptions, total=False):
    """The parameters of `bound` and `profile`."""

    alpha: Annotated[
        float,
        Option(
            "probability of a false alarm",
            "It holds at any stopping time, however often one looks at the evidence.",
            default=ALPHA,
            metavar="A",
            setting="alpha",
        ),
    ]
    runs: Runs
    search_runs: SearchRuns
    reference: Reference


class CheckOptions(BoundOptions, total=False):
    """The parameters of `check`."""

    attack: Annotated[
        "str | Attack | None",
        Option(
            "the attack whose proposals are tried first: threshold_testing, table_builder, subset_sum, or "
            "FAMILY.GENERATOR",
            "In Python also a function that proposes candidates, see `dpwitness.proposals`. If the target has no "
            "relation, the family's relation is the default of `neighbours`.",
            metavar="NAME",
        ),
    ]
    detectable_ratio: DetectableRatio
    bits: BitsOption
    keep: Annotated[
        str | PathLike[str] | None,
        Option(
            "a file in which the evidence of a passed check goes on in the next check of the same claim and relation",
            "The event in the file has half of alpha, half of the time and up to `runs` further runs, the check the "
            "rest. The hypothesis is that every version of the mechanism so far keeps the claim (docs/ci.md).",
            metavar="FILE",
        ),
    ]


class CurveOptions(ClaimOptions, MechanismOptions, MachineOptions, total=False):
    """The parameters of `curve`."""

    epsilon: Required[
        Annotated[
            float | Sequence[float],
            Option(
                "the mechanism's ε in nats; several, as 0.5,1,2, give one line each", default=NO_DEFAULT, metavar="E"
            ),
        ]
    ]
    claims: Required[
        Annotated[
            Sequence[float],
            Option(
                "values of the test ε, both ends included",
                "In Python a list.",
                default=NO_DEFAULT,
                metavar="FROM:TO:STEP",
            ),
        ]
    ]
    method: Annotated[
        Method, Option("the kind of p-value", "See `evidence.p_value`.", default="exact", choices=get_args(Method))
    ]
    runs: Annotated[
        int | None,
        Option(
            "paired confirm runs of each line (default: as many as are needed to exclude 80 % of ε)",
            metavar="N",
            setting="runs",
        ),
    ]
    search_runs: SearchRuns
    reference: Reference


class ReplayOptions(ClaimOptions, MechanismOptions, MachineOptions, total=False):
    """The parameters of `replay`."""

    alpha: Annotated[float | None, Option("probability of a false alarm (default: the witness's)", metavar="A")]
    runs: Annotated[
        int | None,
        Option("maximum number of paired runs (default: ten times the witness's, at least 100,000)", metavar="N"),
    ]


class ShrinkOptions(MechanismOptions, total=False):
    """The parameters of `shrink`."""

    runs: Runs
    workers: Workers


class AssertOptions(EpsilonOptions, ClaimOptions, MechanismOptions, total=False):
    """The settings of `assert_private` and of the marker `dp`."""

    runs: Runs
    detectable_ratio: DetectableRatio
    search_runs: SearchRuns
    bits: BitsOption
    suppress: Annotated[str | Sequence[str], Option("health checks to turn off", default=())]
    evidence: Annotated[
        EvidenceSource,
        Option(
            "kept: the evidence of a passed assertion goes on in the next session",
            "The evidence is in a file of the database, beside the witness; see `keep` of `check`.",
            default="fresh",
            choices=get_args(EvidenceSource),
        ),
    ]


#: The differences of options in functions that measure a parameter instead of checking a claim.
_MEASUREMENT_CHANGES: Final[Mapping[str, Mapping[str, Any]]] = {
    "epsilon": {"text": "the mechanism's ε in nats"},
    "runs": {"text": "number of paired confirm runs", "default": 20_000_000},
    "max_time": {"default": 600.0},
}
#: The differences of `alpha` in functions that give confidence bounds.
_CONFIDENCE_CHANGES: Final[Mapping[str, Any]] = {"default": 0.001, "more": "", "setting": "confidence"}
#: The differences of options in functions that take a witness.
_WITNESS_CHANGES: Final[Mapping[str, Mapping[str, Any]]] = {
    "errors": {"more": f'{_ERRORS_HELP} A witness that was found with "outcome" is replayed with it.'},
}
#: The parameters of each public function, and their differences from the parameters of `check`.
FUNCTIONS: Final[Mapping[str, tuple[Any, Mapping[str, Mapping[str, Any]]]]] = {
    "check": (
        CheckOptions,
        {"search_runs": {"more": "They find the event and are not evidence. 0: the check bets from its first run on."}},
    ),
    "bound": (
        BoundOptions,
        {
            **_MEASUREMENT_CHANGES,
            "claim": {"text": f"bound this claim's parameter, such as ρ, in place of ε: {CLAIM_FORMS}"},
            "delta": {"text": "the fixed δ, and the mechanism's parameter of that name (default 0)"},
            "alpha": {"text": "probability that the bound is too large", **_CONFIDENCE_CHANGES},
        },
    ),
    "profile": (
        BoundOptions,
        {
            **_MEASUREMENT_CHANGES,
            "claim": {"text": f"a claim to test against the band: {CLAIM_FORMS}"},
            "delta": {"text": "the mechanism's parameter of that name, and the δ of a claim that is a number"},
            "alpha": {"text": "probability that the band is too high anywhere", **_CONFIDENCE_CHANGES},
        },
    ),
    "curve": (
        CurveOptions,
        {
            "claim": {"text": f"test this claim's parameter, such as μ, in place of ε: {CLAIM_FORMS}"},
            "delta": {"text": "the tested δ, and the mechanism's parameter of that name (default 0)"},
            "max_time": {"text": "time limit of each line, such as 60s or 2m", "default": 600.0},
        },
    ),
    "replay": (
        ReplayOptions,
        {
            "claim": {"text": f"the claim (default: the witness's): {CLAIM_FORMS}"},
            "delta": {"text": "the claimed δ (default: the witness's)", "more": ""},
            "parameters": {"text": "parameters of the mechanism, which replace the witness's parameters by name"},
            "neighbours": {
                "text": "the relation of the claim, which must contain the pair (default: the witness's)",
                "more": _RELATION_EXAMPLES,
            },
            "data": {"text": "D of that relation"},
            **_WITNESS_CHANGES,
            "seed": {"more": "The witness's own seed is refused, since it would only repeat its runs."},
        },
    ),
    "shrink": (
        ShrinkOptions,
        {
            "neighbours": {
                "text": "the relation that contains every simpler pair (default: the witness's)",
                "more": _RELATION_EXAMPLES,
            },
            **_WITNESS_CHANGES,
            "data": {"text": "D of that relation: the inputs then stay as they are, and only the event is simplified"},
            "max_time": {"default": SHRINK_TIME},
        },
    ),
    "assert_private": (AssertOptions, {"detectable_ratio": {"more": "By default the ratio of the session's profile."}}),
}


def options_of(function: str) -> dict[str, Option]:
    """The options of a public function by name; options that must be given come first."""
    kinds, own = FUNCTIONS[function]
    options = {name: replace(option_in(kind), **own.get(name, {})) for name, kind in kinds.__annotations__.items()}
    return dict(sorted(options.items(), key=lambda item: item[1].default is not NO_DEFAULT))


def option_in(kind: object) -> Option:
    """The option in the annotation of a parameter."""
    annotated: Any = get_args(kind)[0] if get_origin(kind) is Required else kind
    option: Option = annotated.__metadata__[0]
    return option
