"""SeiNode and SeiNodeDeployment: plans in status that are created once, and persisted before their execution."""
