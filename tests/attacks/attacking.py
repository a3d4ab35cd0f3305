"""What tests of attacks share: the command's result, and a limit for how often an attack is right."""

import json

from scipy.stats import binom

from dpwitness.cli import main


def attack(folder, *words):
    """The exit code of `dpwitness attack`, and its result; None where it has none."""
    saved = folder / "result.json"
    saved.unlink(missing_ok=True)
    code = main(["attack", *map(str, words), "--save", str(saved), "--quiet"])
    return code, json.loads(saved.read_text()) if saved.exists() else None


def agrees(hits, runs, p):
    """Whether so many hits are in accord with a probability, but for chance of 1e-9."""
    return binom.ppf(0.5e-9, runs, p) <= hits <= binom.isf(0.5e-9, runs, p)
