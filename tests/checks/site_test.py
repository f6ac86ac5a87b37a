# SPDX-License-Identifier: Apache-2.0
"""Opens the site that `make docs` built from files in headless Chromium.

Search finds a word, nothing is loaded from elsewhere, and no page is wider than a phone. With a
folder as second argument, it leaves pictures of some pages there.
"""

import sys
import tempfile
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


def too_wide(tab, page):
    """Returns the page's width at the phone's size if it is more than that, else 0."""
    tab.open(page.as_uri(), PHONE)
    width = tab.value("document.documentElement.scrollWidth")
    return width if width > PHONE else 0


def away(addresses):
    """Returns those of the addresses that are not on this machine."""
    return {each for each in addresses if not each.startswith(("file:", "data:", "about:", "blob:"))}


def check_that_faults_are_seen(tab):
    """Opens a page that is too wide and loads a picture from elsewhere."""
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "bad.html"
        page.write_text('<div style="width: 1000px">wide</div><img src="http://example.invalid/a.png">')
        assert too_wide(tab, page) >= 1000
    assert away(tab.requests) == {"http://example.invalid/a.png"}, tab.requests
    tab.requests.clear()


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
        check_that_faults_are_seen(tab)
        if len(sys.argv) > 2:
            take_pictures(tab, Path(sys.argv[2]))
        tab.open((SITE / "index.html").as_uri(), 1440)
        found = search(tab, "swizzle")
        assert any("concepts.html" in address or "tiles.html" in address for address in found), found
        assert all(address.startswith(SITE.as_uri()) for address in found), found
        widths = [(page.relative_to(SITE), too_wide(tab, page)) for page in pages]
        wide = [f"{page} ({width} px)" for page, width in widths if width]
        assert not wide, f"wider than {PHONE} px: {', '.join(wide)}"
        assert any(address.endswith("search_index.js") for address in tab.requests), "requests are not seen"
        assert not away(tab.requests), f"pages load from elsewhere: {away(tab.requests)}"
    print(f"site: {len(pages)} pages, {len(tab.requests)} requests, all to files")
    return 0


sys.exit(main())
