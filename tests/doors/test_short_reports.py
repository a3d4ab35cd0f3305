"""Short reports of verdicts, as the command line prints them without `--details`."""

import numpy as np
import pytest
from report_pages import results


@pytest.mark.parametrize("kind", ["violation", "pass", "cells"])
def test_a_short_report_is_read_at_a_glance(kind):
    """A verdict is one line, a witness at most eight, a pass at most six with the command that repeats it."""
    found = results()[kind]
    head, *below = found.report(details=False).splitlines()
    assert head == str(found).splitlines()[0]
    assert len(below) <= (8 if found.refuted else 5)
    assert max(map(len, below)) <= 80
    assert not any(word in " ".join(below) for word in ("α", "e-value", "nats", "confidence"))
    if found.refuted:
        counts, share = found.counts, found.witness.shares[0]
        allowed = f"the claim allows {np.e * counts.neighbour_hits / counts.runs:.4g}"
        assert f"  on D         {counts.hits:,} of {counts.runs:,} runs ({share:.4g}); {allowed}" in below
        assert f"  so {found.exceeded}; if the claim held, at most 1 check in 1,000,000 would say so" in below
    else:
        assert found.sentence in " ".join(" ".join(below).split())
        assert any("floating point: refuted" in line for line in below) == (found.floating_point is not None)
