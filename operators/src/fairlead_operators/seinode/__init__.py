"""SeiNode and SeiNodeDeployment: an operator that writes a plan into the status before it executes the plan."""
