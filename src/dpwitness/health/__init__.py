"""What makes a verdict worthless or a false alarm, whatever the claim: dependent runs, ignored inputs, no noise.

`before_search` looks at a few runs before the search. `dependence` tests independence. `refutation` makes all checks
before a claim is called refuted. `new_process` loads the mechanism anew in a new process, to test whether
noise is drawn anew there. `findings` lists what weakens a pass.
"""
