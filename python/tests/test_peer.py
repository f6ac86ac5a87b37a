# SPDX-License-Identifier: Apache-2.0
"""Groups of GPUs without a GPU: groups of given addresses, the problems that the library gets, and
PyTorch's process groups played by objects."""
import ctypes
import gc
import types
import unittest
import unittest.mock

from lifetime_cases import StandIns
from stand_ins import CONTEXT_OF, OnDevice

import tmap
from tmap import Status, _driver, _libraries, _structs, _torch_groups, _window, peer
from tmap._library import lib

NBYTES = 1 << 20
BUFFERS = (1 << 20, 1 << 21, 3 << 20)
HEADER = peer.Window.HEADER_BYTES


def group_of(rank=1, keep=None):
    return peer.Group.from_pointers(BUFFERS, rank, NBYTES, keep=keep)


class Groups(unittest.TestCase):
    def refused(self, argument, function, *arguments, **words):
        with self.assertRaises(tmap.Error) as caught:
            function(*arguments, **words)
        self.assertEqual((caught.exception.status, caught.exception.argument), (Status.INVALID_ARGUMENT, argument))

    def test_a_group_of_addresses(self):
        with group_of() as group:
            self.assertEqual((group.rank, group.ranks), (1, 3))
            group.check()
            with group.allocate(4096) as first, group.allocate(100) as second:
                self.assertEqual((first.nbytes, first.rank, first.ranks), (4096, 1, 3))
                self.assertEqual(first.address(), BUFFERS[1] + HEADER)
                self.assertEqual(first.address(16, rank=2), BUFFERS[2] + HEADER + 16)
                self.assertEqual(second.address(rank=0), BUFFERS[0] + 2 * HEADER + 4096)
                self.refused("bytes", group.allocate, NBYTES)
                self.refused("bytes", group.allocate_local, 0, 1)
                self.refused("pair_bytes", group.allocate_local, 1, 0)
                self.refused("group", group.allocate_local, 1, 1)  # it has no communicator
        self.assertIn("rank 1 of 3, closed", repr(group))
        with self.assertRaises(tmap.Error) as caught:
            group.allocate(1)
        self.assertEqual(caught.exception.status, Status.INVALID_HANDLE)

    def test_refusals_of_addresses(self):
        make = peer.Group.from_pointers
        self.refused("windows[2]", make, (*BUFFERS[:2], 100), 0, NBYTES)
        self.refused("windows[1]", make, BUFFERS, 0, NBYTES + 1)
        self.refused("rank", make, BUFFERS, 3, NBYTES)
        self.refused("ranks", make, (), 0, NBYTES)
        self.refused("window_bytes", make, BUFFERS, 0, HEADER)
        with self.assertRaisesRegex(ValueError, r"buffer_ptrs\[0\]"):
            make((-1,), 0, NBYTES)
        with self.assertRaisesRegex(TypeError, "buffer_ptrs"):
            make(5, 0, NBYTES)

    def test_groups_of_a_process_and_of_nccl(self):
        self.refused("ranks", peer.Group.of_process, ())
        self.refused("communicator", peer.Group.from_nccl, 0)
        self.refused("patience_ms", peer.Group.from_nccl, 4096, patience=90000)
        for patience in (0, -1, float("nan")):
            with self.assertRaisesRegex(ValueError, "patience"):
                peer.Group.from_nccl(4096, patience=patience)

    def test_starts_come_to_their_places(self):
        seen = []

        def create(start, group):
            seen.append(_structs.PeerStart.from_buffer_copy(start._obj))
            seen.append(ctypes.string_at(start._obj.id_file) if start._obj.id_file else None)
            return 0

        with unittest.mock.patch.object(peer, "lib", types.SimpleNamespace(tmap_peer_group_create=create)):
            with unittest.mock.patch.object(peer.Group, "__init__", lambda *arguments: None):
                peer.Group.create(3, 4, id=bytes(range(128)), patience=1.5)
                peer.Group.create(0, 2, id_file="/a/path", run=7)
        first, no_path, second, path = seen
        self.assertEqual((first.rank, first.ranks, bytes(first.id), first.patience_ms, first.run, no_path),
                         (3, 4, bytes(range(128)), 1500, 0, None))
        self.assertEqual((second.rank, second.ranks, second.run, second.patience_ms, path), (0, 2, 7, 0, b"/a/path"))

    def test_starts_need_one_way_to_the_id(self):
        for words in ({}, {"id": bytes(128), "id_file": "/a/path"}, {"id": bytes(127)}, {"id": "x" * 128}):
            with self.assertRaisesRegex(ValueError, "id"):
                peer.Group.create(0, 2, **words)
        self.refused("start.rank", peer.Group.create, 2, 2, id=bytes(128))
        self.refused("start.ranks", peer.Group.create, 0, 33, id=bytes(128))

    def test_windows_keep_the_owner_of_their_memory(self):
        class Owner:
            def __del__(self):
                ended.append(self)

        ended = []
        group = group_of(keep=Owner())
        window = group.allocate(100)
        group.close()
        del group
        gc.collect()
        self.assertEqual(ended, [])
        window.close()
        gc.collect()
        self.assertEqual(len(ended), 1)

    def test_handles_end_with_their_objects(self):
        group = group_of()
        handle = _structs.Handle(group._handle.value)
        window = group.allocate(100)
        of_window = _structs.Handle(window.handle.value)
        del group, window
        gc.collect()
        self.assertEqual(lib.tmap_peer_group_destroy(handle), Status.INVALID_HANDLE)
        self.assertEqual(lib.tmap_peer_memory_destroy(of_window), Status.INVALID_HANDLE)


