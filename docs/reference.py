# SPDX-License-Identifier: Apache-2.0
"""Reads the declarations of the public headers from the XML that Doxygen makes (docs/Doxyfile).

`PAGES` lists which header goes to which page. reference_pages.py writes the pages.
"""

import re
import xml.etree.ElementTree as ElementTree
from collections import Counter
from os.path import commonprefix
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
XML = ROOT / "build/doxygen/xml"

# Every public header is on one page. Those of `include/tmap/detail` and the wrappers of single
# instructions are not public.
PAGES = {
    "reference/specs.md": (
        "Specs, rules and errors",
        "tensor_spec device_address element_type element_of device_limits "
        "rule rule_info validate error bad_items faults",
    ),
    "reference/maps.md": (
        "Making and reading maps",
        "tensor_map encode map_template make_template map_patch patch_rules "
        "publish encode_batch decode map_fields",
    ),
    "reference/tiles.md": ("Tiles", "tile_layout tile typed_maps make_typed_maps"),
    "reference/service.md": ("The service", "map_service map_batch map_batch_ref slot_counts slot_record"),
    "reference/batches.md": (
        "Batches: sources, statuses, how a call runs",
        "tensor_source item_status map_status batch_run",
    ),
    "reference/ragged.md": ("Ragged operations", "route tensor_batch ragged padded_rows"),
    "reference/gemm.md": ("Grouped products", "grouped_gemm"),
    "reference/moe.md": ("Experts", "moe moe_layer"),
    "reference/peers.md": ("Groups of GPUs", "peer_group peer_memory peer_memory_ref peer_maps peer_exchange expert_parallel peer_verdict row_placement"),
    "reference/tools.md": ("Simulator, environment, log", "simulator reduction environment log config"),
    "reference/device_maps.md": (
        "Maps in kernels",
        "device/acquire device/encode_warp device/batch_writer "
        "device/map_guard device/patch_source device/report_bad device/hazards",
    ),
    "reference/device_copies.md": (
        "Copies in kernels",
        "device/tile device/tile_copy device/bulk_copy "
        "device/reduce_copy device/async_copy device/remote_store device/cache_hint",
    ),
    "reference/device_peers.md": ("Groups of GPUs in kernels", "device/peer device/peer_order device/peer_link"),
    "reference/device_work.md": (
        "Stages and tiles in kernels",
        "device/warp device/stage_ring "
        "device/tile_shares device/tensor_search device/work_queue device/cluster_queue",
    ),
    "reference/c.md": (
        "The C functions",
        "tmap c/status c/call c/spec c/batch c/service c/ragged c/gemm c/moe c/peer c/faults c/simulator c/xla",
    ),
}
NOT_PUBLIC = re.compile(r"tmap/detail/|tmap/device/ptx\w*\.cuh")


def public_headers():
    include = ROOT / "include"
    found = (
        p.relative_to(include).as_posix() for p in sorted(include.rglob("*")) if p.suffix in (".hpp", ".cuh", ".h")
    )
    return [path for path in found if not NOT_PUBLIC.match(path)]


def headers_of(page):
    headers = {h.rsplit(".", 1)[0]: h for h in public_headers()}
    return [headers[f"tmap/{stem}"] for stem in PAGES[page][1].split()]


def homeless_headers():
    named = {f"tmap/{stem}" for _, stems in PAGES.values() for stem in stems.split()}
    return [h for h in public_headers() if h.rsplit(".", 1)[0] not in named]


def tidy(type_text):
    """Spells a type as clang-format does."""
    text = re.sub(r"::@\d+", "", re.sub(r"\s+", " ", type_text)).strip()
    text = re.sub(r"< ", "<", re.sub(r" (?=[>&*])", "", text))
    return re.sub(r"(?<=[\w>])(?=\(\*)", " ", text)


def text_of(element):
    return tidy("".join(element.itertext())) if element is not None else ""


class Entry:
    """Holds a class, or a member of a namespace, of a file or of a class."""

    def __init__(self, element, kind, name, qualified):
        self.element, self.kind, self.name, self.qualified = element, kind, name, qualified
        place = element.find("location")
        self.header = place.get("declfile", place.get("file"))
        self.line = int(place.get("declline", place.get("line")))
        self.members = []
        self.page = self.anchor = None

    def has_text(self):
        return any(text_of(self.element.find(tag)) for tag in ("briefdescription", "detaileddescription"))


def is_hidden(entry):
    is_detail = any(part.endswith("detail") for part in entry.qualified.split("::")[:-1])
    opaque = entry.kind in ("class", "struct", "union") and not entry.element.find("location").get("bodyfile")
    return is_detail or (opaque and not entry.has_text()) or (entry.kind == "union" and "@" in entry.name)


