"""List phrases of the starter set that are nearer to another standard than to their own.

usage: python scripts/check_phrases.py [--margin 0.2]

A phrase is compared with the text and the other phrases of every standard; the nearest one counts.
Standards above and below its own do not count as others. A listed phrase need not be wrong: the
same task may serve several grades, and a phrase may say more than the text. So read each, and
rewrite or drop it if it fits the other standard better.
"""

import argparse

import numpy as np

from standards_mcp_catalog.starter import (
    phrase_vectors,
    starter_records,
    starter_vectors,
    starter_wordings,
)
from standards_mcp_encoders.minilm import normalised


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--margin", type=float, default=0.2, help="list only cosines that differ so"
    )
    margin = parser.parse_args().margin
    wordings = starter_wordings()
    texts = [wording.text for wording in wordings]
    phrases = [phrase for wording in wordings for phrase in wording.phrases]
    owners = np.repeat(np.arange(len(wordings)), [len(each.phrases) for each in wordings])
    codes = {wording.id: wording.notation for wording in wordings}
    paths = [[codes[id_] for id_ in (*each.ancestor_ids, each.id)] for each in starter_records()]
    all_texts, all_owners = [*texts, *phrases], np.concatenate([np.arange(len(texts)), owners])
    vectors = normalised(phrase_vectors())
    everything = np.vstack([normalised(starter_vectors()), vectors])
    listed = list[tuple[float, str]]()
    for number, (phrase, owner) in enumerate(zip(phrases, owners.tolist(), strict=True)):
        cosines = everything @ vectors[number]
        cosines[len(texts) + number] = -1
        code, path = wordings[owner].notation, paths[owner]
        own = cosines[all_owners == owner].max()
        for rival in np.argsort(-cosines)[:50].tolist():
            other = paths[all_owners[rival]]
            if code not in other and other[-1] not in path:
                break
        gap = float(cosines[rival] - own)
        if gap >= margin:
            listed.append((gap, f"{code}: {phrase}\n     {other[-1]}: {all_texts[rival]}"))
    for gap, line in sorted(listed, reverse=True):
        print(f"{gap:.2f} {line}")
    print(f"{len(phrases)} phrases, {len(listed)} nearer to another standard by {margin} or more")


if __name__ == "__main__":
    main()
