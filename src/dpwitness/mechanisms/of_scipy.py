"""Sparse arrays of scipy, as entries of a row."""

from typing import Any

from scipy import sparse

from dpwitness.events.encoding import symbol
from dpwitness.mechanisms.outcomes import Place, Row, append


@append.register(sparse.sparray)
@append.register(sparse.spmatrix)
def _(value: Any, row: Row, place: Place) -> None:
    row.put(symbol("sparse"), place, "sparse")
    row.add(value.toarray(), place)
