"""Files of the package that are not code: the sample, and weights with their cards; each is found by its name."""
