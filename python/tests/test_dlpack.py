# SPDX-License-Identifier: Apache-2.0
"""DLPack in and out: capsules old and new, flags, streams, lifetimes."""
import ctypes
import gc
import struct
import unittest
import weakref

import support  # noqa: F401
import tmap
from tmap import _arrays, _dlpack, _libraries, ragged

HOST, GPU, OTHER = (1, 0), (2, 0), (4, 0)


class Producer:
    """Memory of this process as DLPack. If `versioned` is false, it knows no keyword but
    `stream`."""

    def __init__(self, data, shape, dtype, device=HOST, versioned=True, read_only=False):
        self.data = ctypes.create_string_buffer(data, len(data))
        self.shape, self.dtype, self.device, self.read_only = shape, dtype, device, read_only
        self.asked = []
        if not versioned:
            self.__class__ = OldProducer

    def __dlpack_device__(self):
        return self.device

    def capsule(self, max_version):
        return _dlpack.write(ctypes.addressof(self.data), self.shape, self.dtype, self.device, self.read_only, max_version)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        self.asked.append((stream, max_version, copy))
        return self.capsule(max_version)


class OldProducer(Producer):
    def __dlpack__(self, stream=None):
        self.asked.append((stream,))
        return self.capsule(None)


def floats(*values):
    return struct.pack(f"<{len(values)}f", *values)


