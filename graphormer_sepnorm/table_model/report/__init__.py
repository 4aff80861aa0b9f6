"""The report on a table model: what is measured, what is said of it, and how it is laid out."""
