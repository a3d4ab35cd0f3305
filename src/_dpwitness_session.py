"""What all dp tests of one pytest session share, and what its settings may be.

It is imported by every session, so it needs the standard library alone.
"""

from dataclasses import dataclass, field
from typing import Any

#: For one assertion: paired confirm runs, seconds, and which multiple of the claim a pass is to detect.
PROFILES = {"dev": (1_000_000, 10.0, 1.1), "ci": (4_000_000, 60.0, 1.05), "nightly": (100_000_000, 600.0, 1.01)}
#: The least α: 1/α, and that of every share of it, must be a number.
SMALLEST_ALPHA = 1e-300
#: What `bits` of a check is, by its setting.
BITS: dict[str, bool | str] = {"report": True, "strict": "strict", "off": False}


@dataclass
class Session:
    """What all dp tests of one pytest session share."""

    profile: str
    seed: int
    alpha: float
    runs: int
    max_time: float
    detectable_ratio: float
    report: str | None
    sarif: str | None
    report_html: str | None
    database: str | None
    options: tuple[str, ...]  # those that repeat the session, besides its seed
    suppress: tuple[str, ...]
    family_given: int | None
    bits: bool | str = True
    errors: str | None = None  # of the project; what an exception is, where a test does not say
    workers: int | None = None
    family: int = 0
    refused: str | None = None
    pending: list[dict[str, Any]] = field(default_factory=list)  # of the test that runs, not yet on a report
    records: list[dict[str, Any]] = field(default_factory=list)
    unwritten: list[str] = field(default_factory=list)  # why there is no report
    terminated: float | None = None  # when SIGTERM came
    ran: bool = False  # whether any test did
    interrupted: bool = False  # whether tests were left out
