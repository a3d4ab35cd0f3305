"""The facts of an exhibit, and the exhibits of the museum."""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, get_args

import dpwitness
from dpwitness import Claim, PureDP
from dpwitness.neighbours import Relation

FOLDER: Final = Path(__file__).parent / "exhibits"
#: The claim of most exhibits: ε = 1.
ONE: Final = PureDP(1.0)

#: "undisputed": under every usual adjacency; "depends on the adjacency": under the one that is named, and perhaps not
#: under another; "arguable": what is promised can be read in two ways; "control": the claim is kept.
Kind = Literal["undisputed", "depends on the adjacency", "arguable", "control"]
KINDS: Final[tuple[str, ...]] = get_args(Kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exhibit:
    """A mechanism of a released package, what its documentation promises, and what is expected of a check.

    No pair of inputs and no event is given: `neighbours` says which datasets there are.
    """

    release: str  # name==version
    function: Callable[..., Any]  # of one dataset, at the top level of its file; its name is that of the exhibit
    promised: str  # quoted from the package's documentation or docstring
    source: str  # where that stands
    fault: str  # what the release does, in one sentence; of a control, what is tested
    neighbours: Relation
    claim: Claim = ONE
    kind: Kind = "undisputed"
    fixed: str | None = None  # name==version of a release in which the same function keeps the claim
    max_time: float = 60.0  # seconds of a check
    options: Mapping[str, Any] = field(default_factory=dict)  # further ones of `check`

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.function.__name__

    @property
    def file(self) -> Path:
        """The file of the function, which holds all exhibits of one package."""
        return FOLDER / f"{self.function.__module__.rpartition('.')[2]}.py"

    @property
    def target(self) -> str:
        """The function, for `dpw.remote`."""
        return f"{self.file}:{self.name}"

    @property
    def releases(self) -> tuple[str, ...]:
        """The release, and the fixed one if there is one."""
        return tuple(filter(None, (self.release, self.fixed)))


def exhibits() -> dict[str, Exhibit]:
    """All exhibits by name, in the order of the names.

    The interpreter of a release loads the file of its functions, too, and has no dpwitness: the facts are made by a
    function that gets dpwitness and this class.
    """
    modules = [importlib.import_module(f"museum.exhibits.{file.stem}") for file in FOLDER.glob("[!_]*.py")]
    found = {exhibit.name: exhibit for module in modules for exhibit in module.exhibits(dpwitness, Exhibit)}
    return dict(sorted(found.items()))
