"""The Kubernetes manifests: CRDs from the readers' tables, and what the agent runs as. Pure."""