class In(unittest.TestCase):
    def test_old_and_new_capsules_say_the_same(self):
        for versioned in (True, False):
            producer = Producer(floats(1, 2, 3, 4, 5, 6), (2, 3), "f32", versioned=versioned)
            view = _arrays.Site(None, producer).write(producer, "it")
            self.assertEqual((view.address, view.shape, view.strides, view.dtype),
                             (ctypes.addressof(producer.data), (2, 3), (12, 4), "f32"))
            self.assertTrue(view.is_packed)
            self.assertEqual(producer.asked, [(None, (1, 0), False)] if versioned else [(None,)])

    def test_a_read_only_array_is_read_and_not_written(self):
        producer = Producer(floats(1), (1,), "f32", read_only=True)
        site = _arrays.Site(None, producer)
        self.assertTrue(site.read(producer, "it").read_only)
        with self.assertRaisesRegex(ValueError, "it would be written"):
            site.write(producer, "it")

    def test_the_consumers_stream_is_handed_to_the_producer(self):
        for given, asked in ((7, 7), (0, 1), (None, 1)):
            producer = Producer(floats(1), (1,), "f32", device=GPU)
            _arrays.Site(given, producer).read(producer, "it")
            self.assertEqual(producer.asked, [(asked, (1, 0), False)])

    def test_streams_of_any_library(self):
        class Protocol:
            def __cuda_stream__(self):
                return 0, 11

        class Torch:
            cuda_stream = 12

        class CuPy:
            ptr = 13

        self.assertEqual([_arrays.stream_handle(s) for s in (Protocol(), Torch(), CuPy(), 14)], [11, 12, 13, 14])
        with self.assertRaises(TypeError):
            _arrays.stream_handle("7")

    def test_what_is_no_array(self):
        host, gpu = Producer(floats(1), (1,), "f32"), Producer(floats(1), (1,), "f32", device=GPU)
        other = Producer(floats(1), (1,), "f32", device=OTHER)
        for error, arrays in ((TypeError, (3,)), (TypeError, ([1.0],)), (TypeError, (other,)), (ValueError, (host, gpu)),
                              (ValueError, (gpu, host))):
            with self.assertRaises(error):
                site = _arrays.Site(None, *arrays)
                for array in arrays:
                    site.read(array, "it")
        with self.assertRaises(ValueError):
            _arrays.Site(5, host)
        with self.assertRaisesRegex(ValueError, "PyTorch or CuPy"):
            _arrays.Site(5, gpu).memory(16)

    def test_capsules_that_lie(self):
        class Empty(Producer):
            def capsule(self, max_version):
                return None

        class Used(Producer):
            def capsule(self, max_version):
                made = super().capsule(None)
                ctypes.pythonapi.PyCapsule_SetName(ctypes.py_object(made), b"used_dltensor")
                return made

        class Future(Producer):
            def capsule(self, max_version):
                made = super().capsule(max_version)
                ctypes.c_uint32.from_address(_dlpack._get(made, b"dltensor_versioned")).value = 2
                return made

        for error, kind in ((TypeError, Empty), (TypeError, Used), (BufferError, Future)):
            producer = kind(floats(1), (1,), "f32")
            with self.assertRaises(error):
                _arrays.Site(None, producer).read(producer, "it")

    def test_an_offset_into_the_memory_is_added(self):
        class View(Producer):
            def capsule(self, max_version):
                made = super().capsule(max_version)
                tensor, _ = _dlpack._opened(made)
                tensor.data, tensor.byte_offset = tensor.data - 64, 64 + 4
                tensor.shape[0] -= 1
                return made

        producer = View(floats(1, 2, 3), (3,), "f32")
        view = _arrays.Site(None, producer).read(producer, "it")
        self.assertEqual((view.address, view.shape), (ctypes.addressof(producer.data) + 4, (2,)))

    def test_vectors_are_no_elements(self):
        class Vectors(Producer):
            def capsule(self, max_version):
                made = super().capsule(max_version)
                _dlpack._opened(made)[0].lanes = 4
                return made

        producer = Vectors(floats(1, 2, 3, 4), (1,), "f32")
        with self.assertRaisesRegex(TypeError, "4 lanes"):
            _arrays.Site(None, producer).read(producer, "it")

    def test_the_step_of_a_single_element_may_be_anything(self):
        for step in (-12, 0, 5):
            form = _libraries.Form((1, 3), (step, 4), "f32", 4)
            self.assertTrue(form.is_packed)
            self.assertEqual(form.nbytes, 12)
        with self.assertRaisesRegex(ValueError, "negative strides"):
            _libraries.Form((2, 3), (-12, 4), "f32", 4)

    def test_the_operation_refuses_before_it_writes(self):
        values, ends = Producer(floats(1, 2), (2,), "f32"), Producer(struct.pack("<q", 2), (1,), "i64")
        out = Producer(floats(9, 9), (1, 2), "f32", read_only=True)
        with self.assertRaises(ValueError):
            ragged.pad(ragged.Rows(values, ends), out)
        self.assertEqual(out.data.raw, floats(9, 9))
        out.read_only = False
        ragged.pad(ragged.Rows(values, ends), out)
        self.assertEqual(out.data.raw, floats(1, 2))

    def test_a_view_keeps_the_producer(self):
        producer = Producer(floats(1), (1,), "f32")
        view, gone = _arrays.Site(None, producer).read(producer, "it"), weakref.ref(producer)
        del producer
        gc.collect()
        self.assertIsNotNone(gone())
        del view
        gc.collect()
        self.assertIsNone(gone())


    def test_a_spec_keeps_what_the_producer_gave(self):
        class Remembering(Producer):
            def capsule(self, max_version):
                self.made = super().capsule(max_version)
                return self.made

        producer = Remembering(floats(1, 2, 3, 4), (4,), "f32")
        kept = tmap.TensorSpec.of(producer, (4,)).keeps
        for needed in (producer, producer.made):
            self.assertTrue(any(one is needed for one in kept), needed)


