"""How results show themselves: as a page, in a notebook and as a plot. What draws them is imported when it is asked."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Displayed:
    """The methods by which a result is looked at."""

    __slots__ = ()

    def to_html(self) -> str:
        """The report as one HTML page that needs nothing else: no network, no script."""
        from dpwitness.report.page import Entry, page

        shown: Any = self
        return page([Entry(name=shown.call, result=shown)])

    def _repr_html_(self) -> str:
        """A compact block for notebooks."""
        from dpwitness.report.page import block

        shown: Any = self
        return block(shown)

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the result with matplotlib, into `ax` or into a new figure; returns the axes.

        Of a verdict or a bound how often the event was seen on each input; of a curve the p-values; of a profile δ(ε).
        """
        from dpwitness.report.plots import draw

        shown: Any = self
        return draw(shown, ax)
