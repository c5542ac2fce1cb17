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
import time
from pathlib import Path

from benchmark.area import run_area
from benchmark.machine import describe
from benchmark.page import RESULTS, summary, write_page

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


def main() -> int:
    parser = argparse.ArgumentParser(prog='python -m benchmark', description=__doc__.split('\n')[0])
    areas = f'{", ".join(AREAS)}; or one case of it, AREA.CASE'
    parser.add_argument('--only', nargs='+', default=AREAS, metavar='AREA', help=areas)
    parser.add_argument('--quick', action='store_true', help='few repetitions, long cases left out')
    parser.add_argument('--cases', type=Path, metavar='FOLDER', help='recordings of real arms, a folder for each arm')
    parser.add_argument('--out', type=Path, help='where the results go; by default a full run writes its own file')
    options = parser.parse_args()
    if unknown := {name.partition('.')[0] for name in options.only} - set(AREAS):
        parser.error(f'no such area: {", ".join(sorted(unknown))}; there are {", ".join(AREAS)}')
    if options.cases is not None:
        os.environ['ROBOTID_CASES'] = str(options.cases.resolve())
    machine, begun = describe(), time.monotonic()
    print(machine, flush=True)
    full = not options.quick and tuple(options.only) == AREAS
    out = options.out or (RESULTS if full else None)
    rows = []
    for area in options.only:
        rows += run_area(area, options.quick)
        entries = [row.as_dict() for row in rows]
        results = {'machine': machine, 'quick': options.quick, 'seconds': time.monotonic() - begun, 'rows': entries}
        if out is not None:  # after every area: what ends the run then costs one area
            partial = out.with_suffix('.partial')
            partial.write_text(json.dumps(results, indent=1, ensure_ascii=False) + '\n', encoding='utf-8')
    if out is not None:
        partial.replace(out)
    if options.out is None and full:
        write_page(results)
    print(f'\n{summary(rows)}; {results["seconds"] / 60.0:.1f} minutes')
    return int(any(row.state in ('missed', 'failed') for row in rows))


if __name__ == '__main__':
    raise SystemExit(main())
