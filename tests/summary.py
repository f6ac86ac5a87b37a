# SPDX-License-Identifier: Apache-2.0
"""Counts the cases of a ctest JUnit report and prints 'N passed, N failed, N skipped'."""
import sys
import xml.etree.ElementTree as xml


def outcome(case):
    if case.find("failure") is not None or case.get("status") == "fail":
        return "failed"
    if case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
        return "skipped"
    return "passed"


def main():
    cases = list(xml.parse(sys.argv[1]).getroot().iter("testcase"))
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for case in cases:
        counts[outcome(case)] += 1
    if counts["skipped"]:
        print(f"{counts['skipped']} tests were skipped: they need a GPU, a second one or more of its memory, or a compiler or "
              "a Python library that this machine has not")
    print(", ".join(f"{count} {word}" for word, count in counts.items()))
    return 0 if cases and counts["failed"] == 0 else 1


sys.exit(main())
