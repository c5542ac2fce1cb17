# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Runs an area in a process of its own, case by case, so that one that fails leaves the others standing."""

import importlib
import json
import multiprocessing
import os
import signal
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from benchmark.row import Row, figures

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
    'scale',
)
PATIENCE = 3600.0  # seconds after which an area is given up; recordings of many arms take a quarter of that
Case = Callable[[bool], Iterator[Row]]  # takes whether to be quick: few repetitions, long cases left out


def run_area(area: str, quick: bool, whole: bool = True, limit: float = PATIENCE) -> list[Row]:
    """Run one area, or one case of it (``area.case``), in a process of its own and return its rows."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / 'rows.jsonl'
        process = multiprocessing.get_context('spawn').Process(target=measure_area, args=(area, quick, whole, file))
        process.start()
        process.join(limit)
        ended = process.exitcode
        process.kill()
        assert process.pid is not None
        with suppress(ProcessLookupError):  # nodes that it started belong to its session
            os.killpg(process.pid, signal.SIGKILL)
        lines = file.read_text(encoding='utf-8').splitlines() if file.is_file() else []
    rows = [Row.of(json.loads(line)) for line in lines]
    if ended != 0 or not rows:
        failure = f'did not end within {limit:g} s' if ended is None else f'ended with exit code {ended}'
        rows.append(Row(area=area, what='the rest of this area', failure=f'{failure}, {len(rows)} rows'))
    return rows


def measure_area(name: str, quick: bool, whole: bool, file: Path) -> None:
    """Run the cases of an area one after the other, with or without the long ones; append their rows to a file."""
    os.setsid()
    warnings.simplefilter('ignore')
    area, _, wanted = name.partition('.')
    module = importlib.import_module(f'benchmark.{area}')
    for case in module.CASES:
        left_out = not whole and case in getattr(module, 'LONG', ())
        if case.__name__ == wanted or not (wanted or left_out):
            measure_case(area, case, quick, file)


def measure_case(area: str, case: Case, quick: bool, file: Path) -> None:
    """Run one case; an error becomes a row that says so."""

    def keep(row: Row) -> None:
        row = replace(row, area=area, case=row.case or case.__name__)
        told = row.failure or f'{figures(row.values)} {row.unit}' if row.values or row.failure else row.note
        print(f'{row.state:8} {area}: {row.what}: {told}', flush=True)
        with file.open('a', encoding='utf-8') as out:
            out.write(json.dumps(row.as_dict()) + '\n')

    try:
        for row in case(quick):
            keep(row)
    except Exception as error:  # whatever it is: the table says so
        traceback.print_exc()
        keep(Row(what=case.__name__.replace('_', ' '), failure=f'{type(error).__name__}: {error}'))
