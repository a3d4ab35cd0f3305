"""What makes a verdict worthless or a false alarm, whatever the claim: dependent runs, ignored inputs, no noise.

`before_search` looks at a few runs before any are spent. `dependence` has the tests of independence and what they are
applied to; `refutation` asks all of them before a claim is called refuted, and `new_process` whether noise is drawn
anew in a process that loads the mechanism (`loading`) for the first time. `findings` has what a pass says little of.
"""
