# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The cards of ``arms/``: each is read as a result, says where it comes from, and stands in the index."""

import re
from pathlib import Path

import pytest
import yaml

from benchmark.cards import ARMS, index
from robotid_ros.identification import IdentificationResult

SOURCES = yaml.safe_load((ARMS / 'sources.yaml').read_text(encoding='utf-8'))
CARDS = sorted(path.parent.name for path in ARMS.glob('*/card.yaml'))


@pytest.mark.slow
@pytest.mark.parametrize('name', CARDS)
def test_a_card_is_a_result_with_its_origin(name: str) -> None:
    text = (ARMS / name / 'card.yaml').read_text(encoding='utf-8')
    result = IdentificationResult.load(ARMS / name / 'card.yaml')  # refuses what is not as it was written
    head = yaml.safe_load(text.partition('\nresult:\n')[0])
    metrics = result.metrics[head['judged_by']]
    assert head['usable'] == result.usable
    assert head['error'] == pytest.approx(metrics.relative_error_total)
    assert head['error_by_joint'] == pytest.approx(
        dict(zip(result.joint_names, metrics.relative_error.tolist(), strict=True))
    )
    assert {'arm', 'source', 'terms', 'conversion', 'reproduce'} <= set(head)
    assert all(re.fullmatch('[0-9a-f]{64}', each['sha256']) for each in head['recordings'])
    page = (ARMS / name / 'card.md').read_text(encoding='utf-8')
    assert page.startswith(f'# {head["arm"]}\n')
    assert f'| all | {head["error"]:.1f} | |' in page
    for each in (text, page):  # no place of the machine that it was made on
        assert not re.search(r'(?<![\w./:])(/[\w.-]+){2,}|[A-Z]:\\', each)


def test_every_source_has_its_card_and_its_checksums() -> None:
    for name, said in SOURCES.items():
        assert re.fullmatch('[0-9a-f]{40}', said['commit'])
        assert all(re.fullmatch('[0-9a-f]{64}', digest) for digest in said['files'].values())
        if 'role' in said:  # new, or kept back: not identified yet
            continue
        assert said['commit'] in (ARMS / name / 'card.yaml').read_text(encoding='utf-8')


@pytest.mark.slow
def test_the_index_is_that_of_the_cards() -> None:
    assert (ARMS / 'README.md').read_text(encoding='utf-8') == index(ARMS), 'run python -m benchmark.cards'


def test_no_data_are_in_the_folder() -> None:
    files = [path for path in Path(ARMS).rglob('*') if path.is_file()]
    assert {path.suffix for path in files} == {'.md', '.yaml'}
    assert max(path.stat().st_size for path in files) < 150_000
