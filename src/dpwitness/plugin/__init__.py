"""The classes that the plugin `_dpwitness_pytest` imports at the first assertion; its fixture is an `Asserter`."""

from dpwitness.plugin.asserter import Asserter, HealthCheckFailed, PrivacyViolation

__all__ = ["Asserter", "HealthCheckFailed", "PrivacyViolation"]
