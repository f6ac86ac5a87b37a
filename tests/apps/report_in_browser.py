# SPDX-License-Identifier: Apache-2.0
"""Opens the report of the demo in headless Chromium: report_in_browser.py <tmap_demo>

The text must be there, the console must be silent, nothing may be asked of a network, and no page
may be wider than its window. Exits with 77, which counts as skipped, where Chromium is missing.
"""
import html
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SKIPPED = 77
FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync", "--disable-background-networking",
         "--disable-component-update", "--disable-dev-shm-usage", "--enable-logging=stderr", "--log-level=0",
         "--allow-file-access-from-files", "--host-resolver-rules=MAP * ~NOTFOUND", "--virtual-time-budget=4000"]
MEASURE = """<!DOCTYPE html><title>width</title><iframe src="{page}" style="border:0;width:{width}px;height:800px"
onload="document.body.dataset.overflow = this.contentDocument.documentElement.scrollWidth - this.contentDocument.documentElement.clientWidth">
</iframe>"""


def open_page(browser, page, folder):
    """Returns the page as the browser has it after loading, and the lines of its console."""
    run = subprocess.run([browser, *FLAGS, f"--user-data-dir={folder}/profile", "--dump-dom", page.as_uri()], capture_output=True, text=True,
                         timeout=120)
    return run.stdout, [line for line in run.stderr.splitlines() if "CONSOLE" in line]


def visible_text(dom):
    body = re.sub(r"<style.*?</style>|<title.*?</title>", "", dom, flags=re.DOTALL)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", body)))


def overflow(browser, page, width, folder):
    wrapper = folder / "measure.html"
    wrapper.write_text(MEASURE.format(page=page.as_uri(), width=width))
    found = re.search(r'data-overflow="(-?\d+)"', open_page(browser, wrapper, folder)[0])
    return int(found.group(1)) if found else None


def problems(browser, demo, folder):
    done = subprocess.run([demo, folder / "demo", "--engine", "simulator"], capture_output=True, text=True, check=True)
    page = folder / "demo" / "report.html"
    dom, console = open_page(browser, page, folder)
    text = visible_text(dom)
    checksum = re.search(r"checksum (\w{16})", done.stdout).group(1)
    tensors, mapped, refused = re.search(r"(\d+) tensors on .*: (\d+) by tensor map, .* (\d+) refused", done.stdout).groups()
    wanted = [checksum, f"{tensors} tensors", f"{mapped} take the tensor-map route", f"{refused} refused, each with its rule", "0 wrong elements",
              "Rule T06 : global_address is", "Rule T13 : global_stride_bytes[0] is 200, must be a multiple of 16",
              "Rule T17 : box_dim[1] is 300, must be from 1 to 256", "Rule T05 : global_address is null", "What to do : use a pitch of 208 bytes",
              "The box as it lies in the tensor", "Shared memory after the load", "Bank conflicts of common reads", "global_stride_bytes[0]",
              "so this table has no rate", "out/contact_sheet.png"]
    yield from (f"the page lacks: {each}" for each in wanted if each not in text)
    yield from (f"console: {line}" for line in console)
    if re.search(r"""(?:src|href)=["'](?!data:|#)""", dom):
        yield "the page names something outside itself"
    for width in (400, 1200):
        wider = overflow(browser, page, width, folder)
        if wider != 0:
            yield f"at {width} pixels the page is wider than its window by {wider}"

    # These checks can fail.
    spoiled = folder / "spoiled.html"
    spoiled.write_text(page.read_text().replace("</main>", '<img src="http://example.invalid/a.png"><div style="width:2000px">x</div></main>'))
    if not open_page(browser, spoiled, folder)[1]:
        yield "a page that asks for a picture of a network was not found out"
    if not overflow(browser, spoiled, 400, folder):
        yield "a page that is too wide was not found out"


def main():
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        print("skipped: needs Chromium (Debian package chromium)")
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        found = list(problems(browser, sys.argv[1], Path(folder)))
    for problem in found:
        print(problem)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
