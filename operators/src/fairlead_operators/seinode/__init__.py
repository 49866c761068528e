"""SeiNode and SeiNodeDeployment: plans in status, made once, persisted before they are carried out."""
