"""What the plugin `_dpwitness_pytest` imports when a test first asserts privacy; `Asserter` types its fixture."""

from dpwitness.plugin.asserter import Asserter, HealthCheckFailed, PrivacyViolation

__all__ = ["Asserter", "HealthCheckFailed", "PrivacyViolation"]
