# SPDX-License-Identifier: Apache-2.0
"""Writes the declarations that reference.py reads as pages in Markdown."""

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from reference import PAGES, headers_of, text_of, tidy

COLUMNS = 100


class Writer:
    """Turns the text of one page's comments into Markdown."""

    def __init__(self, reference, page):
        self.reference, self.page, self.scope = reference, page, "tmap"

    def escaped(self, text):
        text = re.sub(r"\s+", " ", text or "")
        return re.sub(r"([*\[]|__)", lambda sign: "".join("\\" + each for each in sign[0]), text.replace("<", "&lt;"))

    def inline(self, element):
        parts = [self.escaped(element.text)]
        for child in element:
            parts += [self.inline_child(child), self.escaped(child.tail)]
        return "".join(parts)

    def inline_child(self, child):
        if child.tag == "computeroutput":
            code = "".join(child.itertext())
            return self.reference.link(
                f"`{code}`", self.reference.named(code.removesuffix("()"), self.scope), self.page
            )
        if child.tag == "ref":
            return self.reference_to(child)
        if child.tag in ("emphasis", "bold"):
            mark = "*" if child.tag == "emphasis" else "**"
            return mark + self.inline(child) + mark
        if child.tag == "ulink":
            return f"[{self.inline(child)}]({child.get('url')})"
        signs = {"linebreak": "<br>", "sp": " ", "ndash": "–", "mdash": "—", "nonbreakablespace": "&nbsp;"}
        if child.tag in signs:
            return signs[child.tag]
        raise SystemExit(f"docs/reference.py: {self.page}: cannot write <{child.tag}>")

    def reference_to(self, child):
        path = self.reference.file_of(child.get("refid"))
        if path is None:
            return self.reference.link(self.inline(child), self.reference.by_id.get(child.get("refid")), self.page)
        page = next((page for page in PAGES if path in headers_of(page)), self.page)
        return f"[`{''.join(child.itertext())}`]({Path(page).name}#{path.replace('/', '.')})"

    BLOCKS = (
        "itemizedlist",
        "orderedlist",
        "parameterlist",
        "simplesect",
        "programlisting",
        "verbatim",
        "para",
        "blockquote",
    )

    def blocks(self, element):
        """Returns the paragraphs, lists and tables in `element`, each as a block of Markdown."""
        done, line = [], [self.escaped(element.text)]

        def flush():
            text = "".join(line).strip()
            line.clear()
            if text:
                done.append(text)

        for child in element:
            if child.tag in self.BLOCKS:
                flush()
                done.extend(self.block(child))
            else:
                line.append(self.inline_child(child))
            line.append(self.escaped(child.tail))
        flush()
        return done

    def block(self, child):
        if child.tag in ("itemizedlist", "orderedlist"):
            mark = "- " if child.tag == "itemizedlist" else "1. "
            items = ["\n\n".join(self.blocks(item)) for item in child.findall("listitem")]
            return ["\n".join(mark + item.replace("\n", "\n    ") for item in items)]
        if child.tag == "parameterlist":
            return [self.parameters(child)]
        if child.tag == "simplesect":
            title = {"return": "Returns", "note": "Note", "warning": "Warning", "see": "See also"}
            text = self.blocks_without(child, "title")
            body = "\n\n".join(text)
            gap = "\n\n" if body.startswith(("- ", "1. ")) else " "
            return [f"**{child.findtext('title') or title[child.get('kind')]}**:{gap}{body}"]
        if child.tag in ("programlisting", "verbatim"):
            return ["```cpp\n" + "".join(child.itertext()).strip("\n") + "\n```"]
        return self.blocks(child)

    def blocks_without(self, element, tag):
        return [block for child in element if child.tag != tag for block in self.blocks(child)]

    def parameters(self, lists):
        rows = []
        for item in lists.findall("parameteritem"):
            names = ", ".join(f"`{text_of(name)}`" for name in item.iter("parametername"))
            rows.append((names, self.cell(item.find("parameterdescription"))))
        return table(("Parameter", "Meaning"), rows)

    def description(self, element):
        found = [element.find(tag) for tag in ("briefdescription", "detaileddescription")]
        return [block for part in found if part is not None for block in self.blocks(part)]

    def cell(self, element):
        return "<br>".join(self.blocks(element)).replace("\n", " ").replace("|", "&#124;")

    def type_cell(self, element):
        """Writes a type, with a link if a page describes it."""
        shown = text_of(element).replace("|", "\\|")
        references = element.findall("ref")
        target = self.reference.by_id.get(references[0].get("refid")) if len(references) == 1 else None
        return self.reference.link(f"`{shown}`", target, self.page)


