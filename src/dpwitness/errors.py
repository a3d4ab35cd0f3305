"""All errors and warnings of dpwitness. Classes not marked as internal can be imported from `dpwitness`.

    DPWitnessError
    ├── BadInput (also a ValueError)      an argument of the caller cannot be used
    │   ├── InvalidClaim                  ε or δ out of range
    │   ├── InvalidNeighbours             an invalid pair of inputs or relation
    │   ├── InvalidData                   a file that cannot be read or written, or has an invalid content
    │   ├── InvalidParameter              a setting, or a parameter that the mechanism lacks, needs or rejects
    │   ├── InvalidWitness                a witness or a result that cannot be read back
    │   ├── UnknownTarget                 no mechanism has the name
    │   ├── UnknownAttack                 no attack has the name
    │   ├── BudgetTooSmall                too few runs to refute anything
    │   └── AttackStopped                 the questions or the time ended before the attack had its answers
    ├── OracleFailed (also a RuntimeError)     the system under attack raised, or its answer was invalid
    ├── ClusterLost (also a ConnectionError)   no cluster answers, or the cluster stopped answering
    └── MechanismError (also a RuntimeError)   the mechanism misbehaved while it ran
        ├── MechanismRaised               it raised an exception
        ├── MechanismTimeout              it did not return in time
        ├── MechanismCrashed              it ended the process that ran it
        ├── DependentRuns                 its runs are not independent of each other
        ├── InvalidOutcome                it returned something that is not an outcome
        └── CompiledDisagrees             (internal) compiled code gave other outcomes than Python, so Python runs

    UserWarning
    ├── SlowMechanism                     numba refused the mechanism, so it runs as plain Python
    └── CompiledDiffers                   compiled, the mechanism gives other outcomes, so it runs as plain Python

    BaseException
    └── RunsEnded                         (internal) runs are ended from outside

The command line prints the message of any error on one line and exits with 2. The pytest plugin fails a test by
`dpwitness.plugin.PrivacyViolation`, an AssertionError, or by `dpwitness.plugin.HealthCheckFailed`, a DPWitnessError.
"""


class RunsEnded(BaseException):
    """Ends a run. A `BaseException`, so that `except Exception` in the mechanism does not catch the end."""


class DPWitnessError(Exception):
    """Base of every error that dpwitness raises on purpose."""


class BadInput(DPWitnessError, ValueError):
    """An argument of the caller cannot be used."""


class InvalidClaim(BadInput):
    """An ε or a δ is out of range."""


class InvalidNeighbours(BadInput):
    """A pair of inputs, or a relation, is invalid."""


class InvalidData(BadInput):
    """A file cannot be read or written, or its content is invalid."""


class InvalidParameter(BadInput):
    """A setting is invalid, or the mechanism lacks, needs or rejects a parameter."""


class InvalidWitness(BadInput):
    """A file or a JSON value holds no witness, or no result, that can be read."""


class UnknownTarget(BadInput):
    """No mechanism has the given name."""


class UnknownAttack(BadInput):
    """No attack family, or no generator of candidates, has the given name."""


class BudgetTooSmall(BadInput):
    """The runs are too few to refute even the clearest violation."""


class AttackStopped(BadInput):
    """The questions or the time of an attack ended before the attack had the answers that it needs."""


class OracleFailed(DPWitnessError, RuntimeError):
    """The system under attack raised an exception, or returned an invalid answer."""


class ClusterLost(DPWitnessError, ConnectionError):
    """No cluster answers, or the cluster stopped answering."""


class MechanismError(DPWitnessError, RuntimeError):
    """The mechanism misbehaved while it ran."""


class MechanismRaised(MechanismError):
    """The mechanism raised an exception."""

    on_both_inputs = False  # True: it raised in each of its first runs, on both inputs of the pair


class MechanismTimeout(MechanismError):
    """The mechanism did not return in time."""


class MechanismCrashed(MechanismError):
    """The mechanism ended the process that ran it, as `os._exit` does, or it called `sys.exit`."""


class DependentRuns(MechanismError):
    """The runs of the mechanism are not independent of each other, so their counts are no evidence."""


class InvalidOutcome(MechanismError):
    """The mechanism returned something that is not an outcome."""


class CompiledDisagrees(MechanismError):
    """The compiled mechanism gave another outcome than plain Python, so its counts must not be used."""


class SlowMechanism(UserWarning):
    """The mechanism runs as plain Python because numba could not compile it."""


class CompiledDiffers(UserWarning):
    """The mechanism runs as plain Python because, compiled by numba, it gives other outcomes than in Python."""
