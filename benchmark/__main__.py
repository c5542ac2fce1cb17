# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Runs every area and ends with one table: ``python -m benchmark [--only AREA ...] [--quick]``.

Each area runs in a process of its own with a time limit, so that what crashes or hangs becomes a row. A run puts the
rows of its cases into ``benchmark/results.json`` and writes ``benchmark/RESULTS.md`` from it; a quick one does not.
Exit code: 0, or 1 if a row missed its bar or could not be measured because of an error.
"""

import argparse
import importlib
import json
import os
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmark.area import AREAS, run_area
from benchmark.machine import describe, missing, stamp
from benchmark.page import RESULTS, summary, write_page


def written(results: dict[str, Any]) -> str:
    """Return results as JSON, a line for each row."""
    about = {name: value for name, value in results.items() if name != 'rows'}
    rows = ',\n'.join(json.dumps(row, ensure_ascii=False) for row in results['rows'])
    return f'{json.dumps(about, ensure_ascii=False)[:-1]}, "rows": [\n{rows}\n]}}\n'


def merged(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Return a run with what an earlier one has of cases that this one did not measure; areas in their order."""
    measured = {(row.area, row.case) for row in new['rows']}
    entries = [entry for entry in old['rows'] if (entry['area'], entry.get('case', '')) not in measured]
    entries += [row.as_dict() for row in new['rows']]
    entries.sort(key=lambda entry: AREAS.index(entry['area']) if entry['area'] in AREAS else len(AREAS))
    return {**new, 'rows': entries}


def long_cases(areas: Sequence[str]) -> list[str]:
    """Return the cases of areas that only a whole run measures."""
    modules = {area: importlib.import_module(f'benchmark.{area}') for area in areas if '.' not in area}
    return [f'{area}.{case.__name__}' for area, module in modules.items() for case in getattr(module, 'LONG', ())]


def main() -> int:
    parser = argparse.ArgumentParser(prog='python -m benchmark', description=__doc__.split('\n')[0])
    areas = f'{", ".join(AREAS)}; or one case of it, AREA.CASE'
    parser.add_argument('--only', nargs='+', metavar='AREA', help=areas)
    parser.add_argument('--all', action='store_true', help='long cases too, an hour and more: without, ten minutes')
    parser.add_argument('--quick', action='store_true', help='few repetitions, long cases left out')
    parser.add_argument('--cases', type=Path, metavar='FOLDER', help='recordings of real arms, a folder for each arm')
    parser.add_argument('--out', type=Path, help='where the results go; by default a full run writes its own file')
    options = parser.parse_args()
    if options.only is None:
        options.only = [area for area in AREAS if area != 'recordings' or options.cases is not None]
    if unknown := {name.partition('.')[0] for name in options.only} - set(AREAS):
        parser.error(f'no such area: {", ".join(sorted(unknown))}; there are {", ".join(AREAS)}')
    if options.cases is not None:
        os.environ['ROBOTID_CASES'] = str(options.cases.resolve())
    machine, begun = describe(), time.monotonic()
    print(machine, flush=True)
    for text in missing():
        print(f'missing: {text}', flush=True)
    for name in [] if options.all else long_cases(options.only):
        print(f'left out: {name} (--all)', flush=True)
    out = options.out or (None if options.quick else RESULTS)
    rows, when = [], stamp()
    for area in options.only:
        rows += [replace(row, measured=when) for row in run_area(area, options.quick, options.all)]
        results = {'machine': machine, 'quick': options.quick, 'seconds': time.monotonic() - begun, 'rows': rows}
        if out is not None:  # after every area: what ends the run then costs one area
            results = merged(json.loads(out.read_text(encoding='utf-8')) if out.is_file() else {'rows': []}, results)
            partial = out.with_suffix('.partial')
            partial.write_text(written(results), encoding='utf-8')
            partial.replace(out)
    if out == RESULTS:
        write_page(results)
    print(f'\n{summary(rows)}; {(time.monotonic() - begun) / 60.0:.1f} minutes')
    return int(any(row.state in ('missed', 'failed') for row in rows))


if __name__ == '__main__':
    raise SystemExit(main())
