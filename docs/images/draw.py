"""Draw the pictures of the documentation: `python docs/images/draw.py`, in seconds, with fixed seeds."""

from pathlib import Path

from matplotlib.figure import Figure

import dpwitness as dpw
from dpwitness.report.plots import draw_profile, draw_trade_off, write_figure

FOLDER = Path(__file__).parent


def noisy_count(rng, counts, epsilon):
    """A count with 0.8 of the noise that its claim needs."""
    return counts[0] + rng.laplace(0, 0.8 / epsilon)


def main() -> None:
    """Write each picture next to this file."""
    found = dpw.profile(noisy_count, epsilon=1.0, claim=1.0, neighbours=dpw.histogram(1), runs=4_000_000, seed=1)
    figure = Figure(figsize=(10.4, 4.4), layout="constrained")
    for axes, draw in zip(figure.subplots(1, 2), (draw_profile, draw_trade_off), strict=True):
        draw(axes, found)
    write_figure(figure, FOLDER / "noisy_count.svg")


if __name__ == "__main__":
    main()
