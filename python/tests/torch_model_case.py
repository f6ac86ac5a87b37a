# SPDX-License-Identifier: Apache-2.0
"""Compiles a model by AOTInductor and runs it by the sample torch_model, in C++ without Python."""
import os
import subprocess
import unittest
from pathlib import Path

import torch

from tmap import torch_native


def program():
    """The sample of the build that has the library, or the test is skipped."""
    if torch_native.path is not None:
        found = Path(torch_native.path).resolve().parent / "apps/samples/torch_model/torch_model"
        if found.exists():
            return found
    raise unittest.SkipTest("apps/samples/torch_model is not built (TMAP_BUILD_TORCH)")


def run_without_python(model, inputs, folder, calls=0, **variables):
    """Returns the model's results in such a process, and the microseconds of a call, if some are
    timed."""
    package, given, results = (str(Path(folder) / name) for name in ("model.pt2", "inputs.pt", "results.pt"))
    exported = torch.export.export(model, inputs)
    torch._inductor.aoti_compile_and_package(exported, package_path=package)
    torch.save(list(inputs), given)
    libraries = [str(Path(torch_native.path).resolve().parent), str(Path(torch.__file__).parent / "lib"),
                 *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
    words = [str(program()), package, given, results] + ([str(calls)] if calls else [])
    done = subprocess.run(words, capture_output=True, text=True,
                          env={**os.environ, "LD_LIBRARY_PATH": ":".join(libraries), **variables})
    if done.returncode != 0:
        raise AssertionError(f"torch_model failed: {done.stderr[:2000]}")
    found = torch.load(results, weights_only=False)
    return found, float(done.stdout.splitlines()[-1]) if calls else None
