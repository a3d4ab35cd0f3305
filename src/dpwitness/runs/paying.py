"""Whether it pays to make runs in other processes: starting these, and sending, take time too."""

from dataclasses import dataclass
from typing import Final

#: Seconds of runs made here before processes are started, which takes about as long; and seconds of runs ahead from
#: which on starting them pays.
START: Final = 1.0
PAYS: Final = 4.0
#: The same once they run: below, sending costs more than it saves.
PAYS_STARTED: Final = 0.03


@dataclass(slots=True, kw_only=True)
class Paying:
    """What is known of the time that runs of a mechanism take, in seconds.

    `here`: of the runs made in this process; `expected`: what `here` comes to at least if all runs are made here, as
    far as anybody said.
    """

    here: float = 0.0
    expected: float = 0.0

    def expect(self, seconds: float) -> None:
        """So many seconds of runs will come at least, in whatever pieces."""
        self.expected = self.here + seconds

    def to_send(self, parts: int, seconds: float) -> bool:
        """Whether to send parts of work to processes that run, which take so many seconds together."""
        return parts > 1 and seconds >= PAYS_STARTED

    def to_start(self, parts: int, seconds: float, part_seconds: float) -> bool:
        """Whether to start processes for parts of work that take so many seconds together, and one of them so many."""
        if self.expected - self.here >= PAYS:
            return True
        # In many small pieces: a few times what was done here may still come.
        ahead = seconds + 3 * self.here if parts > 1 else seconds
        return ahead >= PAYS and (self.here >= START or part_seconds >= START / 4)
