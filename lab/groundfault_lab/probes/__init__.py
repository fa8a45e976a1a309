"""What reviewed runs are used for: endpoints, comparisons, candidates, releases."""
