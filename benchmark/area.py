# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""How an area is run: case by case, so that one that fails leaves the others standing."""

import argparse
import json
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmark.row import Row
from benchmark.table import text


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Settings of a run.

    Attributes
    ----------
    quick : bool
        Few repetitions, and the long cases left out: to see that everything works.
    """

    quick: bool = False

    def runs(self, full: int, quick: int = 1) -> int:
        """Return how often to repeat."""
        return quick if self.quick else full


Case = Callable[[Options], Iterable[Row]]


def run_cases(area: str, cases: Sequence[Case], options: Options, found: Path | None = None) -> list[Row]:
    """Run every case; one that raises becomes a row that says so. Rows are appended to ``found`` as they come."""
    rows: list[Row] = []
    for case in cases:
        begun = time.monotonic()
        name = case.__name__.replace('_', ' ')
        print(f'-- {area}: {name}', flush=True)
        for row in _rows_of(area, name, case, options):
            rows.append(row)
            if found is not None:
                with found.open('a', encoding='utf-8') as file:
                    file.write(json.dumps(row.as_dict()) + '\n')
        print(f'   {time.monotonic() - begun:.1f} s', flush=True)
    return rows


def _rows_of(area: str, name: str, case: Case, options: Options) -> Iterator[Row]:
    try:
        yield from case(options)
    except Exception as error:  # whatever it is: the table says so
        traceback.print_exc()
        yield Row(area=area, what=name, failure=f'{type(error).__name__}: {error}')


def main(area: str, cases: Sequence[Case], description: str | None) -> None:
    """Run one area from the command line: print its rows; exit code 1 if something failed or missed its bar."""
    parser = argparse.ArgumentParser(prog=f'python -m benchmark.{area}', description=(description or '').split('\n')[0])
    parser.add_argument('--quick', action='store_true', help='few repetitions, long cases left out')
    parser.add_argument('--cases', nargs='+', metavar='NAME', help='only cases whose name contains one of these')
    parser.add_argument('--rows', type=Path, metavar='FILE', help='append the rows to this file, one JSON per line')
    options = parser.parse_args()
    warnings.simplefilter('ignore')
    chosen = [case for case in cases if not options.cases or any(name in case.__name__ for name in options.cases)]
    rows = run_cases(area, chosen, Options(quick=options.quick), options.rows)
    print(f'\n{text(rows)}')
    raise SystemExit(any(row.state in ('missed', 'failed') for row in rows))