class Out(unittest.TestCase):
    def test_read_only_memory_needs_a_consumer_that_knows(self):
        producer = Producer(floats(1), (1,), "f32", read_only=True)
        for version in (None, (0, 8)):
            with self.assertRaises(BufferError):
                producer.__dlpack__(max_version=version)

    def test_numpy_takes_it_and_gives_it_back(self):
        np = support.need("numpy")
        for shape, dtype in (((2, 3), np.float32), ((), np.uint64), ((0, 4), np.int8), ((5,), np.float16)):
            array = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
            name = {"float32": "f32", "uint64": "u64", "int8": "i8", "float16": "f16"}[array.dtype.name]
            producer = Producer(array.tobytes() or b"\0", shape, name)
            for _ in range(100):
                taken = np.from_dlpack(producer)
            self.assertEqual((taken.dtype, taken.shape), (array.dtype, shape))
            np.testing.assert_array_equal(taken, array)

    def test_numpy_sees_that_it_is_read_only(self):
        np = support.need("numpy")
        if np.lib.NumpyVersion(np.__version__) < "2.2.5":
            self.skipTest("to this version of NumPy all that comes by DLPack is read-only (numpy/numpy#28599)")
        self.assertFalse(np.from_dlpack(Producer(floats(1), (1,), "f32", read_only=True)).flags.writeable)
        self.assertTrue(np.from_dlpack(Producer(floats(1), (1,), "f32")).flags.writeable)

    def test_torch_takes_it_also_when_an_exception_frees_it(self):
        torch = support.need("torch")
        producer = Producer(floats(1, 2), (2,), "f32")

        def fail():
            taken = torch.from_dlpack(producer)
            raise KeyError(float(taken[1]))

        for _ in range(100):
            with self.assertRaises(KeyError) as caught:
                fail()
            self.assertEqual(caught.exception.args, (2.0,))

    def test_torch_takes_read_only_memory(self):
        torch = support.need("torch")
        taken = torch.from_dlpack(Producer(floats(3), (1,), "f32", read_only=True))
        self.assertEqual(taken.tolist(), [3])


class Libraries(unittest.TestCase):
    def test_arrays_of_jax_are_read_and_never_written(self):
        support.need("jax")
        import jax.numpy as jnp
        np = support.need("numpy")
        with support.jax_on_cpu():
            values, ends, out = jnp.arange(8.0).reshape(4, 2), jnp.array([1, 4]), np.zeros((2, 3, 2), np.float32)
            ragged.pad(ragged.Rows(values, ends), out)
            self.assertEqual(out[1].tolist(), [[2, 3], [4, 5], [6, 7]])
            with self.assertRaises((ValueError, BufferError)):
                ragged.pad(ragged.Rows(values, ends), jnp.zeros((2, 3, 2)))

    def test_a_leaf_that_needs_a_gradient_is_read_and_never_written(self):
        torch = support.need("torch")
        values, ends = torch.ones(4, 2, requires_grad=True), torch.tensor([1, 4])
        out = torch.zeros(2, 3, 2)
        ragged.pad(ragged.Rows(values, ends), out)
        self.assertEqual(out.sum().item(), 8)
        with self.assertRaises(ValueError):
            ragged.unpad(out, ragged.Rows(values, ends))
        for odd in (values.detach().to_sparse(), torch._neg_view(values.detach()),
                    torch.ones(4, 2, dtype=torch.complex64).conj(), torch.ones(4, 2, dtype=torch.complex64).conj().imag,
                    torch.ones(4, 2).to(torch.complex32).conj()):
            with self.assertRaises(TypeError):
                ragged.pad(ragged.Rows(odd, ends), out)

    def test_tensors_that_are_alike_share_a_form(self):
        torch = support.need("torch")
        np = support.need("numpy")
        tensor = torch.zeros(4, 2)
        views = [_arrays.Site(None, array).read(array, "it") for array in (
            tensor, torch.nn.Parameter(tensor), np.zeros((4, 2), np.float32), tensor.t(), tensor.double(), tensor[:2])]
        forms = [view.form for view in views]
        self.assertTrue(forms[0] is forms[1] is forms[2])
        self.assertEqual(len(set(forms)), 4)
        self.assertEqual([form.is_packed for form in forms[2:]], [True, False, True, True])

    def test_specs_of_any_array(self):
        np = support.need("numpy")
        array = np.zeros((6, 5, 32), np.float16)[:, :4]
        spec = tmap.TensorSpec.of(array, (2, 4, 16), swizzle="32B")
        self.assertEqual((spec.element_type, spec.dims, spec.box, spec.strides, spec.address),
                         ("f16", (32, 4, 6), (16, 4, 2), (64, 320), array.ctypes.data))
        for wrong in (array[:, :, ::2], array.astype(np.complex64)):
            with self.assertRaises((ValueError, TypeError)):
                tmap.TensorSpec.of(wrong, (2, 4, 16))
        with self.assertRaises(ValueError):
            tmap.TensorSpec.of(array, (2, 4))


if __name__ == "__main__":
    unittest.main()
