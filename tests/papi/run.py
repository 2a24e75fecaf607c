"""Runs the tests; a line for each: ok, FAIL or SKIP, with why."""

import pathlib
import sys
import time
import unittest

HERE = pathlib.Path(__file__).parent


class Lines(unittest.TestResult):
    """Prints a line for each test as it ends."""

    def startTest(self, test):
        super().startTest(test)
        self.begun = time.monotonic()

    def name(self, test):
        return test.id()

    def addSuccess(self, test):
        super().addSuccess(test)
        print(f"ok {self.name(test)} ({time.monotonic() - self.begun:.1f} s)", flush=True)

    def failed(self, test, why):
        last = why.strip().splitlines()[-1]
        print(f"FAIL {self.name(test)}: {last}\n{why}", flush=True)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.failed(test, self._exc_info_to_string(err, test))

    def addError(self, test, err):
        super().addError(test, err)
        self.failed(test, self._exc_info_to_string(err, test))

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err:
            self.failed(subtest, self._exc_info_to_string(err, test))

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        print(f"SKIP {self.name(test)}: {reason}", flush=True)


def main():
    sys.path.insert(0, str(HERE))
    loader = unittest.TestLoader()
    names = sys.argv[1:]
    suite = loader.loadTestsFromNames(names) if names else loader.discover(str(HERE))
    result = Lines()
    suite.run(result)
    if loader.errors:
        print("\n".join(loader.errors))
    print(f"{result.testsRun} run, {len(result.failures) + len(result.errors)} failed, {len(result.skipped)} skipped")
    sys.exit(0 if result.wasSuccessful() and result.testsRun and not loader.errors else 1)


main()