def table(head, rows):
    """Writes a table without its empty columns."""
    said = [i for i in range(len(head)) if i == 0 or any(row[i] for row in rows)]
    head, rows = [head[i] for i in said], [[row[i] for i in said] for row in rows]
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def template_of(element):
    parameters = element.find("templateparamlist")
    if parameters is None:
        return ""
    return "template <" + ", ".join(parameter(each) for each in parameters.findall("param")) + ">\n"


def parameter(element):
    kind, name = text_of(element.find("type")), element.findtext("declname") or element.findtext("defname") or ""
    array, default = text_of(element.find("array")), text_of(element.find("defval"))
    shown = f"{kind[:-3]} (&{name}){array}" if kind.endswith("(&)") else f"{kind} {name}{array}".strip()
    return shown + (f" = {default}" if default else "")


def wrapped(head, arguments, tail):
    """Writes head(arguments)tail in lines of at most COLUMNS."""
    lines, margin = [head], len(head)
    for i, argument in enumerate(arguments):
        piece = argument + ("," if i + 1 < len(arguments) else tail)
        if len(lines[-1]) + len(piece) > COLUMNS and i > 0:
            lines[-1] = lines[-1].rstrip()
            lines.append(" " * margin)
        lines[-1] += piece + " "
    return "\n".join(lines).rstrip() if arguments else head + tail


def function_code(entry):
    element = entry.element
    marks = [mark for mark in ("static", "explicit") if element.get(mark) == "yes"]
    kind = " ".join(marks + [text_of(element.find("type"))]).strip()
    after = (element.findtext("argsstring") or "").rpartition(")")[2]
    qualifiers = re.sub(r"\s*=\s*(\w+)", r" = \1", after).rstrip()
    return template_of(element) + wrapped(
        f"{kind} {entry.name}(".lstrip(), [parameter(p) for p in element.findall("param")], ")" + qualifiers + ";"
    )


def initializer(element):
    text = (
        re.sub(r"\s+", " ", "".join(element.find("initializer").itertext())).strip()
        if element.find("initializer") is not None
        else ""
    )
    return text if not text or text[0] in "={" else "= " + text


def enum_code(entry):
    base = text_of(entry.element.find("type"))
    strong = "enum class" if entry.element.get("strong") == "yes" else "enum"
    names = [f"{v.findtext('name')} {initializer(v)}".strip() for v in entry.element.findall("enumvalue")]
    head = strong if entry.name.endswith(("*", "...")) else f"{strong} {entry.name}{' : ' + base if base else ''}"
    return head + " {\n  " + ",\n  ".join(names) + "\n};"


def code_of(entry):
    element, kind = entry.element, entry.kind
    if kind == "function":
        return function_code(entry)
    if kind == "enum":
        return enum_code(entry)
    if kind == "define":
        names = [p.findtext("defname") for p in element.findall("param")]
        arguments = f"({', '.join(names)})" if names else ""
        return f"#define {entry.name}{arguments} {initializer(element).removeprefix('= ')}".rstrip()
    if kind == "typedef":
        if entry.header.endswith(".h"):
            return (
                tidy(element.findtext("definition") + (element.findtext("argsstring") or "")).replace(
                    "typedef typedef", "typedef"
                )
                + ";"
            )
        return f"{template_of(element)}using {entry.name} = {text_of(element.find('type'))};"
    if kind == "variable":
        array = element.findtext("argsstring") or ""
        return (
            f"{template_of(element)}{text_of(element.find('type'))} {entry.name}{array} {initializer(element)}".rstrip()
            + ";"
        )
    return f"{template_of(element)}{kind} {entry.name};"


