"""What makes a verdict worthless or a false alarm, whatever the claim: dependent runs, ignored inputs, no noise."""
