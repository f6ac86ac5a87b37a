# SPDX-License-Identifier: Apache-2.0
"""Opens the site that `make docs` built from files in headless Chromium.

Search finds a word, nothing is loaded from elsewhere, and no page is wider than a phone. With a
folder as second argument, it leaves pictures of some pages there.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import browser

SITE = Path(sys.argv[1]).resolve() / "build/site"
SKIPPED = 77
PHONE = 390
PICTURES = {
    "start": "index.html",
    "quick_start": "quick_start.html",
    "reference": "reference/service.html",
    "measurement": "measurements/encode_batch.html",
}
FOUND = "document.querySelectorAll('.md-search-result__item a').length"


def search(tab, words):
    """Searches for the words and returns the addresses found."""
    tab.value("document.querySelector('[for=__search]').click()")
    tab.value("document.querySelector('.md-search__input').focus()")
    tab.type(words)
    tab.wait_for(FOUND)
    return tab.value("[...document.querySelectorAll('.md-search-result__item a')].map(link => link.href)")


def take_pictures(tab, folder):
    for name, page in PICTURES.items():
        for width in (1440, 900, PHONE):
            for scheme in ("light", "dark"):
                tab.open((SITE / page).as_uri(), width, 1000, scheme)
                (folder / f"{name}_{width}_{scheme}.png").write_bytes(tab.picture())
    for width in (1440, PHONE):
        tab.open((SITE / "index.html").as_uri(), width, 1000)
        search(tab, "swizzle")
        (folder / f"search_{width}_light.png").write_bytes(tab.picture())


def main():
    if browser.chromium() is None or not SITE.is_dir():
        print(
            "site: skipped: no Chromium (Debian package chromium)"
            if SITE.is_dir()
            else "site: skipped: `make docs` has not run"
        )
        return SKIPPED
    pages = sorted(page for page in SITE.rglob("*.html") if page.name != "404.html")
    assert len(pages) > 40, len(pages)
    with browser.Browser() as tab:
        if len(sys.argv) > 2:
            take_pictures(tab, Path(sys.argv[2]))
        tab.open((SITE / "index.html").as_uri(), 1440)
        found = search(tab, "swizzle")
        assert any("concepts.html" in address or "tiles.html" in address for address in found), found
        assert all(address.startswith(SITE.as_uri()) for address in found), found
        wide = []
        for page in pages:
            tab.open(page.as_uri(), PHONE)
            width = tab.value("document.documentElement.scrollWidth")
            if width > PHONE:
                wide.append(f"{page.relative_to(SITE)} ({width} px)")
        assert not wide, f"wider than {PHONE} px: {', '.join(wide)}"
        assert any(address.endswith("search_index.js") for address in tab.requests), "requests are not seen"
        away = {address for address in tab.requests if not address.startswith(("file:", "data:", "about:", "blob:"))}
        assert not away, f"pages load from elsewhere: {away}"
    print(f"site: {len(pages)} pages, {len(tab.requests)} requests, all to files")
    return 0


sys.exit(main())
