"""Runs VPP's test runner as it is and notes what became of each test in the file named by RECORD: `passed ID`, `failed ID`, `skipped ID`.

The runner's own report names only tests that fail. Its children are forked, so they inherit what is changed here.
"""

import os
import runpy
import sys

suite = os.path.dirname(os.path.abspath(sys.argv[1]))
sys.argv = sys.argv[1:]
sys.path.insert(0, suite)

from asfframework import VppTestResult  # noqa: E402: found in the folder that was just named


def noting(name, word):
    """Makes one of the result's methods note `word` too."""
    original = getattr(VppTestResult, name)

    def method(self, test, *args):
        with open(os.environ["RECORD"], "a", encoding="utf-8") as record:
            record.write(f"{word} {test.id()}\n")
        return original(self, test, *args)

    setattr(VppTestResult, name, method)


for name, word in [("addSuccess", "passed"), ("addFailure", "failed"), ("addError", "failed"), ("addSkip", "skipped")]:
    noting(name, word)
runpy.run_path(sys.argv[0], run_name="__main__")
