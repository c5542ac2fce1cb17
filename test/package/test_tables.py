# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""CSV tables: what is written is read to the last digit, and what is wrong is named with line and column."""

import numpy as np
import pytest
from errors_helpers import refused
from hypothesis import example, given, settings
from hypothesis import strategies as st

from robotid_ros import tables
from robotid_ros.errors import CalibrationError, DataError
from robotid_ros.tables import read_table, write_table


def layout(names):
    return {'time': ['time'], 'values': [name for name in names if name not in ('time', 'set')]}


def read(path, **others):
    return read_table(path, layout, blank=('values',), **others)


finite = st.floats(allow_nan=False, allow_infinity=False)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(finite, st.floats(allow_infinity=False), st.floats(allow_infinity=False)), min_size=1),
    st.text(st.characters(codec='utf-8', exclude_characters='\0\r\n'), min_size=1, max_size=9).filter(str.strip),
    st.booleans(),
)
def test_what_is_written_is_read_to_the_last_digit(tmp_path_factory, rows, name, words):
    path = tmp_path_factory.mktemp('csv') / 'x.csv'
    values = np.array(rows)
    labels = [f'"{k}", {name}'.strip() for k in range(len(rows))]
    write_table(
        path,
        {'time': values[:, 0], f'a,"{name}"': values[:, 1], 'b': values[:, 2], **({'set': labels} if words else {})},
    )
    table = read(path, text=('set',))
    assert table.names[1] == f'a,"{name}"'.strip()
    assert np.array_equal(table.arrays['time'], values[:, :1])
    assert np.array_equal(table.arrays['values'], values[:, 1:], equal_nan=True)
    assert table.text == ({'set': tuple(labels)} if words else {})


@pytest.mark.parametrize('end', ['\n', '\r\n'])
@pytest.mark.parametrize('last', ['', 'end'])
@pytest.mark.parametrize('byte_order_mark', ['', '\ufeff'])
def test_blank_fields_comments_and_line_ends(tmp_path, end, last, byte_order_mark):
    rows = ['time,a,b', '0,,1', '0.5,2,', '', '1,,', '1.5,"3", 4 ', '', '# a remark', ',,']
    text = byte_order_mark + end.join(rows) + (end if last else '')
    (tmp_path / 'x.csv').write_bytes(text.encode())
    table = read(tmp_path / 'x.csv')
    assert table.arrays['time'][:, 0].tolist() == [0.0, 0.5, 1.0, 1.5]
    nan = np.nan
    assert np.array_equal(table.arrays['values'], [[nan, 1], [2, nan], [nan, nan], [3, 4]], equal_nan=True)


def test_a_column_that_is_missing_may_be_nan(tmp_path):
    (tmp_path / 'x.csv').write_text('a\n1\n2\n')
    table = read_table(tmp_path / 'x.csv', lambda names: {'x': ['a', None]}, blank=('x',))
    assert np.array_equal(table.arrays['x'], [[1, np.nan], [2, np.nan]], equal_nan=True)
    assert not table.arrays['x'].flags.writeable