class Memory(unittest.TestCase):
    def setUp(self):
        self.window = group_of().allocate(4096)

    def test_a_ref_has_the_members_of_the_c_struct(self):
        ref = _structs.PeerMemoryRef.from_buffer_copy(self.window.ref)
        self.assertEqual((ref.bytes, ref.rank, ref.ranks, tuple(ref.windows[:3])), (4096, 1, 3, BUFFERS))
        self.assertEqual(len(self.window.ref), 272)
        try:
            import numpy
        except ImportError:
            return
        dtype = numpy.dtype(peer.Window.REF_DTYPE)
        self.assertEqual({name: dtype.fields[name][1] for name in dtype.names},
                         {name: getattr(_structs.PeerMemoryRef, name).offset for name in dtype.names})

    def test_arrays_of_it(self):
        array = self.window.array((4, 8), "bf16", offset=64)
        self.assertEqual((array.shape, array.dtype, array.__dlpack_device__()), ((4, 8), "bf16", (2, 0)))
        from tmap import _dlpack
        address, shape, _, dtype, _, read_only, _ = _dlpack.read(array, 1)
        self.assertEqual((address, shape, dtype, read_only), (self.window.address(64), (4, 8), "bf16", False))
        of_peer = _dlpack.read(self.window.array([8], "uint8", rank=2), 1)
        self.assertEqual(of_peer[0], self.window.address(0, rank=2))
        self.window.array((1024,), "f32")
        for words in ({"copy": True}, {"dl_device": (1, 0)}):
            with self.assertRaisesRegex(BufferError, "not copied"):
                array.__dlpack__(**words)

    def test_arrays_must_lie_in_it(self):
        for shape, dtype, offset in (((1025,), "f32", 0), ((1024,), "f32", 4), ((1,), "u8", 4096), ((1,), "u8", -1)):
            with self.assertRaisesRegex(ValueError, "lie in the window"):
                self.window.array(shape, dtype, offset)
        with self.assertRaisesRegex(TypeError, "dtype"):
            self.window.array((1,), "f7")
        with self.assertRaisesRegex(ValueError, "rank is 3"):
            self.window.array((1,), "u8", rank=3)
        with self.assertRaisesRegex(ValueError, "offset"):
            self.window.address(4097)

    def test_a_closed_window_gives_nothing(self):
        array = self.window.array((4,), "u8")
        self.window.close()
        self.window.close()
        for use in (lambda: self.window.ref, array.__dlpack__, self.window.abort, self.window.barrier):
            with self.assertRaises(tmap.Error) as caught:
                use()
            self.assertEqual(caught.exception.status, Status.INVALID_HANDLE)

    def test_one_spec_describes_the_tensors_of_all_ranks(self):
        local = tmap.TensorSpec("f32", dims=(64, 10), box=(32, 8), address=self.window.address(512))
        every = self.window.all_ranks_spec(local)
        self.assertEqual((every.dims, every.strides, every.address),
                         ((64, 10, 3), (256, BUFFERS[1] - BUFFERS[0]), BUFFERS[0] + HEADER + 512))

    def test_waiting_calls_name_their_patience(self):
        for call in (self.window.barrier, self.window.await_pulls, self.window.self_test):
            with self.assertRaises(tmap.Error) as caught:
                call(patience=90000, stream=1)
            self.assertEqual(caught.exception.argument, "patience_ms")


