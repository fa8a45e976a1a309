"""groundfault: say where a model fails, and on what grounds."""
