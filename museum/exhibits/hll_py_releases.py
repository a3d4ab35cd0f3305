"""Exhibits of hll-py."""


def hll_py_segments(words):
    """The estimate of a word's count after the segments of one person's word."""
    from hll_py import HyperLogLogLDP, SketchConfig

    sketches = HyperLogLogLDP(SketchConfig(m=1, epsilon=1.0))
    sketches.insert_segments([f"{word}_seg0" for word in words])
    return sketches.estimate_word("apple")


def exhibits(dpw, Exhibit):
    yield Exhibit(
        function=hll_py_segments,
        release="hll-py==0.1.13",
        promised="fuzzy matching and local differentially private counting",
        source="summary of the package; epsilon is a field of SketchConfig",
        fault="Only the hash in a sketch is randomised; the sketch is kept under the true segment, and its presence shows.",
        neighbours=dpw.records(dpw.categories("apple", "grape", "lemon"), adjacency="replace-one", size=1, form="list"),
    )
