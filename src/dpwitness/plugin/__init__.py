"""The classes that the plugin `_dpwitness_pytest` imports with the first assertion; `Asserter` types its fixture."""

from dpwitness.plugin.asserter import Asserter, HealthCheckFailed, PrivacyViolation

__all__ = ["Asserter", "HealthCheckFailed", "PrivacyViolation"]
