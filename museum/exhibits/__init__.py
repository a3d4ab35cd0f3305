"""One file for each package: functions of a dataset as a user would write them, and `exhibits()` with the facts."""
