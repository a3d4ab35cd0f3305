"""What makes a verdict worthless or a false alarm, whatever the claim: dependent runs, ignored inputs, no noise.

`before_search` looks at a few runs before the search. `dependence` tests independence. `refutation` makes all checks
before a claim is called refuted. `new_process` tests whether noise is drawn anew in a new process, which loads
the mechanism (`loading`). `findings` lists what weakens a pass.
"""
