# SPDX-License-Identifier: Apache-2.0
"""Pages of reference for the site (docs/site.py), made from the comments and declarations of the public headers.

A chunk of a header, what lies between two blank lines outside every class, becomes a heading with its names, its
comment as text and its declarations as code. Bodies of functions, private members and namespaces `detail` are left out.
"""
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Every public header is on one page. Those of `include/tmap/detail` and the wrappers of single
# instructions are not public.
PAGES = {
    "reference/specs.md": ("Specs, rules and errors", "tensor_spec device_address element_type element_of device_limits rule rule_info validate error bad_items faults"),
    "reference/maps.md": ("Making and reading maps", "tensor_map encode map_template make_template map_patch patch_rules publish encode_batch "
                          "decode"),
    "reference/tiles.md": ("Tiles", "tile_layout tile typed_maps make_typed_maps"),
    "reference/service.md": ("The service", "map_service map_batch map_batch_ref slot_counts slot_record"),
    "reference/batches.md": ("Batches: sources, statuses, how a call runs", "tensor_source item_status map_status batch_run"),
    "reference/ragged.md": ("Ragged operations", "route tensor_batch ragged"),
    "reference/gemm.md": ("Grouped products", "grouped_gemm"),
    "reference/tools.md": ("Simulator, environment, log", "simulator reduction environment log config"),
    "reference/device_maps.md": ("Maps in kernels", "device/acquire device/encode_warp device/batch_writer device/map_guard "
                                 "device/patch_source device/report_bad device/hazards"),
    "reference/device_copies.md": ("Copies in kernels", "device/tile device/tile_copy device/bulk_copy device/reduce_copy device/async_copy "
                                   "device/remote_store device/cache_hint"),
    "reference/device_work.md": ("Stages and tiles in kernels", "device/warp device/stage_ring device/tile_shares device/tensor_search "
                                 "device/work_queue device/cluster_queue"),
    "reference/c.md": ("The C functions", "tmap c/status c/call c/spec c/batch c/service c/ragged c/gemm c/faults c/simulator"),
}
NOT_PUBLIC = re.compile(r"tmap/detail/|tmap/device/ptx\w*\.cuh")


def public_headers():
    include = ROOT / "include"
    found = (p.relative_to(include).as_posix() for p in sorted(include.rglob("*")) if p.suffix in (".hpp", ".cuh", ".h"))
    return [path for path in found if not NOT_PUBLIC.match(path)]


def header_of(stem, headers):
    return next(h for h in headers if h.rsplit(".", 1)[0] == "tmap/" + stem)


def homeless_headers():
    named = {f"tmap/{stem}" for _, stems in PAGES.values() for stem in stems.split()}
    return [h for h in public_headers() if h.rsplit(".", 1)[0] not in named]


NAMESPACE = re.compile(r"^(?:inline )?namespace ([\w:]+) \{$")
FRAME = re.compile(r"^(#\s*(pragma|include|if|ifdef|ifndef|else|elif|endif)\b|// SPDX)")


def braces(line):
    code = line.split("//")[0]
    return code.count("{") - code.count("}")


def public_lines(text):
    """What is declared outside namespaces named `detail`; the edges of namespaces and the frame of the file become blank."""
    namespaces, depth = [], 0
    for line in re.sub(r"#ifdef __cplusplus\n.*?#endif\n|#else\n.*?(?=#endif\n)", "\n", text, flags=re.DOTALL).split("\n"):
        opens = NAMESPACE.match(line)
        if opens:
            namespaces.append(opens[1])
        elif depth == 0 and namespaces and line.startswith("}"):
            namespaces.pop()
        else:
            depth += braces(line)
            if not any(name.endswith("detail") for name in namespaces):
                yield "" if FRAME.match(line) else line
            continue
        yield ""


def chunks_of(lines):
    """Splits at blank lines outside braces, and where a comment follows code there."""
    chunks, depth = [[]], 0
    for line in lines:
        follows_code = line.startswith("//") and chunks[-1] and not chunks[-1][-1].startswith("//")
        if depth == 0 and (not line or follows_code):
            chunks.append([])
        if line or depth > 0:
            chunks[-1].append(line)
        depth += braces(line)
    return [chunk for chunk in chunks if chunk]


def end_of_braces(code, at):
    """Behind the brace that closes the one at `at`."""
    depth = 0
    for i in range(at, len(code)):
        depth += {"{": 1, "}": -1}.get(code[i], 0)
        if depth == 0:
            return i + 1
    return len(code)


IN_PARENTHESES = r"\((?:[^(){}]|\((?:[^(){}]|\([^()]*\))*\))*\)"
MEMBER_INITS = r"(?:\s*:\s*(?:\w+(?:" + IN_PARENTHESES + r"|\{[^{}]*\}),?\s*)+)?"
BODY = re.compile(r"\)((?: const| noexcept)*)" + MEMBER_INITS + r"\s*\{")


