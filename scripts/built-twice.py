#!/usr/bin/env python3
"""Names libraries that one build made and a later one made again in another variant.

    built-twice.py FIRST SECOND

Both are files with the messages of `cargo build --message-format=json`. A library is another variant if its file has
another name: its features, its profile or those of a crate below it differ. That costs minutes, and nothing shows it.
Prints a line `FAIL built-twice: ...` and ends with 1 if there is one.
"""

import json
import pathlib
import sys


def libraries(file):
    """The files of each library, by its package and its name."""
    found = {}
    for line in pathlib.Path(file).read_text().splitlines():
        if not line.startswith("{"):
            continue
        message = json.loads(line)
        if message.get("reason") != "compiler-artifact" or message["profile"]["test"]:
            continue
        if {"lib", "rlib", "proc-macro"} & set(message["target"]["kind"]):
            files = found.setdefault((message["package_id"], message["target"]["name"]), set())
            files.update(name for name in message["filenames"] if not name.endswith(".rmeta"))
    return found


def main():
    first, second = libraries(sys.argv[1]), libraries(sys.argv[2])
    if not first or not second:
        sys.exit("FAIL built-twice: no library in the messages of one of the builds")
    # A library that the first build has in two variants may be there in more, for the programs that only the second has.
    twice = sorted(key[1] for key, files in second.items() if key in first and not first[key] & files)
    if twice:
        print(f"FAIL built-twice: {len(twice)} libraries of {len(first)} were built for the programs and again for the tests, "
              f"since their features or their profile differ: {', '.join(twice[:10])}")
        sys.exit(1)
    print(f"ok built-twice: none of {len(first)} libraries")


if __name__ == "__main__":
    main()
