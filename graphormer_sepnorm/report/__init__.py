"""The report on a table model: measurements, text and layout."""
