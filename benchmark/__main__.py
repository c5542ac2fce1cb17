# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Runs every area and ends with one table: ``python -m benchmark [--only AREA ...] [--quick]``.

Each area runs in a process of its own with a time limit, so that what crashes or hangs becomes a row. A full run
writes ``benchmark/results.json`` and the table of ``docs/benchmarks.md``. Exit code: 0, or 1 if a row missed its bar
or could not be measured because of an error.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmark.machine import describe
from benchmark.manual import write_table
from benchmark.row import Row
from benchmark.table import text

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / 'results.json'
AREAS = (
    'recordings',
    'loop',
    'dynamics',
    'excitation',
    'recorder',
    'identification',
    'imperfect_arm',
    'calibration',
    'free_floating',
    'simulation',
)
PATIENCE = 900.0  # seconds after which an area is given up: some ten times what it takes


def run_area(area: str, quick: bool, limit: float = PATIENCE) -> list[Row]:
    """Run one area in its own process and return its rows."""
    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder) / 'rows.jsonl'
        command = [sys.executable, '-m', f'benchmark.{area}', '--rows', str(found), *(['--quick'] if quick else [])]
        process = subprocess.Popen(command, cwd=ROOT, start_new_session=True)
        failure = ''
        try:
            if process.wait(timeout=limit) not in (0, 1):
                failure = f'ended with exit code {process.returncode}'
        except subprocess.TimeoutExpired:
            failure = f'did not end within {limit:g} s'
        finally:  # nodes that it started belong to its session
            _end(process)
        lines = found.read_text(encoding='utf-8').splitlines() if found.is_file() else []
    rows = [Row.of(json.loads(line)) for line in lines]
    if failure or not rows:
        rows.append(Row(area=area, what='the rest of this area', failure=failure or 'gave no rows'))
    return rows


def _end(process: 'subprocess.Popen[bytes]') -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def write_results(path: Path, results: dict[str, Any]) -> None:
    """Write a results file as a whole or not at all."""
    partial = path.with_suffix('.partial')
    partial.write_text(json.dumps(results, indent=1, ensure_ascii=False) + '\n', encoding='utf-8')
    partial.replace(path)


def main() -> int:
    parser = argparse.ArgumentParser(prog='python -m benchmark', description=__doc__.split('\n')[0])
    parser.add_argument('--only', nargs='+', choices=AREAS, default=AREAS, metavar='AREA', help=', '.join(AREAS))
    parser.add_argument('--quick', action='store_true', help='few repetitions, long cases left out')
    parser.add_argument('--cases', type=Path, metavar='FOLDER', help='recordings of real arms, a folder for each arm')
    parser.add_argument('--out', type=Path, help='where the results go; by default a full run writes its own file')
    options = parser.parse_args()
    if options.cases is not None:
        os.environ['ROBOTID_CASES'] = str(options.cases.resolve())
    machine, begun = describe(), time.monotonic()
    print('\n'.join(f'{name}: {value}' for name, value in machine.items()), flush=True)
    rows: list[Row] = []
    for area in options.only:
        print(f'\n== {area}', flush=True)
        rows += run_area(area, options.quick)
    results = {
        'machine': machine,
        'quick': options.quick,
        'seconds': time.monotonic() - begun,
        'rows': [row.as_dict() for row in rows],
    }
    full = not options.quick and len(options.only) == len(AREAS)
    if options.out is not None or full:
        write_results(options.out or RESULTS, results)
    if options.out is None and full:
        write_table(results)
    print(f'\n{text(rows)}\n{results["seconds"] / 60.0:.1f} minutes')
    return int(any(row.state in ('missed', 'failed') for row in rows))


if __name__ == '__main__':
    raise SystemExit(main())
