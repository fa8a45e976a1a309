"""One investigation from the first table to the last label: a folder whose steps hand over."""
