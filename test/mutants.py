# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Deliberate faults, each put into a copy of the package: does a test notice? ``make mutants``.

``test/mutants.yaml`` is the table. Each fault is one line of one file, what it becomes, and the tests that are to
notice. First all these tests run on the package as it is: they must pass. Then each fault is made by itself, and its
tests run until one fails. A fault that no test notices is *alive*; where that is known, ``alive`` says why. A line that
is not in its file exactly once is an error: the table is out of date.
"""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

import yaml

ROOT = Path(__file__).parents[1]
TABLE = Path(__file__).with_name('mutants.yaml')
COPIED = ('robotid_ros', 'test', 'config', 'launch', 'docs', 'benchmark', 'resource')
LONGEST = 900  # s; a fault that makes a test hang is noticed too
NO_TESTS = (4, 5)  # exit codes of pytest: nothing was collected


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One line of the table."""

    name: str
    file: str  # below robotid_ros
    line: str  # without the white space around it
    becomes: str
    tests: tuple[str, ...]  # below test/, with an optional '-k expression'
    alive: str = ''  # why no test notices, where that is known

    def text(self, source: str) -> str:
        """Return the source with the fault in it."""
        lines = source.split('\n')
        places = [k for k, line in enumerate(lines) if line.strip() == self.line]
        if len(places) != 1:
            raise ValueError(f'{self.name}: {self.file} has the line {self.line!r} {len(places)} times, expected once')
        indent = lines[places[0]][: -len(lines[places[0]].lstrip())]
        lines[places[0]] = indent + self.becomes
        return '\n'.join(lines)


def read_table(only: str = '', path: Path = TABLE) -> list[Fault]:
    """Return the faults whose name or file contains a text; refuse those that do not fit the package."""
    faults, problems = [], []
    for number, entry in enumerate(yaml.safe_load(path.read_text(encoding='utf-8')), 1):
        tests = entry.pop('tests')
        fault = Fault(tests=tuple([tests] if isinstance(tests, str) else tests), **entry)
        if only not in fault.name and only not in fault.file:
            continue
        source = (ROOT / 'robotid_ros' / fault.file).read_text(encoding='utf-8')
        try:
            changed = fault.text(source)
            if fault.file.endswith('.py'):
                compile(changed, fault.file, 'exec')
        except ValueError as problem:
            problems.append(str(problem))
        for test in fault.tests:
            if not (ROOT / 'test' / test.split('::')[0].split(' -k ')[0]).is_file():
                raise ValueError(f'{fault.name}: entry {number} names the test {test}, which is no file')
        faults.append(fault)
    if problems:
        raise ValueError('\n'.join(problems))
    names = Counter(fault.name for fault in faults)
    if max(names.values(), default=0) > 1:
        raise ValueError(f'two faults are called {names.most_common(1)[0][0]!r}')
    return faults


