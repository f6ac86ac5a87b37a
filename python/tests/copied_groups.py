# SPDX-License-Identifier: Apache-2.0
"""Ragged groups that a kernel copies through maps, and what the copies must be."""
import support
import torch

POISON = 0x5A


def bits(tensor):
    return tensor.contiguous().view(torch.uint8)


class Groups:
    """Ragged groups without gaps, and an output in which gaps follow the groups."""

    def __init__(self, sizes, width, dtype, gaps):
        made = torch.randint(0, 256, (max(sum(sizes), 1), width * dtype.itemsize), dtype=torch.uint8, device="cuda")
        self.sizes, self.width, self.values = sizes, width, made.view(dtype)
        self.ends = torch.tensor(support.ends_of(sizes), dtype=torch.int32, device="cuda")
        self.begins = [end - size + gap for end, size, gap in
                       zip(support.ends_of(sizes), sizes, [0, *support.ends_of(gaps)])]
        self.out = torch.full((sum(sizes) + sum(gaps) + 1, width * dtype.itemsize), POISON, dtype=torch.uint8,
                              device="cuda").view(dtype)
        self.cut = (torch.tensor(self.begins, dtype=torch.int32, device="cuda"),
                    torch.tensor(sizes, dtype=torch.int32, device="cuda"))

    @classmethod
    def drawn(cls, draw, dtype, most=200):
        count = draw.randint(1, 40)
        sizes = [draw.choice((0, 1, draw.randint(0, most))) for _ in range(count)]
        width = draw.randint(1, 20) * 16 // dtype.itemsize
        return cls(sizes, width, dtype, [draw.randint(0, 3) for _ in range(count)])

    def maps(self, service, **modes):
        """Returns the batches of maps of the values and of the output."""
        return (service.encode_ragged(self.values, self.ends, **modes),
                service.encode_ragged(self.out, self.cut, format="begins_and_counts", **modes))

    def cut_again(self, draw):
        """Cuts new values into as many groups of other sizes, in place and without gaps, and
        poisons the output."""
        rows = self.values.shape[0]
        cuts = sorted(draw.randint(0, rows) for _ in self.sizes[1:])
        self.begins = [0, *cuts]
        self.sizes = [end - begin for begin, end in zip(self.begins, [*cuts, rows])]
        self.ends.copy_(torch.tensor([*cuts, rows]))
        self.cut[0].copy_(torch.tensor(self.begins))
        self.cut[1].copy_(torch.tensor(self.sizes))
        bits(self.out).fill_(POISON)
        bits(self.values).random_(0, 256)

    def is_right(self):
        """Compares all bytes, those in gaps too."""
        expected, begin = torch.full_like(bits(self.out), POISON), 0
        for at, size in zip(self.begins, self.sizes):
            expected[at:at + size] = bits(self.values)[begin:begin + size]
            begin += size
        return torch.equal(bits(self.out), expected)
