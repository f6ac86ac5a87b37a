# SPDX-License-Identifier: Apache-2.0
"""Checks the recipes for vcpkg and conda as far as a machine without their tools can: recipes.py
<repository> <installed>

The port is run with functions of its own in place of vcpkg's. The versions are that of tmap, the
options are options of tmap, and the files that the recipes name exist.
"""
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT, INSTALLED = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
VCPKG, CONDA = ROOT / "cmake/packaging/vcpkg", ROOT / "cmake/packaging/conda/recipe.yaml"
VERSION = (ROOT / "VERSION").read_text().strip()
# Each writes its name and its arguments.
STAND_INS = "".join(f'function({name})\n  message(NOTICE "{name};${{ARGN}}")\nendfunction()\n' for name in (
    "vcpkg_cmake_configure", "vcpkg_cmake_install", "vcpkg_cmake_config_fixup", "vcpkg_fixup_pkgconfig",
    "vcpkg_install_copyright"))


def expect(holds, message):
    if not holds:
        sys.exit(f"recipes: {message}")


def expect_options(text, recipe):
    sources = "".join(path.read_text() for path in [ROOT / "CMakeLists.txt", *ROOT.glob("cmake/*.cmake"), ROOT / "python/CMakeLists.txt"])
    options = re.findall(r"(?:-D|cmake\.define\.)(TMAP_\w+)=", text)
    expect(options, f"{recipe} sets no option")
    for option in options:
        expect(re.search(rf"(?:option|set)\({option} ", sources), f"{recipe} sets {option}, which is no option")


def expect_files(paths, recipe):
    expect(paths, f"{recipe} names no license")
    for path in paths:
        expect((ROOT / path).is_file(), f"{recipe} names {path}, which does not exist")


def check_vcpkg():
    manifest = json.loads((VCPKG / "vcpkg.json").read_text())
    expect(manifest["name"] == "tmap" and manifest["version-semver"] == VERSION, f"vcpkg.json is not of tmap {VERSION}")
    with tempfile.NamedTemporaryFile("w", suffix=".cmake") as driver:
        driver.write(f"cmake_minimum_required(VERSION 3.25)\n{STAND_INS}include({VCPKG}/portfile.cmake)\n")
        driver.flush()
        done = subprocess.run(["cmake", "-P", driver.name], capture_output=True, text=True)
    expect(done.returncode == 0, f"portfile.cmake fails: {done.stderr}")
    calls = dict(line.split(";", 1) for line in done.stderr.splitlines())
    expect(f"SOURCE_PATH;{ROOT};" in calls["vcpkg_cmake_configure"], f"the port does not build {ROOT}: {calls}")
    expect_options(calls["vcpkg_cmake_configure"], "the port")
    config = calls["vcpkg_cmake_config_fixup"].split(";")[1]
    folders = {str(path.parent.relative_to(INSTALLED)) for path in INSTALLED.rglob("tmapConfig.cmake")}
    expect(config in folders, f"the port looks for {config}, tmap installs {folders}")
    expect_files(calls["vcpkg_install_copyright"].split(";")[1:], "the port")


def check_conda():
    recipe = CONDA.read_text()
    expect(re.search(rf'^  version: "{re.escape(VERSION)}"$', recipe, re.MULTILINE), f"recipe.yaml is not of tmap {VERSION}")
    expect((CONDA.parent / re.search(r"^  path: (\S+)$", recipe, re.MULTILINE)[1]).resolve() == ROOT, f"the recipe does not build {ROOT}")
    expect_options(recipe, "the recipe")
    licenses = re.search(r"^  license_file:\n((?:    - \S+\n)+)", recipe, re.MULTILINE)
    expect_files(re.findall(r"- (\S+)", licenses[1]), "the recipe")


check_vcpkg()
check_conda()
