# SPDX-License-Identifier: Apache-2.0
"""What the site (mkdocs.yml) adds to docs/: pages that lie beside it, the reference, and links where a text names a page."""
import posixpath
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import reference

ROOT = Path(__file__).resolve().parent.parent
BESIDE_DOCS = {"index.md": "README.md", "contributing.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md", "security.md": "SECURITY.md"}
PAGE_OF = {source: page for page, source in BESIDE_DOCS.items()}
CODE_BLOCK = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
NAMED_PAGE = re.compile(r"`?(?<![\w/(])(?:docs/([\w/]+\.md)|(" + "|".join(PAGE_OF) + r"))\b`?")


def on_files(files, config):
    from mkdocs.structure.files import File
    for file in [f for f in files if f.src_uri.endswith((".py", ".pyc"))]:
        files.remove(file)
    homeless = reference.homeless_headers()
    if homeless:
        raise SystemExit(f"docs/reference.py: no page has {', '.join(homeless)}; add each to PAGES")
    for page in [*BESIDE_DOCS, *reference.PAGES]:
        files.append(File(page, config["docs_dir"], config["site_dir"], config["use_directory_urls"]))
    return files


def on_page_read_source(page, config):
    if page.file.src_uri in reference.PAGES:
        return reference.page_as_markdown(page.file.src_uri)
    source = BESIDE_DOCS.get(page.file.src_uri)
    return (ROOT / source).read_text().replace("](docs/", "](") if source else None


def with_links(markdown, page):
    """`docs/ragged.md` outside code becomes a link to that page; a page that does not exist is a warning of the build."""
    def link(named):
        target = named[1] or PAGE_OF[named[2]]
        path = posixpath.relpath(target, posixpath.dirname(page) or ".")
        return named[0] if target == page else f"[{named[0].strip('`')}]({path})"

    parts = CODE_BLOCK.split(markdown)
    return "".join(part if part.startswith("```") else NAMED_PAGE.sub(link, part) for part in parts)


def on_page_markdown(markdown, page, config, files):
    return with_links(markdown, page.file.src_uri)
