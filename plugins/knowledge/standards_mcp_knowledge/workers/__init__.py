"""Processes that FAISS and text encoders run in.

`tasks` is what runs in them, on what `opened` and `encoding` keep open; `process` is their loop;
`worker` is one of them as the host sees it, and `pool` all of them.
"""
