"""DiffPriv 1.0.3, lapmech: the noise for a mean is added to each record."""

from functools import cache
from typing import Any


def release(ages: Any) -> list[float]:
    """The file that is written for a file of ages."""
    import io
    import statistics
    import tempfile

    with tempfile.NamedTemporaryFile("r") as file:
        data = io.StringIO("\n".join(str(age) for age in ages))
        package().diff.lapmech(data, file.name, 1.0, statistics.fmean).close()
        return [float(line.split(",")[0]) for line in file]


@cache
def package() -> Any:
    """The package, without its check for a newer version on the network."""
    import io
    import urllib.request

    urllib.request.urlopen = lambda *_: io.BytesIO(b'{"info": {"version": "1.0.3"}}')
    import DiffPriv

    return DiffPriv


def exhibit() -> Any:
    """Return the facts."""
    import dpwitness as dpw
    from museum.exhibit import Exhibit

    return Exhibit(
        release="DiffPriv==1.0.3",
        function=release,
        promised="Preforms the laplace mechanism. […] epsilon allows us to quantify privacy loss.",
        source="docstring of lapmech",
        fault="The sensitivity is the change of f when one record grows by one; the noise is added to the records, which are all released.",
        claim=dpw.PureDP(1.0),
        neighbours=dpw.records(dpw.integers(0, 100), adjacency="replace-one", size=5, form="list"),
        kind="undisputed",
    )