def without_bodies(code):
    at = 0
    while body := BODY.search(code, at):
        end = end_of_braces(code, body.end() - 1)
        declared = code[:body.start()] + ")" + body[1] + ";"
        code = declared + code[end:].removeprefix(";")
        at = len(declared)
    return code


def without_private(code):
    code = re.sub(r"^((?:template <.*>\n)?class [^{;]*\{\n)(?:.*\n)*?(?= public:)", r"\1", code, flags=re.MULTILINE)
    code = re.sub(r"\n *(?:private|protected):\n.*?(?=\n\};|\n *public:)", "", code, flags=re.DOTALL)
    code = re.sub(r"\n *friend (?:struct|class|__device__)[^;]*;", "", code)
    return re.sub(r"\n+(?=\n\};)", "", code)


NAME = re.compile(
    r"^(?:template <.*> )?(?:(?:struct|class|enum class|enum|union) (?:alignas\((?:[^()]|\([^()]*\))*\) )?(\w+)(?!\w*;)|using (\w+) =|#define (\w+)|"
    r"typedef (?:struct|union) (\w+) \{|typedef [^(]*?(?:\(\*)?(\w+)(?:\)\(.*\))?;|"
    r"(?:inline )?constexpr [\w:<>* ]+? (\w+)(?:\[\w*\])?\s*[{=]|[^({]*?\b(operator.{1,2}|\w+)\()")


def names_in(code):
    """Of what is declared, each once, in order."""
    top = re.sub(r"\{[^{}]*\}", "{}", re.sub(r"\n[ }].*", "", re.sub(r",\n +", ", ", code)))
    top = re.sub(r"(template <.*>)\n", r"\1 ", re.sub(r"\s*//.*", "", top))
    found = (NAME.match(line) for line in top.split("\n"))
    return list(dict.fromkeys(next(n for n in match.groups() if n) for match in found if match))


def as_markdown(comment):
    """The text of a comment, its lists kept; what looks like a tag is shown as it stands."""
    lines = [re.sub(r"^ ?/// ?|^// ?", "", line) for line in comment]
    text = re.sub(r"^((?![- ]).+\n)(?=- )", r"\1\n", "\n".join(lines), flags=re.MULTILINE)
    text = re.sub(r"^(- .*(?:\n  .*)*)\n(?=[^\s-])", r"\1\n\n", text, flags=re.MULTILINE)
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else part.replace("<", "&lt;") for part in parts)


def declarations(lines):
    """The code of a chunk as a reader wants it: no bodies, private members, checks, or marks for the linker."""
    code = without_private(without_bodies("\n".join(lines)))
    code = re.sub(r"^static_assert\([^;]*;\n?", "", code, flags=re.MULTILINE)
    code = re.sub(r"^( *(?:\[\[nodiscard\]\] )?)TMAP_API (.*(?:\n {10,}.*)*)",
                  lambda found: found[1] + found[2].replace("\n" + 9 * " ", "\n"), code, flags=re.MULTILINE)
    code = code.replace("class TMAP_API ", "class ")
    return re.sub(r"\n{2,}", "\n\n", re.sub(r"^(?:(?:class|struct) \w+|using [\w:]+);$", "", code, flags=re.MULTILINE)).strip("\n")


def entries_of(text):
    """(names, comment, code) for each chunk; one that begins with "name:" belongs to what is declared next, as a further form of the
    same function belongs to the one before it."""
    entries = []
    for chunk in chunks_of(public_lines(text)):
        comment = [line for line in chunk if line.startswith("//")]
        code = declarations(chunk[len(comment):])
        names = names_in(code)
        before = entries[-1] if entries else None
        if before and names and not comment and names == before[0]:
            entries[-1] = (names, before[1], before[2] + "\n" + code)
        elif before and not comment and not before[2] and names and before[1][0].startswith(f"// {names[0]}:"):
            entries[-1] = (names, before[1], code)
        elif comment or code:
            entries.append((names, comment, code))
    return entries


def entry_as_markdown(names, comment, code, language):
    heading = "### " + ", ".join(f"`{name}`" for name in names) if names else ""
    block = f"```{language}\n{code}\n```" if code else ""
    return "\n\n".join(part for part in (heading, as_markdown(comment), block) if part)


def header_as_markdown(path, text):
    language = "c" if path.endswith(".h") else "cpp"
    first = re.search(r"^namespace ([\w:]+) \{", text, re.MULTILINE)
    place = f"Namespace `{first[1]}`.\n\n" if first and first[1] != "tmap" and not first[1].endswith("detail") else ""
    return f"## `{path}`\n\n{place}" + "\n\n".join(entry_as_markdown(*entry, language) for entry in entries_of(text))


def page_as_markdown(page):
    title, stems = PAGES[page]
    headers = public_headers()
    parts = [header_as_markdown(h, (ROOT / "include" / h).read_text()) for stem in stems.split() for h in [header_of(stem, headers)]]
    return f"# {title}\n\n" + "\n\n".join(parts) + "\n"
