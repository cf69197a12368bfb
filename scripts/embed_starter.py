"""Compute the embeddings and the edition that the starter set ships with.

usage: python scripts/embed_starter.py

Run it after any change to the texts or phrases of the starter set. The vectors are those of the
default encoder. Those of the texts are kept as float16: the rounding changes a cosine by less than
0.001. Those of the phrases are kept as eight-bit numbers, which changes a cosine by less than 0.01
and no figure of retrieval by more than 0.001.
"""

from importlib.resources import files
from pathlib import Path

import numpy as np
import numpy.typing as npt

from standards_mcp_catalog import starter
from standards_mcp_encoders.minilm import MiniLmEncoder


def main() -> None:
    encoder = MiniLmEncoder()
    wordings = starter.starter_wordings()
    vectors = encoder.encode([wording.text for wording in wordings])
    save("vectors.npy", vectors.astype(np.float16))
    vectors = encoder.encode([phrase for wording in wordings for phrase in wording.phrases])
    greatest = np.abs(vectors).max(axis=1, keepdims=True)
    save("phrases.npy", np.rint(vectors / greatest * 127).astype(np.int8))
    Path(str(files(starter) / starter.EDITION)).write_text(
        f"{starter.edition_of_texts()}\n", "ascii"
    )


def save(name: str, vectors: npt.NDArray[np.generic]) -> None:
    np.save(str(files(starter) / name), vectors, allow_pickle=False)
    print(f"{vectors.shape[0]} vectors of {vectors.shape[1]} dimensions written to {name}")


if __name__ == "__main__":
    main()
