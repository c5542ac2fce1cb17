# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Configurations refuse the same values with the same sentence, wherever the values come from."""

import argparse
import dataclasses
import importlib
import pickle
from pathlib import Path

import pytest
from errors_helpers import refused
from hypothesis import given
from hypothesis import strategies as st

import robotid_ros
from robotid_ros.cli import main
from robotid_ros.commands.options import add_settings, number, settings_from
from robotid_ros.errors import DataError, ExcitationError, IdentificationError
from robotid_ros.excitation import ExcitationConfig
from robotid_ros.identification import IdentificationConfig
from robotid_ros.settings import Settings, setting, settings_of


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Example(Settings):
    error = DataError

    period: float = setting(20.0, 'period', unit='s', range=(0.1, 100.0))
    count: int = setting(5, 'count', range=(1, 20))
    word: str = setting('a', 'word', choices=('a', 'b'))
    flag: bool = setting(True, 'flag')
    corner: tuple[float, ...] = setting((), 'corner', length=(0, 3))
    cutoff: float | None = setting(None, 'cutoff', range=(0.0, 10.0))
    ratios: dict[str, float] = setting({}, 'ratios', range=(0.5, 2.0))
    folder: Path = setting(Path(), 'folder')
    partner: object = None

    def check(self) -> None:
        if self.flag and self.word == 'b':
            raise self.error("word: 'b' needs flag to be false")


REFUSED = [
    ({'period': 0.0}, 'period: expected 0.1 to 100 s, got 0'),
    ({'period': '20'}, "period: expected a number, got '20'"),
    ({'period': float('nan')}, 'period: expected a number, got nan'),
    ({'period': float('inf')}, 'period: expected a number, got inf'),
    ({'period': True}, 'period: expected a number, got True'),
    ({'period': None}, 'period: expected a number, got None'),
    ({'count': 2.5}, 'count: expected a whole number, got 2.5'),
    ({'count': 21}, 'count: expected 1 to 20, got 21'),
    ({'word': 'c'}, "word: expected one of a, b; got 'c'"),
    ({'word': 1}, 'word: expected text, got 1'),
    ({'flag': 0}, 'flag: expected true or false, got 0'),
    ({'corner': 5}, 'corner: expected a list of numbers, got 5'),
    ({'corner': 'abc'}, "corner: expected a list of numbers, got 'abc'"),
    ({'corner': [1.0]}, 'corner: expected 0 or 3 entries, got 1'),
    ({'corner': [1.0, 2.0, 'x']}, "corner: expected a number, got 'x'"),
    ({'cutoff': -1.0}, 'cutoff: expected 0 to 10, got -1'),
    ({'ratios': 3.0}, 'ratios: expected a mapping of names to values, got 3.0'),
    ({'ratios': {'j': 3.0}}, "ratios: 'j': expected 0.5 to 2, got 3"),
    ({'folder': 3}, 'folder: expected a path, got 3'),
    ({'word': 'b'}, "word: 'b' needs flag to be false"),
]


@pytest.mark.parametrize(('values', 'message'), REFUSED)
def test_a_bad_value_is_refused_with_one_sentence(values, message) -> None:
    for make in (lambda: Example(**values), lambda: Example.from_dict(values)):
        with pytest.raises(DataError) as caught:
            make()
        assert str(caught.value) == message
    with pytest.raises(DataError):
        dataclasses.replace(Example(), **values)


def test_values_are_held_as_their_fields_say() -> None:
    example = Example(period=3, count=4.0, corner=[1, 2, 3], ratios={'j': 1}, folder='x', cutoff=2, partner=[1])
    assert example == Example(
        period=3.0, count=4, corner=(1.0, 2.0, 3.0), ratios={'j': 1.0}, folder=Path('x'), cutoff=2.0, partner=[1]
    )
    assert [type(value) for value in (example.period, example.count, example.corner[0])] == [float, int, float]
    assert pickle.loads(pickle.dumps(example)) == example
    plain = example.to_dict()
    assert plain['corner'] == [1.0, 2.0, 3.0]
    assert plain['folder'] == 'x'
    assert 'partner' not in plain
    assert Example.from_dict(plain).to_dict() == plain
    first, second = Example(), Example()
    assert first.ratios is not second.ratios


def test_a_name_that_is_no_setting_is_refused_with_those_there_are() -> None:
    with refused(DataError, name='speed') as caught:
        Example.from_dict({'speed': 1.0})
    assert caught.value.about['expected'][:3] == ('period', 'count', 'word')
    with pytest.raises(DataError, match=r'expected a mapping of settings, got \[1\]'):
        Example.from_dict([1])  # type: ignore[arg-type]


@given(st.floats(allow_nan=True, allow_infinity=True))
def test_a_number_is_taken_exactly_inside_its_range(value) -> None:
    if 0.1 <= value <= 100.0:
        assert Example(period=value).period == value
    else:
        with refused(DataError, name='period', expected=(0.1, 100.0)):
            Example(period=value)


def test_the_command_line_says_the_same(capsys) -> None:
    parser = argparse.ArgumentParser()
    add_settings(parser, Example)
    chosen = parser.parse_args(['--period', '7', '--no-flag', '--word', 'b', '--corner', '1', '2', '3'])
    assert settings_from(chosen, Example) == Example(period=7.0, flag=False, word='b', corner=(1.0, 2.0, 3.0))
    with refused(DataError, name='count', expected=(1, 20), found=-1):
        settings_from(parser.parse_args(['--count', '-1']), Example)
    assert 'period; 0.1 to 100 s (default: 20.0)' in ' '.join(parser.format_help().split())
    option = argparse.ArgumentParser()
    option.add_argument('--rate', type=number(float, 1, 1e5))
    assert option.parse_args(['--rate', '10']).rate == 10.0
    for bad in ('0', 'nan', 'fast'):
        with pytest.raises(SystemExit):
            option.parse_args(['--rate', bad])
        assert 'argument --rate: expected 1 to 100000, got' in capsys.readouterr().err


def _configurations() -> list[type[Settings]]:
    root = Path(robotid_ros.__file__).parent
    for path in root.rglob('*.py'):
        if path.parent.name != 'nodes' and 'import Settings' in path.read_text(encoding='utf-8'):
            importlib.import_module('.'.join(path.relative_to(root.parent).with_suffix('').parts))
    return [kind for kind in Settings.__subclasses__() if kind.__module__.startswith('robotid_ros.')]


def test_every_configuration_describes_itself_and_raises_the_error_of_its_room() -> None:
    kinds = _configurations()
    assert {ExcitationConfig, IdentificationConfig} <= set(kinds)
    for kind in kinds:
        assert issubclass(kind.error, ValueError), kind
        for item in settings_of(kind):
            assert item.description, (kind, item.name)
            assert item.kind not in (int, float) or item.range or item.unit or item.form == 'list', (kind, item.name)


def test_identification_and_design_refuse_what_they_cannot_use(capsys) -> None:
    with pytest.raises(IdentificationError, match="'auto' chooses model and options itself and takes none"):
        IdentificationConfig(friction='auto+load')
    with pytest.raises(IdentificationError, match="friction option 'weather' is unknown"):
        IdentificationConfig(friction='coulomb+weather')
    with refused(ExcitationError, name='seed', expected=(0, 2147483647), found=-1):
        ExcitationConfig(seed=-1)
    assert main(['design', '--robot', 'ur10e', '--seed', '-1']) == 2
    assert capsys.readouterr().err == 'robotid design: seed: expected 0 to 2147483647, got -1\n'
