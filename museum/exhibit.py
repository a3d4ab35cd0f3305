"""The facts of an exhibit, and the exhibits of the museum."""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, get_args

import dpwitness
from dpwitness import Claim, PureDP
from dpwitness.neighbours import Relation

#: The folder of the exhibits' files.
FOLDER: Final = Path(__file__).parent / "exhibits"
#: The claim of most exhibits: ε = 1.
ONE: Final = PureDP(1.0)

#: The kind of an exhibit. An "undisputed" claim is refuted under every usual adjacency. A claim that "depends on the
#: adjacency" is refuted under the named adjacency, and perhaps not under another. An "arguable" promise can be read in
#: two ways. A "control" keeps its claim.
Kind = Literal["undisputed", "depends on the adjacency", "arguable", "control"]
KINDS: Final[tuple[str, ...]] = get_args(Kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exhibit:
    """A mechanism of a released package, the promise of its documentation, and the facts for a check.

    No pair of inputs and no event is given: `neighbours` says which datasets there are.
    """

    release: str  # name==version
    function: Callable[..., Any]  # a function of one dataset, at the top level of its file, named as the exhibit
    promised: str  # quoted from the package's documentation or docstring
    source: str  # the place of the quotation
    fault: str  # the fault of the release in one sentence; for a control, a description of the mechanism
    neighbours: Relation
    claim: Claim = ONE
    kind: Kind = "undisputed"
    fixed: str | None = None  # name==version of a release in which the same function keeps the claim
    max_time: float = 60.0  # the time limit of a check, in seconds
    options: Mapping[str, Any] = field(default_factory=dict)  # further options of `check`

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
        """The function as `file:name`, the form that `dpw.remote` takes."""
        return f"{self.file}:{self.name}"

    @property
    def releases(self) -> tuple[str, ...]:
        """The release, and the fixed release if one is known."""
        return tuple(filter(None, (self.release, self.fixed)))


def exhibits() -> dict[str, Exhibit]:
    """All exhibits by name, in the order of the names.

    The interpreter of a release loads the file of its functions, too, and has no dpwitness: the facts are made by a
    function that gets dpwitness and this class.
    """
    modules = [importlib.import_module(f"museum.exhibits.{file.stem}") for file in FOLDER.glob("[!_]*.py")]
    found = {exhibit.name: exhibit for module in modules for exhibit in module.exhibits(dpwitness, Exhibit)}
    return dict(sorted(found.items()))
