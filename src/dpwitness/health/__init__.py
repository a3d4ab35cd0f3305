"""Health checks for faults that make a verdict worthless or a false alarm, such as dependent runs or ignored inputs.

`before_search` looks at a few runs before the search. `dependence` tests independence. `refutation` makes all checks
before a claim is called refuted. `new_process` loads the mechanism in a new process, to test whether noise is drawn
anew there. `findings` lists the weaknesses of a pass. `explanation` names the line that may leak.
"""
