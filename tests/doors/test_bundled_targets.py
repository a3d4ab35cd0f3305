"""Every bundled target is checked by its name alone, at default settings but for the time."""

import pytest

from dpwitness.cli import main
from dpwitness.mechanisms.catalog import load, registered
from dpwitness.targets import target_of
from running import sampled


@pytest.mark.campaign
@pytest.mark.parametrize("name", sampled(sorted(registered()), 6))
def test_no_bundled_target_is_refused(name, capsys, recwarn):
    code = main(["check", name, "--epsilon", "1", "--max-time", "30s", "--seed", "1"])
    printed = capsys.readouterr()
    assert code in (0, 1), printed.err
    known = target_of(load(name))
    if known.claim == "none" and "counts" not in name and known.true_epsilon.startswith("∞"):
        assert code == 1, printed.out  # sums of secret bits, and what is made of them, are refuted within that time
