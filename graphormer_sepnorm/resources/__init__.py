"""What is shipped beside code: the embedded sample, and weights with their cards; a file is found by its name."""
