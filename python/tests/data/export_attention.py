"""Writes attention.onnx with torch's exporter: one block of a transformer, with any batch and any number of tokens."""

# Run by hand where torch is installed; checked where it is not.
# mypy: disable-error-code="import-not-found,misc"

from __future__ import annotations

import sys
from pathlib import Path

import onnx
import torch


class Block(torch.nn.Module):
    """Attention and a feed-forward layer over embedded tokens."""

    def __init__(self, width: int = 32, words: int = 64) -> None:
        super().__init__()
        self.embed = torch.nn.Embedding(words, width)
        self.mix = torch.nn.Linear(width, 3 * width)
        self.norm = torch.nn.LayerNorm(width)
        wide, narrow = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)
        self.feed = torch.nn.Sequential(wide, torch.nn.GELU(), narrow)

    def forward(self, tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        x = self.embed(tokens)
        q, k, v = self.mix(self.norm(x)).chunk(3, dim=-1)
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        scores = scores.masked_fill(~mask[:, None, :], -1e4)
        x = x + scores.softmax(-1) @ v
        return x + self.feed(self.norm(x))


def main(path: Path) -> None:
    torch.manual_seed(0)
    tokens, mask = torch.zeros(2, 16, dtype=torch.int64), torch.ones(2, 16, dtype=torch.bool)
    sizes = {0: torch.export.Dim("batch"), 1: torch.export.Dim("length")}
    program = torch.onnx.export(
        Block().eval(),
        (tokens, mask),
        input_names=["tokens", "mask"],
        output_names=["hidden"],
        dynamic_shapes=(sizes, sizes),
        dynamo=True,
    )
    assert program is not None, "the exporter returns a program"
    model = program.model_proto
    # The exporter notes where in the source each node comes from, which is the exporting machine's own affair.
    for part in (
        model,
        model.graph,
        *model.graph.node,
        *model.graph.value_info,
        *model.graph.input,
        *model.graph.output,
    ):
        del part.metadata_props[:]
        part.doc_string = ""
    onnx.save(model, path)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "attention.onnx"))
