"""Users' tables of molecules: reading files and labels, detecting the task, and splitting."""
