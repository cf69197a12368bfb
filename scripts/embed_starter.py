"""Compute the embeddings that the starter set ships with.

usage: python scripts/embed_starter.py

Run it after any change to the texts of the starter set. The vectors are those of the default
encoder, kept as float16: the rounding changes a cosine by less than 0.001.
"""

from importlib.resources import files
from pathlib import Path

import numpy as np

from standards_mcp_catalog.starter import starter_records
from standards_mcp_encoders.minilm import MiniLmEncoder


def main() -> None:
    records = starter_records()
    vectors = MiniLmEncoder().encode([record.description for record in records])
    path = Path(str(files("standards_mcp_catalog.starter") / "vectors.npy"))
    np.save(path, vectors.astype(np.float16), allow_pickle=False)
    print(f"{len(records)} vectors of {vectors.shape[1]} dimensions written to {path.name}")


if __name__ == "__main__":
    main()
