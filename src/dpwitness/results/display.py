"""The display of results as a page, in a notebook and as a plot, by functions that the package `dpwitness` sets."""

import html
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: The functions that draw a result, by form, as "module:name"; the first use of a function imports it.
DRAWING_FUNCTIONS: Final[dict[str, str]] = {}


class Displayed:
    """The methods that display a result."""

    __slots__ = ()

    def to_html(self) -> str:
        """The report as one HTML page, which needs no network and no script."""
        return str(self._draw("page"))

    def _repr_html_(self) -> str:
        """The report as preformatted text, for notebooks."""
        return f"<pre>{html.escape(str(self))}</pre>"

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the result with matplotlib, into `ax` or into a new figure; returns the axes.

        The plot of a verdict or a bound shows the rates of the event on both inputs, a curve's plot the p-values, and a
        profile's plot δ(ε).
        """
        axes: Axes = self._draw("plot", ax)
        return axes

    def _draw(self, form: str, *more: object) -> Any:
        import pkgutil

        return pkgutil.resolve_name(DRAWING_FUNCTIONS[form])(self, *more)
