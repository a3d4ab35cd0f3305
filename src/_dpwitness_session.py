"""The state that all dp tests of one pytest session share, and the values of its settings.

Every session imports this module, so it needs the standard library alone.
"""

from dataclasses import dataclass, field
from typing import Any

#: PROFILES has for each profile the limits of an assertion, in paired confirm runs and in seconds, and the multiple of
#: the claim that a pass has to detect.
PROFILES = {"dev": (1_000_000, 10.0, 1.1), "ci": (4_000_000, 60.0, 1.05), "nightly": (100_000_000, 600.0, 1.01)}
#: SMALLEST_ALPHA is the smallest α of a session: 1/α must be a finite float, for every share of α too.
SMALLEST_ALPHA = 1e-300
#: BITS has the values of the option `bits` of a check, by setting.
BITS: dict[str, bool | str] = {"report": True, "strict": "strict", "off": False}


@dataclass
class Session:
    """The state that all dp tests of one pytest session share."""

    profile: str
    seed: int
    alpha: float
    runs: int
    max_time: float
    detectable_ratio: float
    report: str | None
    sarif: str | None
    database: str | None
    options: tuple[str, ...]  # the options that repeat the session, besides its seed
    suppress: tuple[str, ...]
    family_given: int | None
    bits: bool | str = True
    errors: str | None = None  # the project's setting, for tests without their own
    workers: int | None = None
    family: int = 0
    refused: str | None = None
    pending: list[dict[str, Any]] = field(default_factory=list)  # records of the running test, not yet on a report
    records: list[dict[str, Any]] = field(default_factory=list)
    unwritten: list[str] = field(default_factory=list)  # reasons why files could not be written
    terminated: float | None = None  # the time of SIGTERM by `time.monotonic`, in seconds
    ran: bool = False  # whether any test ran
    interrupted: bool = False  # whether tests were left out
