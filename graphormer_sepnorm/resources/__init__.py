"""What is shipped beside code: the embedded sample, and weights, each with its card; a file is found by its name."""
