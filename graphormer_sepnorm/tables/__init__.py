"""Tables of molecules that users bring: reading files, labels, the task they ask for, and splits."""
