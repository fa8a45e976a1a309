"""Commands of `groundfault lab`."""
