# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Puts the table of the results file into the manual, between its two marks: ``python -m benchmark.manual``."""

import json
from pathlib import Path
from typing import Any

from benchmark.table import markdown

PAGE = Path(__file__).parents[1] / 'docs' / 'benchmarks.md'
RESULTS = Path(__file__).parent / 'results.json'
BEGIN, END = '<!-- table: begin -->', '<!-- table: end -->'


def split(page: str) -> tuple[str, str, str]:
    """Return what is before, between and after the marks."""
    before, _, rest = page.partition(f'{BEGIN}\n')
    table, mark, after = rest.partition(f'{END}\n')
    if not mark:
        raise ValueError(f'expected {BEGIN} and {END} in {PAGE.name}, each on a line of its own')
    return before, table, after


def write_table(results: dict[str, Any]) -> None:
    """Replace what is between the marks."""
    before, _, after = split(PAGE.read_text(encoding='utf-8'))
    PAGE.write_text(f'{before}{BEGIN}\n{markdown(results)}{END}\n{after}', encoding='utf-8')


if __name__ == '__main__':
    write_table(json.loads(RESULTS.read_text(encoding='utf-8')))
