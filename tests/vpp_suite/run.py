"""Runs VPP's own tests against the router and compares what passes with a list.

A line for each test: `ok ID`, `FAIL ID: ...` for one of the list that does not pass, `new ID` for one that passes and is not in the
list, `open ID` for one that fails and is not in it. IDs are those of Python's unittest: `test_ip4.TestIPv4.test_fib`.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).parent
LIST = HERE / "passes.txt"


def words(path):
    """The lines of a file without blank ones and comments."""
    lines = (line.split("#")[0].strip() for line in path.read_text().splitlines())
    return [line for line in lines if line]


def run_file(args, file):
    """Runs one file of the suite; what became of each test, by ID."""
    out, log, record = args.out / "run", args.out / f"{file}.log", args.out / f"{file}.record"
    installed = args.out / "inst"
    command = [
        sys.executable, str(HERE / "recorded.py"), str(args.suite / "run_tests.py"),
        f"--vpp-ws-dir={args.suite.parent}", "--vpp-tag=vpp", f"--vpp={installed}/vpp/bin/vpp",
        f"--vpp-install-dir={installed}", f"--vpp-build-dir={installed}", f"--venv-dir={sys.prefix}", f"--tmp-dir={out}",
        f"--failed-dir={out}", f"--jobs={args.jobs}", "--timeout=180", f"--filter={file}",
    ]  # fmt: skip
    begun = time.monotonic()
    record.write_text("")
    how = ""
    with log.open("w") as sink:
        try:
            subprocess.run(
                command, cwd=out, stdout=sink, stderr=subprocess.STDOUT, timeout=args.seconds, check=False,
                env=os.environ | {"RECORD": str(record), "PYTHONDONTWRITEBYTECODE": "1"},
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            how = f", stopped after {args.seconds} s"
    became = {}
    for line in record.read_text().splitlines():
        word, _, test = line.partition(" ")
        # A test that fails after it was noted as passed has failed.
        if became.get(test) != "failed":
            became[test] = word
    ran = [word for word in became.values() if word != "skipped"]
    print(f"{file}: {ran.count('passed')} of {len(ran)} passed, {time.monotonic() - begun:.0f} s{how}", flush=True)
    return became


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suite", type=pathlib.Path, required=True, help="folder of VPP's tests")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="where logs go")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=600, help="for one file")
    parser.add_argument("--sample", action="store_true", help="only the files of sample.txt")
    parser.add_argument("--write", action="store_true", help="write what passes into the list")
    parser.add_argument("files", nargs="*", help="as in `ls`, without test_ and .py; those of the list if left out")
    args = parser.parse_args()
    args.suite, args.out = args.suite.resolve(), args.out.resolve()
    listed = set(words(LIST))
    files = args.files or (words(HERE / "sample.txt") if args.sample else sorted({test.split(".")[0][5:] for test in listed}))
    wrong = 0
    for file in files:
        expected = {test for test in listed if test.startswith(f"test_{file}.")}
        if not any((args.suite / folder / f"test_{file}.py").exists() for folder in (".", "asf")):
            print(f"SKIP {file}: there is no test_{file}.py in {args.suite}")
            continue
        became = run_file(args, file)
        for test in sorted(expected | became.keys()):
            now = became.get(test, "not run")
            if test in expected:
                wrong += now != "passed"
                note = f"it is in the list of what passes and is {now} now; see {args.out}/{file}.log"
                print(f"ok {test}" if now == "passed" else f"FAIL {test}: {note}")
            elif now != "skipped":
                print(f"{'new' if now == 'passed' else 'open'} {test}")
        if args.write:
            listed = (listed - expected) | {test for test, now in became.items() if now == "passed"}
    if args.write:
        head = [line for line in LIST.read_text().splitlines() if line.startswith("#")]
        LIST.write_text("\n".join([*head, *sorted(listed)]) + "\n")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
