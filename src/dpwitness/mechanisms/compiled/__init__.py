"""A plain function as machine code that runs both inputs of a pair: how much time each part saves, and what guards it.

Measured by `benchmarks/compiled_parts.py` in one run, on `svt`, `histogram` and `gptt_lee_clifton`:

- `driver`: one module a mechanism, written to a folder where numba keeps its machine code: 0.01 s until the first runs,
  0.7 to 1.0 s without. Guard: `reach`, which names the module by a digest of the mechanism and of all that it calls.
- `dpwitness.images`, running that machine code without numba: a second process takes 0.53 of the processor time that
  it takes with it (`benchmarks/start.py`). Guards: numba runs what has no image, and what raises.
- `driver`, inlining the mechanism into the loop over runs: 1.1 to 1.5 times as fast.
- `placing`, arguments without reference counts: 1.1 to 1.5 times as fast, 3 times where one number comes out. Guard:
  the caller holds them all the while.
- in `rows`, too, the generator inlined: 1.0 to 1.3 times as fast.
- `scratch`, arrays in memory that every run uses again: 1.1 to 1.2 times as fast. Guards: what is not written is NaN,
  and a function whose source is not what was loaded is left as it is.
- state replay (`driver`): both inputs of a run start from one state of the generator, the next run behind the draws of
  both. A claim is refuted in 1.8 to 2.7 times fewer runs (`histogram_wrong_scale`, `isvt3`). It costs nothing that can
  be measured. Guard: the half of a word that 32-bit draws leave is dropped, so that runs stay independent.

`compare` guards all of it: the same seeds run compiled and in Python, before a mechanism is used and before a verdict.
"""
