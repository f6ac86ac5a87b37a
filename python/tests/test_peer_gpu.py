# SPDX-License-Identifier: Apache-2.0
"""Groups of GPUs with PyTorch's tensors: virtual ranks on one GPU, two GPUs of this process, and
two processes with a process group."""
import os
import subprocess
import sys
import unittest
from pathlib import Path

import support

torch = support.need_torch_gpu()
from expert_cases import ExpertRank  # noqa: E402
from peer_cases import NBYTES, RANKS, Rank  # noqa: E402

import tmap  # noqa: E402
from tmap import Status, peer  # noqa: E402

# One thread serves all ranks. So it launches the calls of all ranks before it waits for a GPU.


class RankCases:
    """Tests with the objects that `rank_of` makes of windows."""

    def windows(self):
        raise NotImplementedError

    def setUp(self):
        self.ranks = [self.rank_of(window) for window in self.windows()]
        self.addCleanup(self.end)

    def end(self):
        torch.cuda.synchronize()
        for rank in self.ranks:
            rank.window.close()

    def all(self, function, *arguments, **words):
        for rank in self.ranks:
            getattr(rank, function)(*arguments, **words)

    def replay_graphs(self, record):
        """Records `record` of each rank in a graph, and replays the graphs with other inputs."""
        self.all("write", 0)
        for rank in self.ranks:
            record(rank)  # the kernels are loaded
        self.all("check", self, 0)
        graphs = [torch.cuda.CUDAGraph() for _ in self.ranks]
        for rank, graph in zip(self.ranks, graphs):
            with torch.cuda.graph(graph, stream=rank.stream):
                record(rank)
        for call in (1, 2, 3):
            self.all("write", call)
            for rank, graph in zip(self.ranks, graphs):
                with torch.cuda.stream(rank.stream):
                    graph.replay()
            self.all("check", self, call)


class ExchangeCases(RankCases):
    rank_of = Rank

    def test_rows_come_to_their_ranks(self):
        for call, placed in enumerate(("rank_major", "group_major", "rank_major")):
            self.all("write", call)
            self.all("exchange", placed)
            self.all("await_pulls")
            self.all("check", self, call, placed)

    def test_columns_come_and_their_neighbours_stay(self):
        for sent, columns in ((slice(1, 40), slice(3, 42)), (slice(0, 32), slice(16, 48)), (slice(9, 10), slice(0, 1))):
            self.all("write", 2)
            for rank in self.ranks:
                with torch.cuda.stream(rank.stream):
                    rank.out.fill_(-1)
            for rank in self.ranks:
                rank.exchange(rows=rank.rows[:, sent], out=rank.out[:, columns])
            self.all("await_pulls")
            self.all("check", self, 2, columns=columns)

    def test_the_way_to_every_rank_and_a_barrier(self):
        for rank in self.ranks:
            rank.window.self_test(stream=rank.stream)
        for rank in self.ranks:
            rank.window.barrier(stream=rank.stream)
        for rank in self.ranks:
            rank.window.last_outcome(stream=rank.stream)

    def test_too_many_rows_move_nothing_on_any_rank(self):
        self.all("write", 1)
        before = [rank.out.clone() for rank in self.ranks]
        torch.cuda.synchronize()
        for rank in self.ranks:
            rank.exchange(out=rank.out[:1] if rank.window.rank == 0 else None)
        for rank, old in zip(self.ranks, before):
            with self.assertRaises(tmap.Error) as caught:
                rank.window.last_outcome(stream=rank.stream)
            self.assertEqual(caught.exception.status, Status.PEER_OVERFLOW)
            self.assertTrue(torch.equal(rank.out, old))
        self.all("exchange")
        self.all("check", self, 1)  # the group is whole

    def test_a_rank_that_does_not_come_is_named(self):
        first = self.ranks[0].window
        first.barrier(stream=self.ranks[0].stream, patience=0.05)
        with self.assertRaises(tmap.Error) as caught:
            first.last_outcome(stream=self.ranks[0].stream)
        self.assertEqual((caught.exception.status, caught.exception.found), (Status.PEER_TIMEOUT, 1))

    def test_an_aborted_group_is_broken(self):
        with torch.cuda.device(self.ranks[0].window.device):
            self.ranks[0].window.abort()
        for rank in self.ranks:
            rank.window.barrier(stream=rank.stream)
        for rank in self.ranks:
            with self.assertRaises(tmap.Error) as caught:
                rank.window.last_outcome(stream=rank.stream)
            self.assertEqual(caught.exception.status, Status.GROUP_BROKEN)

    def test_a_peers_memory_is_an_array(self):
        self.ranks[1].rows.fill_(7)
        torch.cuda.synchronize(self.ranks[1].window.device)
        first = self.ranks[0].window
        with torch.cuda.device(first.device):
            of_peer = torch.from_dlpack(first.array(self.ranks[1].rows.shape, "i32", 8192, rank=1))
            self.assertTrue((of_peer == 7).all())


