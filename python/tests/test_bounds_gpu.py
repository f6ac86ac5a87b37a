# SPDX-License-Identifier: Apache-2.0
"""No call reads or writes outside the arrays it was given: on the GPU, arrays of PyTorch; products
and maps too."""
import unittest

import support

torch = support.need_torch_gpu()
np = support.need("numpy")
import tmap  # noqa: E402
from bounds_cases import Arena, BoundsCases  # noqa: E402

DEVICE = "cuda"


class OnDevice(Arena):
    def __init__(self):
        super().__init__()
        self.bytes = torch.from_numpy(self.bytes).to(DEVICE)

    def fill(self, begin, end, values):
        self.bytes[begin:end] = torch.from_numpy(values.ravel().view(np.uint8)).to(DEVICE)

    def view(self, begin, end, shape, dtype):
        names = {"uint32": "int32"}  # of which PyTorch knows little
        name = np.dtype(dtype).name
        return self.bytes[begin:end].view(getattr(torch, names.get(name, name))).view(shape)

    def get(self):
        return self.bytes.cpu().numpy()


class Operations(BoundsCases, unittest.TestCase):
    Arena = OnDevice

    def put(self, array):
        return torch.from_numpy(array).to(DEVICE)

    def get(self, array):
        return array.cpu().numpy()


class Products(unittest.TestCase):
    def test_groups_that_lead_out(self):
        """Rows beyond those of a and out hold canaries, which as bf16 are far beyond all sums."""
        for ends in ((4, 200, 32), (-5, 8, 32), (2**31 - 1, 5, 40), (33, 40, 50), (-2**31, 2**31 - 1, 31)):
            arena = OnDevice()
            a, out, b = (arena.array(*shape, value=0x3F803F80, dtype=np.int32).view(torch.bfloat16)
                         for shape in ((32, 32), (32, 32), (3, 64, 32)))  # ones, two of bf16 in each integer
            offs = torch.tensor(ends, device=DEVICE, dtype=torch.int32)
            tmap.grouped_mm(a, b, offs, out=out)
            self.assertTrue(arena.canaries_live(), ends)
            self.assertLess(out.float().abs().max().item(), 1e6)
            sums = arena.array(3, 64, 32, value=0, dtype=np.int32).view(torch.bfloat16)
            tmap.grouped_mm(a.t(), a.clone(), offs, out=sums)
            self.assertTrue(arena.canaries_live(), ends)
            self.assertLess(sums.float().abs().max().item(), 1e6)


class Maps(unittest.TestCase):
    def test_rows_that_do_not_exist_make_harmless_maps(self):
        base = torch.zeros(64, 64, device=DEVICE, dtype=torch.bfloat16)
        with tmap.MapService(capacity=64) as service:
            for width in (torch.int32, torch.int64):
                for form, cut in (("ends", (64, 65, 65, 10)), ("prefix", (0, 64, 65, 65, 10)), ("sizes", (64, 1, 0, -55))):
                    offsets = torch.tensor(cut, device=DEVICE, dtype=width)
                    with service.encode_ragged(base, offsets, (8, 64), format=form) as batch:
                        statuses = torch.from_dlpack(batch.statuses).cpu().view(torch.int64).tolist()
                    self.assertEqual((statuses[0], statuses[2]), (0, -1 << 63))
                    for bad in (1, 3):
                        self.assertIn("T05", [rule.name for rule in tmap.rules_of(statuses[bad])])

    def test_windows_say_what_may_be_reached_instead(self):
        whole = torch.zeros(80, 64, device=DEVICE, dtype=torch.bfloat16)
        begin = whole.data_ptr()
        windows = torch.tensor([[begin, begin + 80 * 128]], device=DEVICE)
        ends = torch.tensor((64, 80, 81), device=DEVICE)
        with tmap.MapService(capacity=64) as service:
            with service.encode_ragged(whole[:64], ends, (8, 64), windows=windows) as batch:
                statuses = torch.from_dlpack(batch.statuses).cpu().view(torch.int64).tolist()
        self.assertEqual(statuses[:2], [0, 0])
        self.assertEqual([rule.name for rule in tmap.rules_of(statuses[2])], ["T38"])


if __name__ == "__main__":
    unittest.main()
