# SPDX-License-Identifier: Apache-2.0
"""Times models of Hugging Face Transformers with each implementation of their experts: tokens per
second of a training step, which is forward and backward without an optimizer, and of decoding.
Weights are random, in bf16. A step of decoding takes one new token of each sequence: in a CUDA
graph, without earlier tokens, and by `generate`, with its cache and the host's time. `generate`
replaces `grouped_mm` by `batched_mm` while it decodes. All of a model run in one program, in bursts
that take turns. A burst is timed after it has run as long untimed, because the GPU's clock follows
the power of what ran last. "-" stands for what does not run: eager experts wait for the GPU, so no
graph can capture them, and batched_mm copies the weights of each choice. Prints Markdown. Needs
PyTorch, Transformers and a Hopper GPU.

    python3 transformers_tokens.py [numbers of models, from 0] [training] [decoding] [generate]"""
import os
import sys
import time

os.environ["HF_HUB_OFFLINE"] = "1"

try:
    import torch
    import transformers

    import tmap.transformers
except ImportError as missing:
    sys.exit(f"transformers_tokens: {missing}")
from graphs import graph_of  # noqa: E402

IMPLEMENTATIONS = ("eager", "batched_mm", "grouped_mm", "tmap")
COMMON = {"vocab_size": 32000, "num_hidden_layers": 4, "num_attention_heads": 32, "num_key_value_heads": 4,
          "head_dim": 128, "max_position_embeddings": 4096, "eos_token_id": None, "pad_token_id": 0}
MODELS = (
    ("Qwen3Moe", {"hidden_size": 2048, "intermediate_size": 768, "moe_intermediate_size": 768, "num_experts": 128,
                  "num_experts_per_tok": 8}),
    ("Mixtral", {"hidden_size": 4096, "intermediate_size": 14336, "num_local_experts": 8, "num_experts_per_tok": 2}),
    ("GptOss", {"hidden_size": 2880, "intermediate_size": 2880, "num_local_experts": 32, "num_experts_per_tok": 4,
                "layer_types": ["full_attention"] * 4}),
)
# The mask of one token without earlier ones, prepared as `generate` does: no mask. Without it,
# GptOss makes its mask from a value of the host, which a capture refuses.
PREPARED = {"GptOss": {"attention_mask": {"full_attention": None}}}
WORKS = ("training", "decoding", "generate")
TRAINED = (4, 2048)  # sequences, tokens of each
DECODED, NEW_TOKENS = (1, 16, 128), 16
MOST_COPIED_BYTES = 20 << 30
BURST_SECONDS, ROUNDS = 0.3, 3


def burst(call, repeats):
    """Returns the seconds of a call, after as many calls that are not timed."""
    for _ in range(repeats):
        call()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(repeats):
        call()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) / repeats


