# SPDX-License-Identifier: GPL-2.0-or-later
"""Fixtures of the end-to-end tests. Without root every test here is skipped, loudly."""
import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from culvert_e2e.lab import Lab  # noqa: E402


def pytest_collection_modifyitems(config, items):
    if os.geteuid() != 0:
        skip = pytest.mark.skip(reason="network namespaces need root")
        for item in items:
            item.add_marker(skip)


@pytest.fixture
def lab(tmp_path):
    with Lab(tmp_path) as made:
        yield made
