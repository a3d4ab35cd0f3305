"""The JSON Schemas of saved files: `python -m dpwitness.results.schema docs/schemas` writes a file for each kind."""

import json
import sys
from pathlib import Path
from typing import Any, Final

from dpwitness.codec import Schema, schema_of
from dpwitness.results.bound import Bound
from dpwitness.results.curve import Curve
from dpwitness.results.kept import KeptEvidence
from dpwitness.results.profile import Profile
from dpwitness.results.verdict import Verdict
from dpwitness.results.witness import Witness

#: SAVED_KINDS has the types of saved files, by the names of their schemas.
SAVED_KINDS: Final[dict[str, Any]] = {
    "witness": Witness,
    "verdict": Verdict,
    "bound": Bound,
    "curve": Curve,
    "profile": Profile,
    "kept": KeptEvidence,
}


def schemas() -> dict[str, Schema]:
    """The schemas (draft 2020-12) of all kinds of files, by name."""
    return {name: schema_of(kind, f"dpwitness {name}") for name, kind in SAVED_KINDS.items()}


def main(folder: str) -> None:
    """Write the schemas into a folder."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name, schema in schemas().items():
        text = json.dumps(schema, ensure_ascii=False, indent=1)
        Path(folder, f"{name}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