def members_of(compound):
    for member in compound.iter("memberdef"):
        name = member.findtext("name")
        is_friend = member.get("kind") == "friend"
        if name.startswith("operator") if is_friend else member.get("prot") == "public":
            kind = "function" if is_friend else member.get("kind")
            if name.startswith("@"):
                shown = name_of_unnamed(member)
                yield Entry(member, kind, shown, shown)
            else:
                yield Entry(member, kind, name, member.findtext("qualifiedname") or name)


def name_of_unnamed(enum):
    """Returns `TMAP_CHECK_*`, or the first value if the values share only the library's prefix."""
    values = [value.findtext("name") for value in enum.findall("enumvalue")]
    prefix = commonprefix(values)
    return f"{values[0]}, ..." if prefix == "TMAP_" else f"{prefix}*"


def as_anchor(name):
    """Returns a name without the signs that an address cannot have: `operator-3d-3d` for ==."""
    return re.sub(r"[^\w.]", lambda sign: f"-{ord(sign[0]):x}", name.replace("::", ".").rstrip("*., "))


def is_repeated_tag(entry):
    """Returns True for `typedef struct tmap_spec {...} tmap_spec;`: the struct has the text."""
    return entry.kind == "typedef" and text_of(entry.element.find("type")).split(" ")[-1] == entry.name


class Reference:
    """Holds the declarations of each public header, in order, and their places."""

    def __init__(self, xml=XML):
        self.files, self.entries, self.by_id, self.by_name = {}, {}, {}, {}
        self.values = set()
        for compound in ElementTree.parse(xml / "index.xml").iter("compound"):
            if compound.get("kind") in ("file", "namespace", "class", "struct", "union"):
                self._read(ElementTree.parse(xml / f"{compound.get('refid')}.xml").find("compounddef"))
        for entries in self.entries.values():
            entries.sort(key=lambda entry: entry.line)
        for page in PAGES:
            self._place(page)
        self.meanings = Counter(name.rpartition("::")[2] for name in self.by_name)

    def _read(self, compound):
        kind, name = compound.get("kind"), compound.findtext("compoundname")
        if kind == "file":
            self.files[compound.find("location").get("file")] = compound
        if kind in ("file", "namespace"):
            for entry in members_of(compound):
                self._add(entry)
            return
        entry = Entry(compound, kind, name.rsplit("::", 1)[-1], name)
        entry.members = sorted(members_of(compound), key=lambda member: member.line)
        self._add(entry)

    def _add(self, entry):
        if entry.element.get("id") not in self.by_id and not is_hidden(entry) and not is_repeated_tag(entry):
            self.by_id[entry.element.get("id")] = entry
            self.values.update(value.findtext("name") for value in entry.element.findall("enumvalue"))
            self.entries.setdefault(entry.header, []).append(entry)

    def _place(self, page):
        """Gives each declaration its page and anchor. Overloads in a row share one."""
        taken = set()
        for header in headers_of(page):
            last = None
            for entry in self.entries.get(header, []):
                anchor = as_anchor(entry.qualified.removeprefix("tmap::"))
                if last is None or last.qualified != entry.qualified:
                    while anchor in taken:
                        anchor += "_"
                    taken.add(anchor)
                else:
                    anchor = last.anchor
                entry.page, entry.anchor = page, anchor
                self.by_name.setdefault(entry.qualified, entry)
                shown = {member.name for member in entry.members if member.kind == "variable" or member.has_text()}
                for member in entry.members:
                    own = f"{anchor}.{as_anchor(member.name)}"
                    member.page, member.anchor = page, own if member.name in shown else anchor
                    self.by_id[member.element.get("id")] = member
                    if member.name != entry.name:
                        self.by_name.setdefault(member.qualified, member)
                last = entry

    def named(self, name, scope):
        """Returns what `name` means in the class or namespace `scope`, or None."""
        own = self.by_name.get(f"{scope}::{name}") or ("::" in name and self.by_name.get(name)) or None
        if own or name in self.values or self.meanings.get(name.rpartition("::")[2], 0) > 1:
            return own
        while scope:
            scope = scope.rpartition("::")[0]
            found = self.by_name.get(f"{scope}::{name}" if scope else name)
            if found:
                return found

    def link(self, shown, entry, page):
        if entry is None or entry.page is None:
            return shown
        return f"[{shown}]({'' if entry.page == page else Path(entry.page).name}#{entry.anchor})"

    def file_of(self, refid):
        return next((path for path, compound in self.files.items() if compound.get("id") == refid), None)
