"""How a test of privacy fails."""

from typing import Any

from dpwitness.errors import DPWitnessError


class PrivacyViolation(AssertionError):
    """The claim is refuted; the message is the witness in plain English, `verdict` the `Violation`."""

    def __init__(self, text: str, verdict: Any) -> None:
        super().__init__(text)
        self.verdict = verdict


class HealthCheckFailed(DPWitnessError):
    """The assertion would say nothing, or something wrong; `name` is the health check that says so."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(f"{name}: {text}; if this is meant so, pass suppress=[{name!r}]")
        self.name = name


for _failure in (PrivacyViolation, HealthCheckFailed):
    _failure.__module__ = "dpwitness.plugin"  # as users import it, and shorter in the output