class Exchanges(StandIns):
    def setUp(self):
        super().setUp()
        self.window = group_of().allocate(4096)
        self.taken = []

    def arrays(self, **changes):
        made = {"rows": OnDevice((10, 16), "f32"), "splits": OnDevice((3, 2), "u32"),
                "out": OnDevice((20, 16), "f32"), "out_splits": OnDevice((3, 2), "i32")}
        return {**made, **changes}

    def exchange(self, placed="rank_major", blocks=0, patience=None, **changes):
        def take(window, problem, stream):
            self.taken.append((window.value, _structs.ExchangeProblem.from_buffer_copy(problem._obj), stream))
            return 0

        with unittest.mock.patch.object(_window, "lib", types.SimpleNamespace(tmap_peer_exchange_rows=take)):
            arrays = self.arrays(**changes)
            done = self.window.exchange_rows(**arrays, placed=placed, blocks=blocks, patience=patience, stream=7)
            self.assertIs(done, arrays["out"])

    def test_problems_come_to_their_places(self):
        self.exchange(placed="group_major", blocks=32, patience=2.5)
        handle, problem, stream = self.taken[0]
        self.assertEqual((handle, stream), (self.window.handle.value, 7))
        self.assertEqual((problem.struct_size, problem.row_bytes, problem.sent_rows, problem.capacity, problem.groups,
                          problem.placed, problem.blocks, problem.patience_ms), (96, 64, 10, 20, 2, 1, 32, 2500))
        self.assertEqual((problem.rows_pitch_bytes, problem.out_pitch_bytes), (64, 64))
        self.assertTrue(all((problem.rows, problem.splits, problem.out, problem.out_splits)))

    def test_rows_may_have_gaps_between_but_not_inside(self):
        def pitch(shape, strides):
            return _window._pitch(_libraries.View(0, _libraries.Form(shape, strides, "f16", 2), False, None), "rows")

        self.assertEqual(pitch((3, 5), (10, 2)), 10)
        self.assertEqual(pitch((3, 5), (64, 2)), 64)
        self.assertEqual(pitch((3, 4, 5), (41, 10, 2)), 41)
        self.assertEqual(pitch((3,), (7,)), 7)
        self.assertEqual(pitch((3, 1, 5), (10, 99, 2)), 10)
        self.assertEqual([pitch((rows, 5), (0, 2)) for rows in (0, 1)], [0, 0])
        for words, shape, strides in (("gaps inside", (3, 4, 5), (64, 12, 2)), ("gaps inside", (3, 5), (64, 4)),
                                      ("overlap", (3, 5), (0, 2)), ("overlap", (3, 5), (8, 2)), ("no dim", (), ())):
            with self.subTest(shape=shape, strides=strides), self.assertRaisesRegex(ValueError, words):
                pitch(shape, strides)

    def test_one_group_needs_no_dim(self):
        self.exchange(splits=OnDevice((3,), "i32"), out_splits=OnDevice((3,), "i32"))
        problem = self.taken[0][1]
        self.assertEqual((problem.groups, problem.placed, problem.blocks, problem.patience_ms), (1, 0, 0, 0))

    def test_no_rows_have_the_bytes_of_a_row_too(self):
        self.exchange(rows=OnDevice((0, 4, 8), "bf16"), out=OnDevice((5, 4, 8), "bf16"))
        self.assertEqual((self.taken[0][1].row_bytes, self.taken[0][1].sent_rows), (64, 0))

    def test_arrays_that_do_not_fit(self):
        for error, words, changes in (
                (ValueError, "alike", {"out": OnDevice((20, 8), "f32")}),
                (TypeError, "out", {"out": OnDevice((20, 16), "i32")}),
                (TypeError, "splits", {"splits": OnDevice((3, 2), "i64")}),
                (ValueError, r"splits is \(2, 2\)", {"splits": OnDevice((2, 2), "u32")}),
                (ValueError, "out_splits", {"out_splits": OnDevice((3,), "u32")}),
                (ValueError, "no dim", {"rows": OnDevice((), "f32")}),
                (ValueError, "device 1", {name: OnDevice((3, 16), "u32", device=1)
                                          for name in ("rows", "splits", "out", "out_splits")})):
            with self.subTest(words), self.assertRaisesRegex(error, words):
                self.exchange(**changes)
        with self.assertRaisesRegex(ValueError, "placed"):
            self.exchange(placed="by_expert")
        self.assertEqual(self.taken, [])

    def test_rows_outside_the_window_are_refused_by_the_library(self):
        with self.assertRaises(tmap.Error) as caught:
            self.window.exchange_rows(**self.arrays(), stream=7)
        self.assertIn(caught.exception.argument, ("problem.rows", "problem.splits"))

    def test_arrays_of_the_host_are_refused(self):
        from test_dlpack import Producer
        arrays = {name: Producer(bytes(4096), (3, 16), "u32") for name in ("rows", "splits", "out", "out_splits")}
        with self.assertRaisesRegex(ValueError, "device memory"):
            self.window.exchange_rows(**arrays)