def fenced(entries):
    language = "c" if entries[0].header.endswith(".h") else "cpp"
    return f"```{language}\n" + "\n".join(code_of(entry) for entry in entries) + "\n```"


def members_table(writer, fields):
    rows = []
    for field in fields:
        element = field.element
        extents = re.sub(r" \*(?=\w)", " * ", element.findtext("argsstring") or "")
        name = f"`{field.name}{extents}`{{ #{field.anchor} }}"
        start = re.sub(r"^\{(.*)\}$", r"\1", initializer(element).removeprefix("= ")).replace("|", "\\|")
        rows.append(
            (
                name,
                writer.type_cell(element.find("type")),
                f"`{start}`" if start else "",
                writer.cell(described(element)),
            )
        )
    return table(("Member", "Type", "Initial value", "Meaning"), rows)


def described(element):
    both = ElementTree.Element("both")
    for tag in ("briefdescription", "detaileddescription"):
        found = element.find(tag)
        both.extend(found if found is not None else [])
    return both


def values_table(writer, values):
    rows = [
        (
            f"`{v.findtext('name')}`",
            f"`{initializer(v).removeprefix('= ')}`" if initializer(v) else "",
            writer.cell(described(v)),
        )
        for v in values
    ]
    return table(("Value", "Number", "Meaning"), rows)


def groups_of(entries):
    """Groups overloads that follow each other."""
    groups = []
    for entry in entries:
        if groups and groups[-1][0].qualified == entry.qualified and entry.kind == "function":
            groups[-1].append(entry)
        else:
            groups.append([entry])
    return groups


def function_parts(writer, group):
    """Writes the code of overloads and their text. One without text joins the one before it."""
    parts, together = [], []
    for i, entry in enumerate(group):
        together.append(entry)
        if i + 1 == len(group) or group[i + 1].has_text():
            parts += [fenced(together), *(block for each in together for block in writer.description(each.element))]
            together = []
    return parts


def class_parts(writer, entry):
    writer.scope = entry.qualified
    parts = [fenced([entry])] * bool(template_of(entry.element)) + writer.description(entry.element)
    fields = [m for m in entry.members if m.kind == "variable"]
    if fields:
        parts.append(members_table(writer, fields))
    groups, plain = groups_of([m for m in entry.members if m.kind != "variable"]), []
    for group in groups:
        if any(member.has_text() for member in group):
            parts += [f"#### `{group[0].name}` {{ #{group[0].anchor} }}", *member_parts(writer, group)]
        else:
            plain += group
    if plain:
        parts += ["Further members:"] * (len(plain) < len(entry.members)) + [fenced(plain)]
    return parts


def member_parts(writer, group):
    if group[0].kind == "function":
        return function_parts(writer, group)
    if group[0].kind == "enum":
        return enum_parts(writer, group[0])
    return [fenced(group), *writer.description(group[0].element)]


def enum_parts(writer, entry):
    values = entry.element.findall("enumvalue")
    if not any(text_of(described(value)) for value in values):
        return [fenced([entry]), *writer.description(entry.element)]
    return [*writer.description(entry.element), values_table(writer, values)]


def entry_as_markdown(writer, group):
    first = group[0]
    writer.scope = first.qualified.rpartition("::")[0]
    shown = first.qualified.removeprefix("tmap::")
    parts = class_parts(writer, first) if first.kind in ("class", "struct", "union") else member_parts(writer, group)
    return "\n\n".join([f"### `{shown}` {{ #{first.anchor} }}", *parts])


def header_as_markdown(reference, header, page):
    writer = Writer(reference, page)
    text = writer.description(reference.files[header])
    include = f"```{'c' if header.endswith('.h') else 'cpp'}\n#include <{header}>\n```"
    entries = [entry_as_markdown(writer, group) for group in groups_of(reference.entries.get(header, []))]
    return "\n\n".join(
        [f"## {header.removeprefix('tmap/')} {{ #{header.replace('/', '.')} }}", include, *text, *entries]
    )


def page_as_markdown(reference, page):
    return (
        f"# {PAGES[page][0]}\n\n"
        + "\n\n".join(header_as_markdown(reference, header, page) for header in headers_of(page))
        + "\n"
    )
