"""Answers in Markdown."""

from __future__ import annotations

from standards_mcp_memory.answers import BatchAnswer, DocumentAnswer, SearchAnswer

from .markdown import fenced, inline, no_collection, one_line


def left_out(odd: int) -> str:
    """Return the note on memories whose ids are no numbers, which other programs made."""
    return f"Memories left out, since their ids are no numbers: {odd}."


def without_words(collection: str) -> str:
    """Return the note on a collection in which only contents are searched."""
    return (
        f"Collection {one_line(collection)} was made by an earlier version or another program, so "
        "only the meaning of contents was searched. Run `standards-mcp memory reembed` for it to "
        "search titles, previews, tags and single words, too."
    )


def render_search(answer: SearchAnswer) -> str:
    """Return the previews as a list."""
    name = inline(answer["collection"])
    parts = [f"# Memories in {name}"]
    parts += [
        f"{rank}. **{inline(each['title']) or 'Untitled'}** "
        f"(id {each['id']}, score {each['score']:.3f})\n   {inline(each['preview'])}".rstrip()
        for rank, each in enumerate(answer["results"], 1)
    ]
    if "collections" in answer:
        parts.append(no_collection(answer["collection"], answer["collections"], inline))
    elif not answer["results"]:
        parts.append(f"There are no memories in {name}.")
    return "\n\n".join(parts)


def render_document(answer: DocumentAnswer, heading: str = "#") -> str:
    """Return a memory in full, its content in a fence."""
    tags = ", ".join(map(inline, answer["tags"]))
    about = f"id {answer['id']}, collection {inline(answer['collection'])}"
    parts = [
        f"{heading} {inline(answer['title']) or 'Untitled'}",
        f"{about}, tags: {tags}" if tags else about,
    ]
    if preview := inline(answer["preview"]):
        parts.append(f"> {preview}")
    return "\n\n".join([*parts, fenced(answer["content"])])


def render_batch(answer: BatchAnswer) -> str:
    """Return memories in full, and which were not found."""
    parts = [render_document(each, "##") for each in answer["documents"]]
    if answer["not_found"]:
        missing = (f"id {e['doc_id']} in {inline(e['collection'])}" for e in answer["not_found"])
        parts.append(f"Not found: {'; '.join(missing)}.")
    return "\n\n".join(parts)
