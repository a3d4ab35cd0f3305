"""dpwitness finds and proves violations of differential privacy. Public names are loaded when first used.

The names stand in `__init__.pyi`, for type checkers and for this module alike.
"""

import lazy_loader

from dpwitness.results.display import DRAWING_FUNCTIONS

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

DRAWING_FUNCTIONS.update(
    page="dpwitness.report.page:page_of",
    plot="dpwitness.report.plots:draw",
)