@pytest.mark.parametrize(
    ('text', 'about', 'words'),
    [
        (b'', {}, 'expected a line with the names of the columns, got none'),
        (b'time,a\n', {}, 'expected numbers below the names of the columns, got none'),
        (b'time,a,a\n0,1,2\n', {'name': 'a', 'found': 2}, ''),
        (b'time,a\n0,1\n1,2,3\n', {'line': 3, 'expected': 2, 'found': 3}, ', line 3: expected 2 fields, got 3'),
        (b'time,a\n0,1\n\n# x\n1\n', {'line': 5, 'expected': 2, 'found': 1}, ''),
        (b'time,a\n0,1\n1,x\n', {'line': 3, 'name': 'a', 'expected': 'a number', 'found': 'x'}, ''),
        (b'time,a\n0,1\n1,1_0\n', {'line': 3, 'name': 'a', 'expected': 'a number', 'found': '1_0'}, ''),
        (b'time,a\nnan,1\n', {'line': 2, 'name': 'time', 'expected': 'a finite number', 'found': 'nan'}, ''),
        (b'time,a\n,1\n', {'line': 2, 'name': 'time', 'expected': 'a finite number', 'found': ''}, ''),
        (b'time,a\n0,\xff\n', {'line': 2}, 'expected UTF-8 text; byte 3 is not'),
        (b'\xff\xfe\0t', {'line': 1}, 'expected names of columns as UTF-8 text, separated by commas; byte 1 is not'),
        (b'time,a\n0,"1\n', {'line': 2}, 'unexpected end of data'),
        (b'time,' + b'x,' * 5000, {'expected': 4096, 'found': 5002}, ''),
        (b'time,a\n0,"' + b'1' * 200_000, {'line': 2}, 'field larger than field limit'),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path, text, about, words):
    path = tmp_path / 'x.csv'
    path.write_bytes(text)
    for kind in (DataError, CalibrationError):
        with refused(kind, file=str(path), **about) as caught:
            read(path, error=kind)
        assert words in str(caught.value)
        assert len(str(caught.value)) < 300 + len(str(path))


def test_what_is_no_file_is_refused(tmp_path):
    for path, message in ((tmp_path / 'none.csv', 'does not exist'), (tmp_path, 'a folder or a device')):
        with pytest.raises(DataError, match=message):
            read(path)


@pytest.mark.parametrize('blanks', [False, True])
def test_a_file_in_pieces_is_the_file_as_a_whole(tmp_path, monkeypatch, blanks):
    rng = np.random.default_rng(1)
    values = rng.standard_normal((2000, 4))
    columns = dict(zip(('time', 'a', 'b', 'c'), values.T, strict=True))
    path = tmp_path / 'x.csv'
    write_table(path, columns)
    if blanks:
        path.write_text(path.read_text().replace('\n', '\n\n').replace(',0.1', ','))
    whole = read(path)
    for piece in (1, 997, 50_000):
        monkeypatch.setattr(tables, 'PIECE', max(piece, 200))
        parts = read(path)
        assert np.array_equal(parts.arrays['values'], whole.arrays['values'], equal_nan=True)
        assert np.array_equal(parts.arrays['time'], whole.arrays['time'])
    lines = path.read_text().splitlines()
    lines[1234] = 'x,1,2,3'
    path.write_text('\n'.join(lines))
    with refused(DataError, line=1235, name='time', expected='a finite number', found='x'):
        read(path)


def outcome(path, used):
    try:
        return read_table(path, lambda names: {'time': ['time'], 'values': used}, blank=('values',))
    except DataError as problem:
        return str(problem)


ODD = st.sampled_from(
    [b'', b',', b'"', b'\n', b'\r', b'\r\n', b' ', b'\t', b'#', b'_', b'.', b'-', b'+', b'e', b'9' * 320]
)
ODD |= st.sampled_from([b'nan', b'NaN', b'nan(1)', b'inf', b'-infinity', b'0x1p3', b'1e999', b'1e-400', b'NULL', b'1f'])
ODD |= st.sampled_from([b'\0', b'\xff', 'ü'.encode(), '٣'.encode(), b'\xef\xbb\xbf', b'\xc2\xa0', b'1,2,3\n', b',,\n'])


@pytest.mark.slow
@settings(deadline=None, max_examples=150)
@given(st.lists(st.tuples(st.integers(0, 400), st.integers(0, 3), ODD), max_size=3), st.sampled_from(['ab', 'a']))
@example([(0, 0, b'1,nan(1),2\n')], 'ab')
@example([(0, 0, b'1,2,"3\n')], 'a')
def test_pyarrow_reads_what_the_other_parsers_read(tmp_path_factory, damages, used):
    pytest.importorskip('pyarrow')
    path = tmp_path_factory.mktemp('csv') / 'x.csv'
    rng = np.random.default_rng(3)
    write_table(path, {'time': np.arange(9.0), 'a': rng.standard_normal(9), 'b': 10.0 ** rng.integers(-300, 300, 9)})
    raw = bytearray(path.read_bytes())
    head = raw.index(b'\n') + 1
    for place, length, odd in damages:
        raw[head + place : head + place + length] = odd
    path.write_bytes(raw)
    by_arrow: list[bool] = []

    def noted(*arguments):
        by_arrow.append((piece := arrow(*arguments)) is not None)
        return piece

    arrow = tables._arrow
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, 'PIECE', 150)
        patch.setattr(tables, '_arrow', noted)
        found = outcome(path, list(used))
        patch.setattr(tables, '_arrow', lambda *_: None)
        expected = outcome(path, list(used))
    assert damages or any(by_arrow)
    if isinstance(expected, str):
        assert found == expected
    else:
        for name, array in expected.arrays.items():
            assert np.array_equal(found.arrays[name], array, equal_nan=True)
