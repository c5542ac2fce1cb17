# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The documentation builds without a warning."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_sphinx_builds_without_warnings(tmp_path: Path) -> None:
    for package in ('sphinx', 'myst_parser', 'numpydoc', 'latex2mathml', 'rclpy', 'mujoco'):
        pytest.importorskip(package, reason='needs the docs, ros and sim extras')
    source = tmp_path / 'docs'  # API pages are generated beside the sources
    shutil.copytree(ROOT / 'docs', source, ignore=shutil.ignore_patterns('_api', '_build', '__pycache__'))
    shutil.copy(ROOT / 'package.xml', tmp_path)
    (tmp_path / 'benchmark').mkdir()
    shutil.copy(ROOT / 'benchmark' / 'RESULTS.md', tmp_path / 'benchmark')
    out = tmp_path / 'html'
    # A plain theme: the navigation that furo writes into every page takes two thirds of a build.
    options = ['-b', 'html', '-W', '--keep-going', '-q', '-D', 'html_theme=basic']
    command = [sys.executable, '-m', 'sphinx', *options, str(source), str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-3000:]
    for page in ROOT.glob('docs/*.md'):
        assert (out / f'{page.stem}.html').is_file()
    assert 'tracking_tolerance' in (out / 'ros.html').read_text(encoding='utf-8')
    assert '--train-fraction' in (out / 'commands.html').read_text(encoding='utf-8')
