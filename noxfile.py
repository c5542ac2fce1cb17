# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The same tests on the oldest and on the newest of what is supported: ``make test-matrix``.

Each session has an environment of its own below ``.venv-matrix`` and needs its Python on the PATH; a session whose
Python is missing is left out, and says so. ``make test`` is the fifth: the versions of constraints.txt, ROS 2 Kilted.
"""

import nox

nox.options.envdir = '.venv-matrix'
nox.options.default_venv_backend = 'uv|venv'
nox.options.stop_on_first_error = False

TESTS = ('pytest>=7,<9', 'hypothesis>=6.80')
THREADS = {'OMP_NUM_THREADS': '1', 'OPENBLAS_NUM_THREADS': '1'}


def _test(session: nox.Session, *requirements: str) -> None:
    session.install('--editable', *requirements)
    versions = "import numpy, scipy; print('numpy', numpy.__version__, 'scipy', scipy.__version__)"
    session.run('python', '-c', versions)
    session.run('python', '-m', 'pytest', *session.posargs, env=THREADS)


@nox.session(python='3.10')
def jammy(session: nox.Session) -> None:
    """Ubuntu 22.04's numpy and scipy, on Jazzy's wheels; no wheel of Pinocchio takes this numpy, so tests skip it."""
    _test(session, '.[ros,bag,web,sim]', *TESTS, '--constraint', '.ci/constraints-jammy.txt')


@nox.session(python='3.12')
def noble(session: nox.Session) -> None:
    """Ubuntu 24.04's numpy and scipy, on ROS 2 Jazzy."""
    _test(session, '.[ros,bag,web,sim,test]', '--constraint', '.ci/constraints-noble.txt')


@nox.session(python='3.13')
def newest(session: nox.Session) -> None:
    """Whatever is newest today, on ROS 2 Kilted."""
    _test(session, '.[ros,bag,web,sim,test]')


@nox.session(python='3.13')
def core(session: nox.Session) -> None:
    """The numerical core alone: no ROS, no MuJoCo, no plotly, no mcap, no Pinocchio."""
    _test(session, '.', *TESTS)