class ProcessGroupNCCL:
    """A backend as PyTorch's, whose communicator is made by the first collective call."""

    def __init__(self, communicator=0):
        self.communicator = communicator

    def _comm_ptr(self):
        return self.communicator


class OldProcessGroupNCCL(ProcessGroupNCCL):
    _comm_ptr = property()


class ProcessGroup:
    def __init__(self, backend):
        self.backend = backend

    def _get_backend(self, device):
        if self.backend is None:
            raise RuntimeError(f"No backend type associated with device type {device}")
        return self.backend


class FakeTorch:
    """The module, as far as process groups go."""
    __version__ = "2.7.1"

    def __init__(self, world=None):
        self.calls = []
        self.cuda = types.SimpleNamespace(current_device=lambda: 0, synchronize=self.calls.append)
        self.distributed = types.SimpleNamespace(group=types.SimpleNamespace(WORLD=world), all_reduce=self.all_reduce,
                                                 ProcessGroupNCCL=ProcessGroupNCCL)

    @staticmethod
    def device(kind, index):
        return f"{kind}:{index}"

    @staticmethod
    def zeros(count, device):
        return (count, device)

    def all_reduce(self, tensor, group):
        self.calls.append(tensor)
        group.backend.communicator = 4096


class PyTorchsGroups(unittest.TestCase):
    def test_the_communicator_of_a_group(self):
        torch = FakeTorch()
        self.assertEqual(_torch_groups.communicator_of(ProcessGroup(ProcessGroupNCCL(512)), torch), 512)
        self.assertEqual(torch.calls, [])

    def test_a_first_call_makes_the_communicator(self):
        torch = FakeTorch()
        self.assertEqual(_torch_groups.communicator_of(ProcessGroup(ProcessGroupNCCL()), torch), 4096)
        self.assertEqual(torch.calls, [(1, "cuda:0"), "cuda:0"])

    def test_the_default_group(self):
        self.assertEqual(_torch_groups.communicator_of(None, FakeTorch(ProcessGroup(ProcessGroupNCCL(512)))), 512)
        with self.assertRaisesRegex(ValueError, "init_process_group"):
            _torch_groups.communicator_of(None, FakeTorch())

    def test_groups_of_other_backends_are_refused_by_name(self):
        with self.assertRaisesRegex(ValueError, "has a int for CUDA"):
            _torch_groups.communicator_of(ProcessGroup(5), FakeTorch())
        with self.assertRaisesRegex(ValueError, "process_group has no backend for CUDA: No backend"):
            _torch_groups.communicator_of(ProcessGroup(None), FakeTorch())
        with self.assertRaisesRegex(ValueError, "process_group has no backend"):
            _torch_groups.communicator_of("world", FakeTorch())

    def test_older_versions_are_refused_by_name(self):
        with self.assertRaisesRegex(RuntimeError, "PyTorch 2.8 or newer, not 2.7.1"):
            _torch_groups.communicator_of(ProcessGroup(OldProcessGroupNCCL()), FakeTorch())

    def test_the_communicator_comes_to_the_library(self):
        taken = []

        def take(communicator, patience, group):
            taken.append((communicator, patience))
            return 0

        world = ProcessGroup(ProcessGroupNCCL(512))
        with unittest.mock.patch.dict("sys.modules", torch=FakeTorch(world)):
            with unittest.mock.patch.object(peer, "lib", types.SimpleNamespace(tmap_peer_group_from_nccl=take)):
                with unittest.mock.patch.object(peer.Group, "__init__", lambda *arguments: None):
                    peer.Group.from_torch(patience=2)
        self.assertEqual(taken, [(512, 2000)])
        with unittest.mock.patch.dict("sys.modules", {"torch": None}):
            with self.assertRaisesRegex(ValueError, "not imported"):
                peer.Group.from_torch()


