"""A script without `if __name__ == "__main__"`: it checks its mechanism whenever it is imported."""

import dpwitness as dpw


def exact(data):
    return float(data[0])


dpw.check(exact, claim=1.0, neighbours=[([0.0], [1.0])], runs=100, search_runs=64)
