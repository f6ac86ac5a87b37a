# SPDX-License-Identifier: Apache-2.0
"""Adds to the site (mkdocs.yml) pages outside docs/, the reference, drawings, and links.

MkDocs calls the functions that begin with `on_`.
"""

import html
import posixpath
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import reference
import reference_pages

ROOT = Path(__file__).resolve().parent.parent
PAGES_OF_ROOT = {
    "index.md": "README.md",
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
    "security.md": "SECURITY.md",
}
PAGE_OF = {source: page for page, source in PAGES_OF_ROOT.items()}
CODE_BLOCK = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
NAMED_PAGE = re.compile(r"`?(?<![\w/(])(?:docs/([\w/]+\.md)|(" + "|".join(PAGE_OF) + r"))\b`?")
DRAWING = re.compile(r"^!\[([^\]]*)\]\(([\w./]+\.svg)\)$", re.MULTILINE)
NOT_PAGES = (".py", ".pyc", ".txt", "Doxyfile")

declarations = None


def on_files(files, config):
    from mkdocs.structure.files import File

    global declarations
    for file in [f for f in files if f.src_uri.endswith(NOT_PAGES)]:
        files.remove(file)
    homeless = reference.homeless_headers()
    if homeless:
        raise SystemExit(f"docs/reference.py: no page has {', '.join(homeless)}; add each to PAGES")
    declarations = reference.Reference()
    for page in [*PAGES_OF_ROOT, *reference.PAGES]:
        files.append(File(page, config["docs_dir"], config["site_dir"], config["use_directory_urls"]))
    return files


def on_page_read_source(page, config):
    if page.file.src_uri in reference.PAGES:
        return reference_pages.page_as_markdown(declarations, page.file.src_uri)
    source = PAGES_OF_ROOT.get(page.file.src_uri)
    return (ROOT / source).read_text().replace("](docs/", "](") if source else None


def titles_of(navigation):
    """Returns the titles that the navigation of mkdocs.yml gives to pages, by page."""
    titles = {}
    for entry in navigation:
        for title, below in entry.items():
            titles.update({below: title} if isinstance(below, str) else titles_of(below))
    return titles


def with_links(markdown, page, titles):
    """Makes `docs/ragged.md` outside code a link with the page's title. A missing page fails the
    build."""

    def link(named):
        target = named[1] or PAGE_OF[named[2]]
        path = posixpath.relpath(target, posixpath.dirname(page) or ".")
        return named[0] if target == page else f"[{titles.get(target, target)}]({path})"

    parts = CODE_BLOCK.split(markdown)
    return "".join(part if part.startswith("```") else NAMED_PAGE.sub(link, part) for part in parts)


def with_drawings(markdown, folder):
    """Puts an SVG into the page, which gives it its colours. Its text becomes the caption."""

    def figure(image):
        drawing = (folder / image[2]).read_text()
        if "currentColor" not in drawing:
            return image[0]
        drawing = re.sub(r"<!--.*?-->|<\?xml.*?\?>|<!DOCTYPE.*?>|\n\s*", " ", drawing, flags=re.DOTALL).strip()
        caption = html.escape(re.sub(r"\s+", " ", image[1]))
        return f'<figure class="drawing">{drawing}<figcaption>{caption}</figcaption></figure>'

    parts = CODE_BLOCK.split(markdown)
    return "".join(part if part.startswith("```") else DRAWING.sub(figure, part) for part in parts)


def on_page_markdown(markdown, page, config, files):
    folder = Path(config["docs_dir"]) / posixpath.dirname(page.file.src_uri)
    titles = titles_of(config["nav"]) | {"index.md": "README"}
    linked = with_links(markdown, page.file.src_uri, titles)
    return with_drawings(linked, folder)