def run_tests(copy: Path, test: str) -> tuple[int, str]:
    """Return pytest's exit code and what it wrote, for one entry of ``tests`` in a copy of the tree."""
    target, _, expression = test.partition(' -k ')
    chosen = ['-k', expression.strip('"')] if expression else []
    environment = {
        **os.environ,
        'PYTHONPATH': str(copy),
        'PYTHONDONTWRITEBYTECODE': '1',
        'XDG_CACHE_HOME': str(copy / 'cache'),
        'OMP_NUM_THREADS': '1',
        'OPENBLAS_NUM_THREADS': '1',
    }
    with (copy / 'pytest.log').open('w+b') as log:
        process = subprocess.Popen(
            [sys.executable, '-m', 'pytest', '-x', '-q', '-p', 'no:cacheprovider', f'test/{target}', *chosen],
            cwd=copy, env=environment, stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        try:
            code = process.wait(LONGEST)
        except subprocess.TimeoutExpired:
            code = -1
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        log.seek(0)
        return code, log.read().decode('utf-8', 'replace')


def skipped_reason(code: int, output: str) -> str:
    """Return why all chosen tests were skipped; nothing where one ran, or there are none."""
    if code not in (0, *NO_TESTS) or re.search(r'\b\d+ (passed|failed|error)', output):
        return ''
    reasons = [line for line in output.splitlines() if line.startswith('SKIPPED')]
    return reasons[0][:150] if reasons else ''


def first_failure(output: str) -> str:
    """Return what pytest says of the first failure."""
    lines = [line for line in output.splitlines() if line.startswith(('FAILED', 'ERROR'))]
    return lines[0][:150] if lines else output.strip()[-150:]


class Copies:
    """Copies of the tree, one for each process at a time."""

    def __init__(self, folder: Path, count: int) -> None:
        self._free: SimpleQueue[Path] = SimpleQueue()
        for k in range(count):
            copy = folder / str(k)
            for name in COPIED:
                skip = shutil.ignore_patterns('__pycache__', '_build')
                shutil.copytree(ROOT / name, copy / name, ignore=skip)
            for path in ROOT.iterdir():
                if path.is_file():
                    shutil.copy(path, copy)
            self._free.put(copy)

    @contextmanager
    def one(self) -> Iterator[Path]:
        """Lend a copy."""
        copy = self._free.get()
        try:
            yield copy
        finally:
            self._free.put(copy)


def try_fault(fault: Fault, copies: Copies) -> tuple[str, str]:
    """Return 'killed', 'alive' or, where what its tests need is not installed, 'untried', and by what."""
    skipped = ''
    with copies.one() as copy:
        path = copy / 'robotid_ros' / fault.file
        source = path.read_text(encoding='utf-8')
        path.write_text(fault.text(source), encoding='utf-8')
        try:
            for test in fault.tests:
                code, output = run_tests(copy, test)
                if reason := skipped_reason(code, output):
                    skipped = reason
                    continue
                if code in NO_TESTS:
                    raise ValueError(f'{fault.name}: test/{test}: no such test: {first_failure(output)}')
                if code:
                    return 'killed', 'a test that hung' if code < 0 else first_failure(output)
        finally:
            path.write_text(source, encoding='utf-8')
    return ('untried', skipped) if skipped else ('alive', fault.alive)


def require_passing(faults: list[Fault], copies: Copies, pool: ThreadPoolExecutor) -> None:
    """Refuse to judge by tests that fail without any fault."""

    def run(test: str) -> None:
        with copies.one() as copy:
            code, output = run_tests(copy, test)
        if skipped_reason(code, output):
            return
        if code in NO_TESTS:
            raise ValueError(f'test/{test}: no such test: {first_failure(output)}')
        if code:
            raise ValueError(f'test/{test} fails without any fault: {first_failure(output)}')

    list(pool.map(run, sorted({test for fault in faults for test in fault.tests})))


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--only', default='', help='faults whose name or file contains this')
    parser.add_argument('--jobs', type=int, default=2, help='faults at the same time')
    parser.add_argument('--list', action='store_true', help='check the table and print it')
    parser.add_argument('--trust', action='store_true', help='do not run the tests without a fault first')
    options = parser.parse_args()
    try:
        faults = read_table(options.only)
        if options.list:
            for fault in faults:
                print(f'{fault.name:50} {fault.file}')
            print(f'{len(faults)} faults')
            return 0
        states: Counter[str] = Counter()
        printing = threading.Lock()
        with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
            copies = Copies(Path(folder), options.jobs)
            if not options.trust:
                require_passing(faults, copies, pool)

            def judge(fault: Fault) -> None:
                begin = time.monotonic()
                state, detail = try_fault(fault, copies)
                if state == 'alive' and fault.alive:
                    state = 'explained'
                with printing:
                    states[state] += 1
                    print(f'{state:9} {time.monotonic() - begin:5.0f} s  {fault.name}: {detail}', flush=True)

            list(pool.map(judge, faults))
    except ValueError as refusal:
        print(refusal, file=sys.stderr)
        return 2
    tried = len(faults) - states['untried']
    share = 100.0 * states['killed'] / max(tried, 1)
    print(f'{states["killed"]} of {tried} killed ({share:.0f} %), {states["explained"]} alive and explained, '
          f'{states["alive"]} alive; {states["untried"]} untried, for want of what their tests need')  # fmt: skip
    return int(states['alive'] > 0 or (tried > 0 and share < 95.0))


if __name__ == '__main__':
    sys.exit(main())
