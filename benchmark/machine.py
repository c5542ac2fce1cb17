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
import subprocess
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

PACKAGES = ('numpy', 'scipy', 'mujoco', 'ros-rclpy')


def describe() -> dict[str, Any]:
    """Return processor, memory, system, versions, threads, load, date and commit."""
    blas = np.show_config(mode='dicts')['Build Dependencies']['blas']
    return {
        'cpu': _field('/proc/cpuinfo', 'model name') or platform.processor() or platform.machine(),
        'cores': len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else os.cpu_count(),
        'memory': _memory(),
        'system': _system(),
        'python': platform.python_version(),
        'packages': {name: version for name in PACKAGES if (version := _version(name))},
        'blas': f'{blas["name"]} {blas["version"]}',
        'threads': int(os.environ.get('OMP_NUM_THREADS', '0')),
        'load_at_start': os.getloadavg()[0],
        'date': datetime.now(timezone.utc).strftime('%Y-%m-%d %H:%M UTC'),
        'commit': _commit(),
    }


def _field(path: str, name: str) -> str:
    try:
        lines = Path(path).read_text(encoding='utf-8').splitlines()
    except OSError:
        return ''
    return next((line.partition(':')[2].strip() for line in lines if line.startswith(name)), '')


def _memory() -> str:
    words = _field('/proc/meminfo', 'MemTotal').split()
    return f'{int(words[0]) / 2**20:.0f} GiB' if words else 'unknown'


def _system() -> str:
    try:
        name = platform.freedesktop_os_release()['PRETTY_NAME']
    except OSError:
        name = platform.system()
    return f'{name}, {platform.system()} {platform.release()}'


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ''


def _commit() -> str:
    def git(*arguments: str) -> str:
        done = subprocess.run(['git', *arguments], cwd=Path(__file__).parent, capture_output=True, text=True)
        return done.stdout.strip() if done.returncode == 0 else ''

    try:
        name = git('rev-parse', '--short', 'HEAD')
        # What a run itself writes is no change of the code.
        changed = git('status', '--porcelain', '--', 'robotid_ros', '*.py')
    except OSError:
        return 'unknown'
    return f'{name}{" and changes" if changed else ""}' if name else 'unknown'
