# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Every code block of the documentation that can run, runs; those that cannot say why."""

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from robotid_ros.cli import main
from robotid_ros.excitation import optimizer
from robotid_ros.model import RobotConfig
from robotid_ros.model.dh_table import read_dh_file

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / 'README.md', *(ROOT / 'docs').glob('*.md')])
FENCE = re.compile(r'^```(?P<info>[^\n`]*)\n(?P<code>.*?)^```\s*$', re.MULTILINE | re.DOTALL)
PLAIN = {'', 'text', 'none', '{eval-rst}', '{toctree}', '{math}', 'xml', 'c', 'ini', 'cpp'}


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its tag, its text and where it begins."""

    language: str
    tag: str
    code: str
    line: int

    @property
    def runs(self) -> bool:
        return self.tag == 'run' or (self.language == 'python' and not self.tag)


def _blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding='utf-8')
    found = []
    for match in FENCE.finditer(text):
        language, _, tag = match['info'].strip().partition(' ')
        found.append(Block(language, tag.strip(), match['code'], text[: match.start()].count('\n') + 1))
    return found


def _name(page: Path) -> str:
    return page.name


@pytest.mark.parametrize('page', PAGES, ids=_name)
def test_blocks_run_or_say_why_not(page: Path) -> None:
    for block in _blocks(page):
        where = f'{page.name}:{block.line}'
        if block.language in ('python', 'bash', 'console'):
            told = re.fullmatch(r'not-run: \S.{7,}', block.tag)
            assert block.runs or told, f'{where}: tag it "run" or "not-run: <reason>"'
        elif block.language == 'yaml':
            assert block.tag in ('robot-config', 'dh-table', 'example'), f'{where}: unknown tag {block.tag!r}'
        else:
            directive = block.language.startswith('{')
            assert directive or block.language in PLAIN, f'{where}: language {block.language!r}'


def _run_line(line: str) -> tuple[int, str]:
    """Run a line of a shell and return its exit code and output; commands of this package run in this process."""
    words = shlex.split(line, comments=True)
    if words[0] != 'robotid' or set('|<>&;$`*') & set(''.join(words)):
        done = subprocess.run(['bash', '-euc', line], capture_output=True, text=True, timeout=300)
        return done.returncode, done.stdout + done.stderr
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = main(words[1:])
    return code, said.getvalue()


@pytest.fixture
def _short_designs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Search once and not long: that designs are good is for the tests of excitation."""
    whole = optimizer.minimise

    def short(problem: optimizer.ExcitationProblem, *rest: Any) -> Any:
        problem.config = replace(problem.config, starts=1, iterations=40)
        return whole(problem, *rest)

    monkeypatch.setattr(optimizer, 'minimise', short)


@pytest.mark.slow
@pytest.mark.usefixtures('_short_designs')
@pytest.mark.parametrize('page', [page for page in PAGES if any(b.runs for b in _blocks(page))], ids=_name)
def test_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One page is one session: its blocks run in order, in one folder, Python blocks in one namespace."""
    if any(b.runs and 'simulation' in b.code for b in _blocks(page)):
        pytest.importorskip('mujoco', reason='the sim extra is not installed')
    if any(b.runs and 'report' in b.code for b in _blocks(page)):
        pytest.importorskip('plotly', reason='the plot extra is not installed')
        pytest.importorskip('trimesh', reason='the plot extra is not installed')
    monkeypatch.chdir(ROOT if page.name == 'README.md' else tmp_path)  # the README speaks from the repository
    monkeypatch.setenv('PATH', f'{Path(sys.executable).parent}{os.pathsep}{os.environ["PATH"]}')
    monkeypatch.setenv('OMP_NUM_THREADS', '1')  # small matrices: threads only wait for each other
    monkeypatch.setenv('OPENBLAS_NUM_THREADS', '1')
    monkeypatch.setattr(warnings, 'showwarning', warnings.showwarning)  # which a command sets
    namespace: dict[str, object] = {'__name__': 'documentation'}
    for block in _blocks(page):
        if not block.runs:
            continue
        if block.language == 'python':
            code = '\n' * block.line + block.code  # tracebacks then name the line of the page
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(code, str(page), 'exec'), namespace)
        else:
            for line in filter(str.strip, block.code.replace('\\\n', ' ').splitlines()):
                code, said = _run_line(line)
                assert code == 0, f'{page.name}:{block.line}: {line}: {said[-1600:]}'


@pytest.mark.parametrize('page', PAGES, ids=_name)
def test_yaml_examples_are_accepted(page: Path, tmp_path: Path) -> None:
    for block in _blocks(page):
        if block.language != 'yaml':
            continue
        path = tmp_path / f'example_{block.line}.yaml'
        path.write_text(block.code, encoding='utf-8')
        if block.tag == 'robot-config':
            assert RobotConfig.from_yaml(path).joints
        elif block.tag == 'dh-table':
            assert read_dh_file(path).robot_model().n
        else:
            assert yaml.safe_load(block.code)
