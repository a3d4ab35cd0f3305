"""The settings of a project: the table `[tool.dpwitness]` of its pyproject.toml.

Settings are defaults of the command line and of the pytest plugin, whose own options override them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, get_args

from _dpwitness_session import BITS, PROFILES
from dpwitness.checks import brief, kind, near, number, seconds, text, whole
from dpwitness.errors import InvalidData, InvalidParameter
from dpwitness.files import from_here
from dpwitness.options import FUNCTIONS, HEALTH_CHECKS, MOST_RATIO, MOST_WORKERS, Errors, Option, options_of

#: The name of the table under `[tool]`.
TABLE: Final = "dpwitness"
#: The meanings of the settings that only the pytest plugin has.
PLUGIN_SETTINGS: Final[dict[str, str]] = {
    "profile": f"how hard the pytest plugin looks: {', '.join(PROFILES)}",
    "suppress": "health checks that the pytest plugin leaves out",
    "database": "folder of saved witnesses; none: keep no witnesses",
}


def between(low: float, high: float, *, open_: bool) -> Callable[[str, object], float]:
    """A reader of a number in [low, high], or in (low, high) if `open_`, which raises `InvalidParameter`."""

    def read(name: str, value: object) -> float:
        found = number(name, value)
        if not (low < found < high if open_ else low <= found <= high):
            raise InvalidParameter(f"{name}={brief(value)} must lie between {low:g} and {high:g}")
        return found

    return read


def one_of(*names: str) -> Callable[[str, object], str]:
    """A reader of a text among `names`, which raises `InvalidParameter`."""

    def read(name: str, value: object) -> str:
        if not isinstance(value, str) or value not in names:
            raise InvalidParameter(f"{name}={brief(value)} must be one of {', '.join(names)}")
        return value

    return read


def _health_checks(name: str, value: object) -> tuple[str, ...]:
    given = [value] if isinstance(value, str) else kind(name, value, list, "a list of health checks", InvalidParameter)
    return tuple(one_of(*HEALTH_CHECKS)(name, one) for one in given)


#: The readers of settings, which check their values, by the settings' names.
SETTING_READERS: Final[dict[str, Callable[[str, object], Any]]] = {
    "alpha": between(0, 1, open_=True),
    "confidence": between(0, 1, open_=True),
    "runs": lambda name, value: whole(name, value, 1),
    "max_time": seconds,
    "detectable_ratio": between(1, MOST_RATIO, open_=False),
    "bits": lambda name, value: BITS[one_of(*BITS)(name, value)],
    "errors": one_of(*get_args(Errors)),
    "seed": lambda name, value: whole(name, value, 0),
    "workers": lambda name, value: whole(name, value, 1, MOST_WORKERS),
    "profile": one_of(*PROFILES),
    "suppress": _health_checks,
    "database": text,
}


@dataclass(frozen=True, slots=True)
class Project:
    """The checked settings of one file, by their names with underscores; empty without the table."""

    path: Path | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    def defaults(self, function: str) -> dict[str, object]:
        """The defaults that the settings give to a function's options, by the options' names."""
        found = {}
        for name, option in options_of(function).items():
            if option.setting in self.settings:
                value = self.settings[option.setting]
                found[name] = 1 - value if option.setting == "confidence" else value
        return found


def known() -> dict[str, Option]:
    """The options of public functions whose defaults a setting gives, by the setting's name; one option a setting."""
    found: dict[str, Option] = {}
    for function in FUNCTIONS:
        for option in options_of(function).values():
            if option.setting:
                found.setdefault(option.setting, option)
    return found


def nearest(folder: Path) -> Path | None:
    """The pyproject.toml in a folder, or in the nearest folder above that has the file; None if no folder has it."""
    return next((path for above in (folder, *folder.parents) if (path := above / "pyproject.toml").is_file()), None)


def project_of(path: Path | None) -> Project:
    """The project of a pyproject.toml. Raises `InvalidData` for a bad file, `InvalidParameter` for a bad setting."""
    if path is None:
        return Project()
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InvalidData(f"cannot read {from_here(path)}: {error.strerror or error}") from error
    if TABLE.encode() not in data:
        return Project()
    import tomllib  # only for a file that names dpwitness

    try:
        tool = tomllib.loads(data.decode()).get("tool", {})
    except ValueError as error:  # not UTF-8, or not TOML
        raise InvalidData(f"{from_here(path)} is not TOML: {error}") from error
    table = tool.get(TABLE) if isinstance(tool, dict) else None
    if table is None:
        return Project()
    where = f"{from_here(path)}: [tool.{TABLE}]"
    if not isinstance(table, dict):
        raise InvalidParameter(f"{where} must be a table")
    return Project(path, dict(_setting(where, key, value) for key, value in table.items()))


def _setting(where: str, key: str, value: object) -> tuple[str, object]:
    name, names = key.replace("-", "_"), [*known(), *PLUGIN_SETTINGS]
    if name not in names:
        shown = [one.replace("_", "-") for one in names]
        meant = near(key, shown) or f"; it takes {', '.join(shown)}"
        raise InvalidParameter(f"{where} has no setting {key!r}{meant}")
    try:
        return name, SETTING_READERS[name](key, value)
    except InvalidParameter as error:
        raise InvalidParameter(f"{where} {error}") from error
