"""The command line: one file a command group; every command calls one public function."""
