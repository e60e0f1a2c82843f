"""The file by which kubectl and other clients find the simulated API server."""

from pathlib import Path

import yaml

__all__ = ["text", "write"]

_NAME = "partita"


def text(address: str) -> str:
    """Return a kubeconfig for a server at this address, such as ``http://127.0.0.1:8001``."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": _NAME, "cluster": {"server": address}}],
        "users": [{"name": _NAME, "user": {}}],
        "contexts": [{"name": _NAME, "context": {"cluster": _NAME, "user": _NAME}}],
        "current-context": _NAME,
    }
    return yaml.safe_dump(content, sort_keys=False)


def write(path: Path, address: str) -> None:
    """Write it, readable by its owner only, as clients expect."""
    path.touch(mode=0o600)
    path.write_text(text(address), encoding="utf-8")
