"""Judges of research: Janus with other decoys; no audit takes one unless you name it."""
