"""An attack's finding, and its report as JSON, text and plot, the same for all families."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, TypeAlias, TypeVar

import numpy as np

from dpwitness.arrays import Booleans, Floats, Integers
from dpwitness.cli.console import say
from dpwitness.report.plots import new_figure, write_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

R = TypeVar("R")

#: The level of each test of an attack's assumptions: one test in 1,000 rejects assumptions that hold.
LEVEL: Final = 1e-3

#: Labelled lines of text, each a label and its text; a label without a text is left out.
LabelledLines: TypeAlias = Sequence[tuple[str, str | None]]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Finding:
    """An attack's guesses of secret whole numbers, from answers alone, and its claim about each guess.

    Attributes
    ----------
    guess
        The guess for each part of the secret, such as a person's bit or a cell's count; shape (parts,).
    probability
        The probability that each guess is right, shape (parts,): `chance` where nothing is claimed.
    chance
        The probability that a guess without any answer is right: 1/2 for a bit, 0 for a count.
    contradicted
        The assumptions of the attack that the answers contradict, in words; any contradiction cancels all claims.
    up_to_factor
        Whether the guesses are claimed only up to a whole factor, the same for all parts.
    """

    guess: Integers
    probability: Floats
    chance: float = 0.0
    contradicted: tuple[str, ...] = ()
    up_to_factor: bool = False

    def __post_init__(self) -> None:
        probability = np.maximum(np.asarray(self.probability, np.float64), self.chance)
        object.__setattr__(
            self, "probability", np.full_like(probability, self.chance) if self.contradicted else probability
        )

    @property
    def claimed(self) -> Booleans:
        """Whether each part's guess is claimed to be better than chance, shape (parts,)."""
        return np.asarray(self.probability > self.chance)

    @property
    def probably_right(self) -> float:
        """The expected number of right guesses, if the probabilities hold."""
        return float(self.probability.sum())

    def right(self, truth: Integers) -> int:
        """The number of guesses that equal the truth, shape (parts,)."""
        return int(np.count_nonzero(self.guess == truth))


def finding_json(finding: Finding | None, truth: Integers | None = None) -> dict[str, object]:
    """The JSON values of a finding and of its comparison with the truth; unknown values are None."""
    return {
        "recovered": None if finding is None else finding.guess.tolist(),
        "probability": None if finding is None else finding.probability.tolist(),
        "chance": None if finding is None else finding.chance,
        "claimed": 0 if finding is None else int(finding.claimed.sum()),
        "probably_right": None if finding is None else finding.probably_right,
        "contradicted": [] if finding is None else list(finding.contradicted),
        "up_to_factor": finding is not None and finding.up_to_factor,
        "right": None if finding is None or truth is None else finding.right(truth),
    }


def draw_claims(axes: "Axes", finding: Finding, truth: Integers | None, parts: str) -> None:
    """Draw the probability of each guess, and mark wrong guesses if the truth is known; `parts`: the axis label."""
    numbers = np.arange(1, len(finding.guess) + 1)
    right = np.ones(len(numbers), np.bool_) if truth is None else finding.guess == truth
    axes.plot(numbers[right], finding.probability[right], "o", ms=4, label="guess" if truth is None else "right guess")
    if not right.all():
        axes.plot(numbers[~right], finding.probability[~right], "x", ms=5, color="C3", label="wrong guess")
    axes.axhline(finding.chance, color="black", lw=0.8, ls="--", label="nothing claimed")
    title = f"{finding.claimed.sum():,} of {len(numbers):,} guesses claimed"
    if truth is not None:
        title += f", {right.sum():,} right"
    axes.set(xlabel=parts, ylabel="probability that it is right, as claimed", ylim=(-0.05, 1.05), title=title)
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The questions to the user's system: their numbers, their limits, and the reason for an early stop, or None."""

    oracle: str
    questions: int
    unanswered: int
    budget: int | None
    rate: float | None
    stopped: str | None = None

    @property
    def text(self) -> str:
        """The system and the number of questions, for a report."""
        missing = f", {self.unanswered:,} of them without an answer" if self.unanswered else ""
        return f"{self.oracle}, {self.questions:,} questions{missing}"


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedAttack(Generic[R]):
    """An attack that has ended: the family's name, the findings, the seed, and the time in seconds.

    `asked`: the questions to the user's own system; None: the system was simulated.
    """

    attack: str
    found: R
    asked: Asked | None
    seed: int
    seconds: float


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class AttackResult:
    """The result of an attack, which a command prints, saves and draws.

    Attributes
    ----------
    finding, truth
        The guesses and claims, None if the attack stopped before; and the true values, None if they are not known.
    parts
        The parts of the secret in words, for the plot.
    values
        JSON values of the family.
    heading, rows, table
        The text: a first line, labelled lines (a line without a text is left out), and further lines.
    """

    ended: EndedAttack[Any]
    finding: Finding | None
    truth: Integers | None
    parts: str
    values: Mapping[str, object]
    heading: str
    rows: LabelledLines
    table: Sequence[str] = ()

    def to_json(self) -> dict[str, Any]:
        """The family's name, the questions, the finding, the values, the seed and the seconds."""
        ended = self.ended
        asked = {} if ended.asked is None else asdict(ended.asked)
        found = finding_json(self.finding, self.truth)
        return {"attack": ended.attack, **asked, **found, **self.values, "seed": ended.seed, "seconds": ended.seconds}

    def text(self) -> str:
        """The heading, the rows, the table, the seconds and the seed."""
        ended, rows = self.ended, list(self.rows)
        if ended.asked is not None:
            rows = [("oracle", ended.asked.text), *rows, ("stopped", ended.asked.stopped)]
        lines = [f"  {label:<12} {text}" for label, text in rows if text is not None]
        return "\n".join([self.heading, *lines, *self.table, f"  {ended.seconds:.1f} s; seed {ended.seed}"])

    def plot(self, path: str) -> None:
        """Draw the claims into a file. Raises `InvalidParameter` for an unknown format."""
        if self.finding is None:
            say("no plot: the attack stopped before it had guessed the counts")
            return
        figure, axes = new_figure()
        draw_claims(axes, self.finding, self.truth, self.parts)
        write_figure(figure, path)
