# SPDX-License-Identifier: Apache-2.0
"""The base of tests that replace CUDA's driver, the library, PyTorch and CuPy by stand-ins."""
import contextlib
import gc
import unittest
import unittest.mock

from stand_ins import CuPy, CuPyArray, Driver, Library, Tensor, Torch

from tmap import _driver, _gemm_problem, _lease, _lifetime, _ragged, _service
from tmap._libraries import ADAPTORS, _CuPy, _Torch


class StandIns(unittest.TestCase):
    def setUp(self):
        self.driver = Driver()
        self.library = Library(self.driver)
        self.torch, self.cupy = Torch(), CuPy()
        with contextlib.ExitStack() as stack:
            stack.enter_context(unittest.mock.patch.object(_driver, "cuda", self.driver))
            for module in (_lease, _service, _ragged, _gemm_problem):
                stack.enter_context(unittest.mock.patch.object(module, "lib", self.library))
            adaptors = {Tensor: _Torch(self.torch), CuPyArray: _CuPy(self.cupy)}
            stack.enter_context(unittest.mock.patch.dict(ADAPTORS, adaptors))
            self.addCleanup(stack.pop_all().close)
        self.addCleanup(self.forget)

    def forget(self):
        """Before the real driver is asked again, which knows none of these contexts and events."""
        for name in ("batch", "service", "window"):
            self.__dict__.pop(name, None)
        gc.collect()
        self.driver.pass_all()
        while _lifetime._kept:
            _lifetime.let_go()
        _lease._left.clear()

    def tensor(self, dtype, *shape):
        return Tensor(shape, getattr(self.torch, dtype))

    def is_alive(self, reference):
        gc.collect()
        return reference() is not None
