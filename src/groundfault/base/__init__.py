"""Disk, hashes, processes, seeded streams and threads: nothing here knows a noun of evaluation."""
