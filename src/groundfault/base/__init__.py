"""Disk, hashes, processes, seeded streams and threads: no module here knows about evaluations."""
