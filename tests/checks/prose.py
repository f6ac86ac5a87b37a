# SPDX-License-Identifier: Apache-2.0
"""Pages, comments, docstrings and messages keep the rules of CONTRIBUTING.md, "Plain English".

    prose.py ROOT            checks every file
    prose.py ROOT PATH...    checks files and folders below ROOT
"""
import re
import subprocess
import sys
from pathlib import Path

COLUMNS = 100
CODE = {".cpp", ".hpp", ".cuh", ".cu", ".h", ".c", ".in"}
SCRIPTS = {".py", ".cmake", ".txt", ".sh", ".yml", ".toml"}
GENERATED = {"docs/fields_and_rules.md"}
THIS = "tests/checks/prose.py"

WORDS = {  # a word that people do not use so, and what to write
    r"behind": "after, past the end of, that follows",
    r"answer(s|ed|ing)?": "return, report, print",
    r"anew": "again",
    r"besides?": "compared with, next to, in addition to",
    r"(who|what|wher)ever": "name the subject",
    r"tells?|told|says|said": "print, report, state, name",
}
FIRST = {  # how no comment begins
    r"What\b(?![^.]*\?)": "begin with a verb: Returns, Holds, Counts",
    r"Of (a|an|the|all|one)\b": "begin with a subject or a verb",
    r"Where\b(?![^.]*\?)": "begin with If, or with a verb",
}

C_TOKEN = re.compile(r'(?P<raw>R"(?P<d>[^(\s]*)\(.*?\)(?P=d)")|(?P<text>"(?:\\.|[^"\\\n])*")'
                     r"|(?P<char>'(?:\\.|[^'\\\n])')|(?P<comment>//[^\n]*|/\*.*?\*/)", re.DOTALL)
SCRIPT_TOKEN = re.compile(r'(?P<raw>"""(?P<d>).*?""")|(?P<text>"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')'
                          r"|(?P<comment>#[^\n]*)", re.DOTALL)


def of_code(text, token):
    """Yields (line number, line, whether prose begins here, whether its length counts)."""
    comment_before = -1
    all_lines = text.split("\n")
    for found in token.finditer(text):
        begin = text.count("\n", 0, found.start()) + 1
        lines = found.group().split("\n")
        alone = not text[text.rfind("\n", 0, found.start()) + 1:found.start()].strip()
        for k, line in enumerate(lines):
            is_comment = found.lastgroup == "comment"
            whole = line if k else all_lines[begin - 1]
            body = re.sub(r"^(///?<?|/\*+|#)\s*", "", line) if is_comment else line
            first = is_comment and k == 0 and begin != comment_before + 1
            yield begin + k, whole, body, first, alone and found.lastgroup in ("comment", "raw")
        if found.lastgroup == "comment":
            comment_before = begin + len(lines) - 1


def of_page(text):
    fence = False
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("```"):
            fence = not fence
        code = fence or line.startswith("    ")
        table = line.lstrip().startswith(("|", "<", "!["))
        link = re.fullmatch(r"\s*(- )?\S+", line) is not None  # cannot be wrapped
        prose = "" if code else re.sub(r"`[^`]*`", "``", line)
        yield number, line, prose, False, not (code or table or link)


def faults(path, text):
    if path.suffix == ".md":
        lines = of_page(text)
    else:
        lines = of_code(text, C_TOKEN if path.suffix in CODE else SCRIPT_TOKEN)
    for number, whole, prose, first, counts in lines:
        if counts and len(whole) > COLUMNS:
            yield number, f"{len(whole)} columns, prose has at most {COLUMNS}"
        for word, instead in WORDS.items():
            for found in re.finditer(rf"(?<![\w`-])({word})(?![\w`-])", prose, re.IGNORECASE):
                yield number, f'"{found.group()}": write {instead}'
        if first:
            for word, instead in FIRST.items():
                if re.match(word, prose):
                    yield number, f'a comment begins with "{prose.split()[0]}": {instead}'


def main(root, *parts):
    # New files too: one that is checked only once it is committed fails in the next clone.
    listed = subprocess.run(
        ["git", "-C", str(root), "ls-files", "--cached", "--others", "--exclude-standard", *parts],
        capture_output=True, text=True, check=True)
    count = files = 0
    for name in listed.stdout.split():
        path = Path(root) / name
        if path.suffix not in CODE | SCRIPTS | {".md"} or name in GENERATED or name == THIS or not path.is_file():
            continue
        files += 1
        for number, fault in faults(path, path.read_text()):
            count += 1
            print(f"{name}:{number}: {fault}")
    print(f"prose: {files} files, {count} faults")
    return 1 if count or not files else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
