"""The program `dpwitness`: from its first line on an interruption ends it with 130, and not with a traceback.

The command line itself takes a part of a second to import, so this module imports nothing before it can be interrupted.
"""


def main() -> int:
    """Run the command line of this process; return its exit code."""
    try:
        from dpwitness.cli import main as command

        return command()
    except KeyboardInterrupt:  # while that was imported; `command` answers all others itself
        import sys

        if sys.stderr is not None:
            sys.stderr.write("dpwitness: interrupted before there was a result\n")
        exec("")  # as in `dpwitness.cli.main`
        return 130
