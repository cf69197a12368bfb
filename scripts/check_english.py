"""Check that the English of the project stays plain.

usage: python scripts/check_english.py [--list N] [PATH...]

Counts turns of phrase that readers must translate, such as "what ..." in place of a noun, in
docstrings, comments, messages and documents. It fails if one of the areas has more of them in
10,000 words than its ceiling. `--list` shows the places with the most; with paths, only their
texts are counted, without a ceiling. Other Python projects have 10 to 15 in 10,000 words.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
CEILINGS: Final = {
    ("standards_mcp",): 25,
    ("plugins",): 25,
    ("docs",): 25,
    ("README.md", "CONTRIBUTING.md"): 25,
}
"""Areas, with the most phrases that 10,000 words of them may have."""
SKIPPED: Final = {"tests", "starter", "__pycache__"}
SHORTEST_MESSAGE: Final = 5
"""A string with fewer words is a name or a key."""

BEFORE_WHAT: Final = (
    "of|by|with|in|from|to|for|is|are|tells?|shows?|says?|returns?|and|that|as|on|see|into|than"
    "|beside|gives?|makes?|has|have|needs?|knows?|about"
)
PHRASES: Final = {
    "`what` in place of a noun": rf"(?:\b(?:{BEFORE_WHAT})|,)\s+what\b|^\s*what\b(?![^.]*\?)",
    "those of, that of": r"\b(?:those|that) of\b",
    "those who, those in": r"\bthose (?:who|that|which|for|in|with|from)\b",
    "somebody, nobody, whoever": r"\b(?:some|no|every|any)body\b|\bwhoever\b",
    "is none, are no": r"\b(?:is|are|was|were) (?:none|no)\b",
    "told, tells of": r"\btold\b|\btells? of\b",
    "of which, by which": r"\b(?:of|by|in|under|from|with|on|for|to) which\b",
    "stands": r"\bstands?\b",
    "beside": r"\bbeside\b",
    "where there is none": r"\bwhere (?:it|there|they) (?:is|are|has|have) none\b|\bnone where\b",
    "once more, no more": r"\bonce more\b|\bno more\b(?! than)|\bas ever\b",
}
AT_THE_START: Final = r"\A\s*(?:how|which|who|where|whether|what)\b"
"""A docstring begins with its job, not with a question word."""
DIRECTIVE: Final = re.compile(r"#(!| (noqa|type|pyright|fmt))")
_PHRASES: Final = re.compile("|".join(PHRASES.values()), re.IGNORECASE | re.MULTILINE)
_AT_THE_START: Final = re.compile(AT_THE_START, re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Text:
    """A docstring, comment, message or paragraph, with its line."""

    path: Path
    line: int
    words: str
    is_docstring: bool = False

    @property
    def phrases(self) -> list[str]:
        """The odd phrases in the text, in their order."""
        hits = [match[0] for match in _PHRASES.finditer(self.words)]
        if self.is_docstring and not hits:
            hits += [match[0] for match in _AT_THE_START.finditer(self.words)]
        return [" ".join(hit.split()) for hit in hits]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--list", type=int, default=0, metavar="N")
    options = parser.parse_args()
    if options.paths:
        report([text for path in options.paths for text in texts_in(path)], options.list)
        return 0
    failed = False
    for names, ceiling in CEILINGS.items():
        texts = [text for name in names for text in texts_in(ROOT / name)]
        if rate(texts) > ceiling:
            failed = True
            print(f"{', '.join(names)}: more than {ceiling} odd phrases in 10,000 words")
            report(texts, options.list or 10)
    return 1 if failed else 0


def rate(texts: Iterable[Text]) -> float:
    """Return the phrases in 10,000 words."""
    counts = [(len(text.phrases), len(text.words.split())) for text in texts]
    return 10_000 * sum(hits for hits, _ in counts) / max(1, sum(words for _, words in counts))


def report(texts: list[Text], most: int) -> None:
    """Print the rate, and the texts with the most phrases for their length."""
    print(f"{rate(texts):.1f} in 10,000 words")
    odd = [(len(text.phrases) / len(text.words.split()), text) for text in texts if text.phrases]
    for _, text in sorted(odd, key=lambda item: -item[0])[:most]:
        path = text.path.relative_to(ROOT) if text.path.is_relative_to(ROOT) else text.path
        print(f"{path}:{text.line}: {', '.join(text.phrases)}")


def texts_in(path: Path) -> Iterator[Text]:
    """Yield the texts of a file, or of the Python and Markdown files in a folder."""
    if path.is_dir():
        for file in sorted([*path.rglob("*.py"), *path.rglob("*.md")]):
            if not SKIPPED & set(file.parts):
                yield from texts_in(file)
    elif path.suffix == ".py":
        yield from _python_texts(path)
    else:
        yield from _markdown_texts(path)


def _python_texts(path: Path) -> Iterator[Text]:
    source = path.read_text(encoding="utf-8")
    nodes = list(ast.walk(ast.parse(source)))
    docstrings = {id(string): string for node in nodes for string in _docstring(node)}
    for string in docstrings.values():
        yield Text(path, string.lineno, str(string.value), is_docstring=True)
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            is_message = len(node.value.split()) >= SHORTEST_MESSAGE
            if is_message and id(node) not in docstrings:
                yield Text(path, node.lineno, node.value)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and not DIRECTIVE.match(token.string):
            yield Text(path, token.start[0], token.string.lstrip("# "))


def _docstring(node: ast.AST) -> Iterator[ast.Constant]:
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        match node.body:
            case [ast.Expr(ast.Constant(str()) as string), *_]:
                yield string
            case _:
                pass


def _markdown_texts(path: Path) -> Iterator[Text]:
    """Yield paragraphs and the rows of tables, without code."""
    start, lines, in_code = 1, list[str](), False
    numbered = enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
    for number, line in [*numbered, (0, "")]:
        in_code ^= line.startswith("```")
        is_row = line.startswith("|") and not in_code
        if line.strip() and not (in_code or is_row or line.startswith(("    ", "```", "#"))):
            lines.append(line)
            continue
        if lines:
            yield Text(path, start, " ".join(lines))
        if is_row:
            yield Text(path, number, line)
        start, lines = number + 1, []


if __name__ == "__main__":
    sys.exit(main())
