# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Figures of this package beside those of others: ``python -m benchmark``.

Every area is a module with ``CASES``, functions that measure something and return rows. Anchors are measured in the
same run where they can be: the code of others runs in an environment and a process of its own (``benchmark.anchor``).
Arms and nodes come from the helpers of the tests, which are imported by their own names.
"""

import os
import sys
from pathlib import Path

# One thread on both sides of every comparison; set before anything loads a BLAS.
os.environ.setdefault('OMP_NUM_THREADS', '1')
os.environ.setdefault('OPENBLAS_NUM_THREADS', '1')
sys.path.append(str(Path(__file__).parents[1] / 'test'))
