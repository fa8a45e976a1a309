"""``python -m groundfault`` is the command line."""

from groundfault.cli.main import main

main()
