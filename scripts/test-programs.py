#!/usr/bin/env python3
"""Runs the test programs that `cargo test --no-run --message-format=json` built, and tells what each took.

    test-programs.py MESSAGES [--jobs N] [--only REGEX] [--without REGEX] [-- WORDS FOR EACH PROGRAM]

MESSAGES is the file with cargo's messages. A regular expression is matched with `FOLDER/NAME` of each program, such as
`net/fib/all` or `lab/engine/memif`. The output of a program comes as a whole when it has ended, so that two of them do
not mix; the slowest come last, with their seconds. Each program runs as cargo would run it: in its crate's folder, with
libraries found. The exit code tells whether all passed.

Cargo itself would run one after the other, though many wait rather than work, and builds other variants of crates if
only part of the workspace is chosen.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent


class Program:
    """A test program and where it belongs."""

    def __init__(self, message):
        self.path = message["executable"]
        self.manifest = pathlib.Path(message["manifest_path"])
        self.folder = self.manifest.parent
        target = message["target"]
        name = "unit" if "lib" in target["kind"] or "bin" in target["kind"] or "proc-macro" in target["kind"] else target["name"]
        self.name = f"{os.path.relpath(self.folder, ROOT)}/{name}"

    def run(self, words, limit):
        """Its output, its exit code, its seconds."""
        environment = dict(os.environ)
        environment["CARGO_MANIFEST_DIR"] = str(self.folder)
        environment["CARGO"] = environment.get("CARGO", "cargo")
        libraries = [os.path.dirname(self.path), environment.get("LD_LIBRARY_PATH", "")]
        environment["LD_LIBRARY_PATH"] = ":".join(part for part in libraries if part)
        begun = time.monotonic()
        process = subprocess.Popen(
            [self.path, *words],
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=limit)
            code = process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            output, _ = process.communicate()
            output += f"\nFAIL {self.name}: not finished after {limit} seconds\n".encode()
            code = 124
        return output.decode(errors="replace"), code, time.monotonic() - begun


def programs(messages):
    """The programs among cargo's messages."""
    found = []
    for line in messages:
        if not line.startswith("{"):
            continue
        message = json.loads(line)
        if message.get("reason") == "compiler-artifact" and message.get("executable") and message["profile"]["test"]:
            found.append(Program(message))
    return sorted(found, key=lambda program: program.name)


def one(program, arguments):
    """Runs a program; what to print, whether it passed, its name, its seconds."""
    output, code, took = program.run(arguments.words, arguments.limit)
    text = f"     Running {program.name}\n{output}"
    if code != 0 and "test result: FAILED" not in output and code != 124:
        text += f"\nFAIL {program.name}: ended with {code} before it could count\n"
    return text, code == 0, program.name, took


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("messages")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="")
    parser.add_argument("--without")
    parser.add_argument("--limit", type=int, default=600)
    own, words = sys.argv[1:], []
    if "--" in own:
        at = own.index("--")
        own, words = own[:at], own[at + 1:]
    arguments = parser.parse_args(own)
    arguments.words = words
    with open(arguments.messages, encoding="utf-8") as messages:
        found = programs(messages)
    chosen = [
        p for p in found
        if re.search(arguments.only, p.name) and not (arguments.without and re.search(arguments.without, p.name))
    ]
    if not chosen:
        print("FAIL no test program was built")
        return 1
    passed, took = True, []
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as threads:
        for done in concurrent.futures.as_completed([threads.submit(one, p, arguments) for p in chosen]):
            text, well, name, seconds = done.result()
            print(text, flush=True)
            passed = passed and well
            took.append((seconds, name))
    print(f"{len(chosen)} test programs; the slowest:")
    for seconds, name in sorted(took, reverse=True)[:20]:
        print(f"{seconds:8.1f} s  {name}")
    return 0 if passed else 1


sys.exit(main())