class Reach(unittest.TestCase):
    def test_a_window_that_peers_do_not_reach_has_its_own_address_alone(self):
        asked = []

        def allocate_local(group, nbytes, pair_nbytes, handle):
            asked.append((nbytes, pair_nbytes))
            return lib.tmap_peer_group_allocate(group, nbytes, handle)

        group = group_of()
        with unittest.mock.patch.object(peer, "lib",
                                        types.SimpleNamespace(tmap_peer_group_allocate_local=allocate_local)):
            window = group.allocate_local(4096, 100)
        self.assertEqual(asked, [(4096, 100)])
        window._ref.windows[2] = 0
        self.assertEqual(window.address(rank=1), window.address())
        with self.assertRaisesRegex(ValueError, "rank is 2: a window of `allocate_local` reaches no other rank"):
            window.address(rank=2)


class Contexts(StandIns):
    def test_each_rank_has_the_context_of_its_device(self):
        here, other = _driver.Home.on(0), _driver.Home.on(1)
        self.assertEqual((here.context, here.device), (CONTEXT_OF[0], 0))
        self.assertEqual((other.context, other.device), (CONTEXT_OF[1], 1))
        self.assertEqual(other.inside(self.driver.current), CONTEXT_OF[1])

    def test_a_group_of_another_device_allocates_there(self):
        group = peer.Group.from_pointers(BUFFERS, 0, NBYTES, device=1)
        seen = []

        def allocate(*arguments):
            seen.append(self.driver.current())
            return lib.tmap_peer_group_allocate(*arguments)

        library = types.SimpleNamespace(tmap_peer_group_allocate=allocate, tmap_peer_group_destroy=lambda handle: 0)
        with unittest.mock.patch.object(peer, "lib", library):
            window = group.allocate(100)
        self.assertEqual((seen, window.device), ([CONTEXT_OF[1]], 1))


class Owners(StandIns):
    def test_come_with_a_window(self):
        taken = []
        window = group_of().allocate(4096)
        values, ends, owners = OnDevice((8, 16), "f32"), OnDevice((2,), "i32"), OnDevice((2,), "u32")

        def encode(_, service, template, source, count, handle, call):
            taken.append(_structs.Call.from_buffer_copy(call))
            handle._obj.value = 77
            return 0

        with tmap.MapService() as service:
            with unittest.mock.patch.object(type(self.library), "tmap_service_encode", encode):
                service.encode_ragged(values, ends, (8, 16)).release()
                service.encode_ragged(values, ends, (8, 16), owners=owners, window=window).release()
            self.assertEqual((taken[0].owners, taken[0].owner_window.value), (None, 0))
            self.assertTrue(taken[1].owners)
            self.assertEqual(taken[1].owner_window.value, window.handle.value)
            for words in ({"owners": owners}, {"window": window}):
                with self.assertRaisesRegex(ValueError, "belong together"):
                    service.encode_ragged(values, ends, (8, 16), **words)
            with self.assertRaisesRegex(ValueError, "owners must hold 2"):
                service.encode_ragged(values, ends, (8, 16), owners=OnDevice((1,), "u32"), window=window)


class Rows(StandIns):
    """Rows of `MapService.encode_ragged`, which lie anywhere."""

    def source_of(self, offsets, **words):
        taken = []

        def encode(_, service, template, source, count, handle, call):
            taken.append((_structs.PatchSource.from_buffer_copy(source), count))
            handle._obj.value = 77
            return 0

        with tmap.MapService() as service:
            with unittest.mock.patch.object(type(self.library), "tmap_service_encode", encode):
                service.encode_ragged(OnDevice((8, 16), "f32"), offsets, (8, 16), **words).release()
        return taken[0]

    def test_begins_and_counts_come_to_their_places(self):
        begins, counts = OnDevice((3,), "i64"), OnDevice((3,), "i64")
        source, count = self.source_of((begins, counts), format="begins_and_counts")
        found = source.of.rows.offsets
        self.assertEqual((count, found.format, found.bytes), (3, 3, 8))
        self.assertTrue(found.values and found.counts and found.values != found.counts)
        self.assertEqual(self.source_of(begins)[0].of.rows.offsets.counts, None)

    def test_pairs_that_do_not_fit(self):
        begins = OnDevice((3,), "i64")
        for error, words, offsets in ((ValueError, "3 begins, and 2 counts", (begins, OnDevice((2,), "i64"))),
                                      (TypeError, "same type", (begins, OnDevice((3,), "i32"))),
                                      (ValueError, "offsets is a pair", (begins, begins, begins))):
            with self.assertRaisesRegex(error, words):
                self.source_of(offsets, format="begins_and_counts")
        with self.assertRaisesRegex(ValueError, "format"):
            self.source_of(begins, format="slots")


if __name__ == "__main__":
    unittest.main()