class ExpertCases(RankCases):
    returned = "sums"

    def rank_of(self, window):
        return ExpertRank(window, self.returned)

    def run_calls(self):
        for call in range(3):
            self.all("write", call)
            self.all("run")
            self.all("check", self, call)

    def test_tokens_come_to_their_experts_and_results_come_home(self):
        self.run_calls()

    def test_too_little_room_moves_nothing_on_any_rank(self):
        first = self.ranks[0]
        whole, first.sizes = first.sizes, first.sizes._replace(rows=16)
        every_row, first.rows, first.results = (first.rows, first.results), first.rows[:16], first.results[:16]
        self.all("write", 0)
        self.all("run")
        for rank in self.ranks:
            with self.assertRaises(tmap.Error) as caught:
                rank.window.last_outcome(stream=rank.stream)
            self.assertEqual((caught.exception.status, caught.exception.found), (Status.PEER_OVERFLOW, 0))
            self.assertTrue((rank.rows == -7).all())
        first.sizes, (first.rows, first.results) = whole, every_row
        self.run_calls()  # the group is whole


class OnOneGpu:
    """Both ranks are on one GPU. This proves nothing about order between GPUs."""

    def windows(self):
        buffers = [torch.zeros(peer.Window.HEADER_BYTES + NBYTES, dtype=torch.uint8, device="cuda")
                   for _ in range(RANKS)]
        torch.cuda.synchronize()
        pointers = [buffer.data_ptr() for buffer in buffers]
        groups = [peer.Group.from_pointers(pointers, rank, buffers[rank].nbytes, keep=buffers)
                  for rank in range(RANKS)]
        return [group.allocate(NBYTES) for group in groups]


class OnTwoGpus:
    def windows(self):
        return [group.allocate(NBYTES) for group in peer.Group.of_process([0, 1])]


class VirtualRanks(OnOneGpu, ExchangeCases, unittest.TestCase):
    def test_a_graph_is_replayed(self):
        def record(rank):
            rank.exchange()
            rank.await_pulls()

        self.replay_graphs(record)

    def test_maps_lie_at_their_owners(self):
        window = self.ranks[0].window
        base = torch.from_dlpack(window.array((16, 64), "f32", 8192))
        ends = torch.tensor([8, 16], device="cuda", dtype=torch.int32)
        begins = torch.tensor([4, 4], device="cuda", dtype=torch.int32)
        counts = torch.tensor([3, 12], device="cuda", dtype=torch.int32)
        owners = torch.tensor([1, 0], device="cuda", dtype=torch.int32)
        with tmap.MapService() as service:
            for offsets, format, first, rows in ((ends, "ends", (0, 8), (8, 8)),
                                                 ((begins, counts), "begins_and_counts", (4, 4), (3, 12))):
                with service.encode_ragged(base, offsets, box=(8, 32), format=format, owners=owners,
                                           window=window) as batch:
                    maps = torch.from_dlpack(batch.maps).cpu()
                    statuses = torch.from_dlpack(batch.statuses).cpu().view(torch.int64)
                self.assertEqual(statuses.tolist(), [0, 0])
                found = [tmap.decode(bytes(maps[i].tolist())).spec for i in range(2)]
                self.assertEqual([spec.address for spec in found],
                                 [window.address(8192 + 256 * first[i], rank=1 - i) for i in range(2)])
                self.assertEqual([tuple(spec.dims) for spec in found], [(64, rows[0]), (64, rows[1])])


class VirtualExperts(OnOneGpu, ExpertCases, unittest.TestCase):
    def test_a_graph_is_replayed(self):
        self.replay_graphs(ExpertRank.run)


class VirtualExpertsThatReturnRows(VirtualExperts):
    returned = "rows"


@unittest.skipIf(torch.cuda.device_count() < 2, "needs two GPUs")
class TwoGpus(OnTwoGpus, ExchangeCases, unittest.TestCase):
    pass


@unittest.skipIf(torch.cuda.device_count() < 2, "needs two GPUs")
class ExpertsOfTwoGpus(OnTwoGpus, ExpertCases, unittest.TestCase):
    pass


class ExpertsOfTwoGpusThatReturnRows(ExpertsOfTwoGpus):
    returned = "rows"


class TwoProcesses(unittest.TestCase):
    """Each process is a rank. `peer_process.py` makes its group and exchanges rows."""

    def setUp(self):
        support.need_ranks_over_nccl(2)

    def run_ranks(self, *arguments):
        variables = {**os.environ, **support.NCCL_OF_TESTS, "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1",
                     "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29531", "WORLD_SIZE": "2",
                     "PYTHONPATH": os.pathsep.join(sys.path)}
        script = Path(__file__).with_name("peer_process.py")
        ranks = [subprocess.Popen([sys.executable, str(script), *arguments], env={**variables, "RANK": str(rank)},
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for rank in range(2)]
        texts = []
        for rank in ranks:
            try:
                texts.append(rank.communicate(timeout=100)[0])
            except subprocess.TimeoutExpired:
                rank.kill()
                texts.append(rank.communicate()[0] + "\nkilled")
        if any("SKIP" in text for text in texts):
            self.skipTest(next(text for text in texts if "SKIP" in text).strip()[-300:])
        self.assertEqual([rank.returncode for rank in ranks], [0, 0], "\n".join(texts))

    def test_the_communicator_of_a_process_group(self):
        self.run_ranks("torch")

    def test_a_communicator_of_its_own(self):
        self.run_ranks("create")

    def test_windows_that_peers_do_not_reach(self):
        for provider in ("torch", "create"):
            with self.subTest(provider):
                self.run_ranks(provider, "local")

    def test_pointers_of_symmetric_memory(self):
        self.run_ranks("symmetric")


if __name__ == "__main__":
    unittest.main()
