"""One batch audit: from evidence and candidates to a report that verifies itself."""