def times_of(calls):
    """Returns the median burst of each call by its name."""
    repeats = {name: max(1, int(BURST_SECONDS / burst(call, 1))) for name, call in calls.items()}
    bursts = [{name: burst(call, repeats[name]) for name, call in calls.items()} for _ in range(ROUNDS)]
    return {name: sorted(each[name] for each in bursts)[ROUNDS // 2] for name in calls}


class Model:
    def __init__(self, name, sizes):
        config = getattr(transformers, f"{name}Config")(**{**COMMON, **sizes})
        self.label = (f"{name}, {sizes.get('num_experts') or sizes['num_local_experts']} x {sizes['hidden_size']} -> "
                      f"{sizes.get('moe_intermediate_size') or sizes['intermediate_size']}, top "
                      f"{sizes['num_experts_per_tok']}")
        torch.set_default_dtype(torch.bfloat16)
        with torch.device("cuda"):
            self.model = getattr(transformers, f"{name}ForCausalLM")(config)
        torch.set_default_dtype(torch.float32)
        for parameter in self.model.parameters():
            if parameter.dim() > 1:
                torch.nn.init.normal_(parameter, std=0.02)
        experts = [module for module in self.model.modules() if hasattr(module, "_apply_gate")]
        a_layer = sum(parameter.numel() * 2 for parameter in experts[0].parameters())
        self.bytes_of_choice = a_layer // experts[0].num_experts
        self.layers, self.k = len(experts), sizes["num_experts_per_tok"]
        self.prepared = PREPARED.get(name, {})

    def ids(self, sequences, tokens):
        return torch.randint(1, COMMON["vocab_size"], (sequences, tokens), device="cuda")

    def has_room(self, implementation, choices, layers):
        """Returns whether copies of weights fit: batched_mm makes one for each choice, and training
        keeps those of all layers."""
        return implementation != "batched_mm" or choices * self.bytes_of_choice * layers <= MOST_COPIED_BYTES

    def with_each(self, call):
        """Returns the call for each implementation. Choosing one takes no time worth a mention."""
        def of(implementation):
            def run():
                if self.model.get_experts_implementation()[""] != implementation:
                    self.model.set_experts_implementation(implementation)
                return call()
            return run
        return {implementation: of(implementation) for implementation in IMPLEMENTATIONS}

    def training(self):
        ids = self.ids(*TRAINED)

        def step():
            self.model(ids, labels=ids, use_cache=False).loss.backward()
            self.model.zero_grad(set_to_none=False)

        self.model.train()
        calls = self.with_each(step)
        return {name: call for name, call in calls.items() if self.has_room(name, ids.numel() * self.k, self.layers)}

    def replayed(self, sequences):
        """Returns graphs of one step of decoding."""
        ids = self.ids(sequences, 1)

        def step():
            with torch.no_grad():
                return self.model(ids, use_cache=False, **self.prepared).logits.argmax(-1)

        self.model.eval()
        graphs = {}
        for name, call in self.with_each(step).items():
            if name != "eager" and self.has_room(name, sequences * self.k, 1):
                graphs[name] = graph_of(call).replay
        return graphs

    def generated(self, sequences):
        ids = self.ids(sequences, 8)
        mask = torch.ones_like(ids)
        self.model.eval()
        return {name: call for name, call in self.with_each(
            lambda: self.model.generate(ids, attention_mask=mask, max_new_tokens=NEW_TOKENS, do_sample=False)).items()
            if self.has_room(name, sequences * self.k * 8, 1)}


def line(label, what, tokens, seconds):
    rates = {name: tokens / seconds[name] for name in seconds}
    best = max((rate for name, rate in rates.items() if name != "tmap"), default=float("nan"))
    cells = " | ".join(f"{rates[name]:,.0f}" if name in rates else "-" for name in IMPLEMENTATIONS)
    return f"| {label} | {what} | {cells} | {rates['tmap'] / best:.2f} |"


def rows_of(number, works):
    model = Model(*MODELS[number])
    if "training" in works:
        yield line(model.label, f"training, {TRAINED[0]} x {TRAINED[1]}", TRAINED[0] * TRAINED[1],
                   times_of(model.training()))
        model.model.zero_grad(set_to_none=True)
        torch.cuda.empty_cache()
    for sequences in DECODED if "decoding" in works else ():
        yield line(model.label, f"decoding, graph, {sequences}", sequences, times_of(model.replayed(sequences)))
    if "generate" in works:
        yield line(model.label, f"generate, {DECODED[1]}", DECODED[1] * NEW_TOKENS,
                   times_of(model.generated(DECODED[1])))


def main():
    if not torch.cuda.is_available():
        sys.exit("transformers_tokens: no GPU")
    torch.manual_seed(1)
    numbers = [int(word) for word in sys.argv[1:] if word.isdigit()] or range(len(MODELS))
    works = [word for word in sys.argv[1:] if not word.isdigit()] or WORKS
    if not set(works) <= set(WORKS):
        sys.exit(f"an argument is none of {', '.join(WORKS)} and no number of a model: {' '.join(works)}")
    tmap.transformers.register()
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, Transformers {transformers.__version__}; "
          "tokens per second\n")
    print("| model of 4 layers | work | " + " | ".join(IMPLEMENTATIONS) + " | tmap / best of theirs |")
    print("|---" * (len(IMPLEMENTATIONS) + 3) + "|")
    for number in numbers:
        begin = time.time()
        for row in rows_of(number, works):
            print(row, flush=True)
        torch.cuda.empty_cache()
        print(f"model {number}: {time.time() - begin:.1f} s, most memory "
              f"{torch.cuda.max_memory_allocated() / 1e9:.0f} GB", file=sys.stderr)
    print(f"\ntmap took {tmap.transformers.calls().taken} calls, and passed {tmap.transformers.calls().passed}")


if __name__ == "__main__":
    main()
