# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""One thread for linear algebra, unless the user says otherwise.

The matrices here are small: handing a 58 x 58 eigenvalue problem to several threads costs more than
it saves, and much more where other processes need the cores too, as the nodes do.
"""

import os

VARIABLES = ('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS', 'MKL_NUM_THREADS')


def use_one_thread() -> None:
    """Ask numpy's libraries for one thread; must be called before numpy is imported."""
    for variable in VARIABLES:
        os.environ.setdefault(variable, '1')
