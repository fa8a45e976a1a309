"""Task banks, grammars and the prompts that they make."""
