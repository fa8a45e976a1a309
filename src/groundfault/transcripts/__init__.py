"""What agents did, step by step: the table of steps, behaviours, and what they go with."""
