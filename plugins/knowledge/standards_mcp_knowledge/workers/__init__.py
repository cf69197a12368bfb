"""Worker processes for FAISS and text encoders.

`tasks` has the functions that run in them, on the datasets and encoders of `opened`; `process` is
one process, with its protocol; `pool` keeps the processes running and gives them their calls.
"""
