"""What the pytest plugin `_dpwitness_pytest` imports when a test first asserts privacy."""

from dpwitness.plugin.asserter import HealthCheckFailed, PrivacyViolation

__all__ = ["HealthCheckFailed", "PrivacyViolation"]
