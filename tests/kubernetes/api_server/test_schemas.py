"""The shapes of built-in kinds are those that the real API server publishes."""

import json

from tests.kubernetes.api_server.api_under_test import ApiUnderTest
from tools import generate_api_schemas

from partita.simulator.api_server import shapes


def test_built_in_shapes_are_the_published_ones(real_api: ApiUnderTest) -> None:
    """``tools/generate_api_schemas.py`` writes them anew for another version."""
    paths = generate_api_schemas.DOCUMENTS
    documents = [real_api.get(f"/openapi/v3/{path}").body for path in paths]
    expected = json.dumps(generate_api_schemas.extracted(documents), sort_keys=True)
    assert expected == json.dumps(shapes.built_in_definitions(), sort_keys=True)
