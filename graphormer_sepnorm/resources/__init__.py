"""Files of the package that are not code: the sample, salts, and weights with their cards; each is found by its name."""
