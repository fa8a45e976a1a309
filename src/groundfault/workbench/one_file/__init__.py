"""One file that shows a report with its examples in any browser, without a server or a network."""
