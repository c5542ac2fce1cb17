# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""What the figures were measured on."""

import os
import platform
import shutil
import subprocess
from datetime import datetime, timezone
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from benchmark.anchor import DEFAULT

PACKAGES = ('numpy', 'scipy', 'mujoco', 'ros-rclpy')


def describe() -> str:
    """Return date, commit, processor, memory, system, versions, threads and load in one sentence."""
    blas = np.show_config(mode='dicts')['Build Dependencies']['blas']
    installed = {part.name: part.version for part in metadata.distributions()}
    return ', '.join(
        [
            f'{datetime.now(timezone.utc):%Y-%m-%d %H:%M UTC}',
            f'commit `{_commit()}`: {_processor()}',
            f'{os.cpu_count()} cores',
            f'{os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30:.0f} GiB of memory',
            platform.platform(),
            f'Python {platform.python_version()}',
            *(f'{name} {installed[name]}' for name in PACKAGES if name in installed),
            f'{blas["name"]} {blas["version"]}',
            f'{os.environ.get("OMP_NUM_THREADS")} thread; load at the start {os.getloadavg()[0]:.1f}',
        ]
    )


def stamp() -> str:
    """Return date, commit and load."""
    return f'{datetime.now(timezone.utc):%Y-%m-%d %H:%M UTC}, commit `{_commit()}`, load {os.getloadavg()[0]:.1f}'


def missing() -> list[str]:
    """Return what is not here and which rows will not be measured for it."""
    anchors = Path(os.environ.get('ROBOTID_ANCHORS', DEFAULT))
    eigen = any(Path(path).is_dir() for path in ('/usr/include/eigen3', '/usr/local/include/eigen3'))
    needs = (
        (anchors.is_file(), f'the environment of the anchors ({anchors.name}): everything beside the code of others'),
        (shutil.which('gcc'), 'gcc: generated C'),
        (shutil.which('g++') and eigen, 'g++ and the headers of Eigen (libeigen3-dev): Pinocchio in C++'),
        (find_spec('pinocchio'), 'pin: one sample from Python'),
        (find_spec('cyipopt'), 'cyipopt-wheels: excitation beside IPOPT'),
        (find_spec('rclpy'), 'ROS 2: the loop, the recorder and the simulated arm'),
        (os.environ.get('ROBOTID_CASES'), 'recordings of real arms (--cases FOLDER)'),
    )
    return [text for there, text in needs if not there]


def _processor() -> str:
    try:
        lines = Path('/proc/cpuinfo').read_text(encoding='utf-8').splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(':')[2].strip() for line in lines if line.startswith('model name')), 'unknown')


def _commit() -> str:
    def git(*arguments: str) -> str:
        done = subprocess.run(['git', *arguments], cwd=Path(__file__).parent, capture_output=True, text=True)
        return done.stdout.strip()

    name = git('rev-parse', '--short', 'HEAD') or 'unknown'
    # What a run itself writes is no change of the code.
    return f'{name} and changes' if git('status', '--porcelain', '--', '../robotid_ros', '*.py') else name
