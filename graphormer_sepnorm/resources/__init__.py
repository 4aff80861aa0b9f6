"""Files of the package that are not code, each found by its name: the sample, salts, and weights with their cards."""
