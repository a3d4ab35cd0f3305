"""How results show themselves: as a page, in a notebook and as a plot. What draws them is above this room."""

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: What draws a result, by the form: functions as "module:name", which the package sets and the first use imports.
DRAWN_BY: Final[dict[str, str]] = {}


class Displayed:
    """The methods by which a result is looked at."""

    __slots__ = ()

    def to_html(self) -> str:
        """The report as one HTML page that needs nothing else: no network, no script."""
        return str(self._drawn("page"))

    def _repr_html_(self) -> str:
        """A compact block for notebooks."""
        return str(self._drawn("block"))

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the result with matplotlib, into `ax` or into a new figure; returns the axes.

        Of a verdict or a bound how often the event was seen on each input; of a curve the p-values; of a profile δ(ε).
        """
        axes: Axes = self._drawn("plot", ax)
        return axes

    def _drawn(self, form: str, *more: object) -> Any:
        import pkgutil

        return pkgutil.resolve_name(DRAWN_BY[form])(self, *more)
