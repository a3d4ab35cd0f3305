"""Where in the code a witness may come from: an explanation for people, which is no evidence."""

from dataclasses import dataclass
from typing import Annotated, Final, Literal

from dpwitness.codec import JsonFields, whole_below
from dpwitness.results.fields import Count
from dpwitness.results.text import wrapped_label

#: What was found: noise whose scale follows from the data; probabilities that are too far apart; another number of
#: draws; a branch; noise that is too small for the difference of the outputs; one draw for several entries; an entry
#: that no draw changes.
Cause = Literal["scale", "probabilities", "draws", "branch", "noise", "reuse", "exact"]
#: The least and the largest number of a line.
LINES: Final = (1, 1 << 31)


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation(JsonFields):
    """The first place at which runs on D and D′ part that draw from the same seeds.

    It is of few runs, which were chosen for nothing, and of the witness's pair alone. So it is no evidence: a line
    where the runs part may be right, and the fault elsewhere.

    Attributes
    ----------
    cause
        What kind of place it is.
    file
        The file's name; below the working folder, or the folder of installed packages, its path from there.
    line
        The line, from 1.
    text
        What happens there, for people.
    on_data, on_neighbour
        What happens there on D, and on D′.
    pairs
        Paired runs that were recorded, each from one seed on both inputs.
    """

    cause: Cause
    file: str
    line: Annotated[int, whole_below(LINES[1], LINES[0])]
    text: str
    on_data: str
    on_neighbour: str
    pairs: Count

    @property
    def basis(self) -> str:
        """What it rests on, for people."""
        return f"an explanation from {self.pairs} recorded pairs of runs with the same seeds, no evidence"

    def __str__(self) -> str:
        return f"line {self.line} of {self.file}: {self.text}"

    def lines(self) -> list[str]:
        """The lines of a report."""
        return [*wrapped_label("where", str(self)), *wrapped_label("", f"({self.basis})")]
