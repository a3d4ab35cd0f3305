"""What runs of plain Python return, as rows; the types of a library in `of_LIBRARY`, imported when one first comes."""

from dpwitness.mechanisms.outcomes import containers, scalars
from dpwitness.mechanisms.outcomes.row import LABELS, SINGLE, Row, is_sequence, row_of

__all__ = ["LABELS", "SINGLE", "Row", "containers", "is_sequence", "row_of", "scalars"]
