"""What was left in another cluster: rules, evidence, plan, then act."""
