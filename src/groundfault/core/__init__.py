"""The frozen nouns that two or more ways of working share."""
