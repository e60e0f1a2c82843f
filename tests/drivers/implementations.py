"""Every implementation of the driver; the facts of this folder are asked of each."""

from collections.abc import Mapping

from tests.drivers import simulated
from tests.drivers.driver_under_test import Implementation
from tests.nvml import under_test

IMPLEMENTATIONS: Mapping[str, Implementation] = {
    "nvml": under_test.start,
    "simulated": simulated.start,
}
