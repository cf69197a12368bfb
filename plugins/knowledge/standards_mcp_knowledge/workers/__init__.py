"""Worker processes for FAISS and text encoders.

`tasks` has the functions that run in them, on the datasets and encoders of `opened`; `process` is
their main loop and the protocol; `worker` is one process as the host sees it, `pool` all of them.
"""
