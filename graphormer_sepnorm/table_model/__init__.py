"""The model of a user's table: members, stacked out of fold, as one object that fits, saves, loads and predicts."""
