# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Docstrings as ament checks them, in numpydoc's convention."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Of special methods nothing need be said; the first sentence may take two lines, and be a noun where it names a value.
ALLOWED = ['D105', 'D205', 'D400', 'D401']


@pytest.mark.pep257
@pytest.mark.linter
def test_pep257() -> None:
    main = pytest.importorskip('ament_pep257.main', reason='needs ament_pep257, which comes with ROS 2')
    code = main.main(argv=['--convention', 'numpy', '--add-ignore', *ALLOWED, '--', str(ROOT / 'robotid_ros')])
    assert code == 0
