"""Exhibits of DiffPriv."""

from functools import cache, partial


@cache
def package():
    """The package, without its check for a newer version on the network."""
    import io
    import urllib.request

    urllib.request.urlopen = lambda *_: io.BytesIO(b'{"info": {"version": "1.0.3"}}')
    import DiffPriv

    return DiffPriv


def diffpriv_lapmech(ages):
    """The numbers in the file that is written for a file of ages."""
    import io
    import statistics
    import tempfile

    with tempfile.NamedTemporaryFile("r") as file:
        data = io.StringIO("\n".join(str(age) for age in ages))
        package().diff.lapmech(data, file.name, 1.0, statistics.fmean).close()
        return [float(line.split(",")[0]) for line in file]


def diffpriv_randresponse(flags):
    """The answers of five people, 0 or 1, by randomised response."""
    answers = list(flags)
    package().diff.randresponse(answers)
    return answers


def exhibits(dpw, Exhibit):
    exhibit = partial(Exhibit, release="DiffPriv==1.0.3")
    yield exhibit(
        function=diffpriv_lapmech,
        promised="Preforms the laplace mechanism. […] epsilon allows us to quantify privacy loss.",
        source="docstring of lapmech",
        fault="The sensitivity is the change of f when one record grows by one; the noise is added to the records, which are all released.",
        neighbours=dpw.records(dpw.integers(0, 100), adjacency="replace-one", size=5, form="list"),
    )
    yield exhibit(
        function=diffpriv_randresponse,
        promised="Random uses the Random Response mechanism.",
        source="docstring of randresponse; an answer is true with probability 3/4, which is ε = ln 3",
        fault="`for i in response_list: response_list[i] = …` changes the first two answers; the others are released as they are.",
        claim=dpw.PureDP(1.0986122886681098),
        neighbours=dpw.records(dpw.integers(0, 1), adjacency="replace-one", size=5, form="list"),
    )
