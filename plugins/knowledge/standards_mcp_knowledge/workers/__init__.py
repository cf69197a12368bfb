"""Worker processes for FAISS and text encoders.

`tasks` has the functions that workers run, `open_resources` the datasets and encoders that a worker
keeps open, and `process` one process with its protocol. `pool` keeps the processes running and
assigns calls to them.
"""
