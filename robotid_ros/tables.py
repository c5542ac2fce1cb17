# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""CSV tables: one line with the names of the columns, then one line per row.

Text is UTF-8 and fields are separated by commas. Blank lines and lines that begin with ``#`` are skipped.
A large file is read in pieces, by pyarrow where it is installed.
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from robotid_ros.arrays import Array, require_names
from robotid_ros.errors import DataError, RobotIdError
from robotid_ros.files import atomic_file
from robotid_ros.reading import refusing

PIECE = 1 << 25  # [bytes] parsed at a time, in about five times as much memory
LONGEST_LINE = 1 << 22  # [bytes]
MOST_COLUMNS = 4096  # more than any arm needs: 100 joints have 501 columns
ROWS = 4096  # written at a time
BLANK_FIELD = re.compile(rb'(?<=,)(?=[,\r\n])|(?<=\n)(?=,)')


Layout: TypeAlias = Mapping[str, Sequence[str | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """What was read from a CSV file of N rows: the names of all its columns, and what was asked for.

    Arrays have the shape (N, number of columns of the array), are read-only, and hold NaN where a field is blank;
    ``text`` holds columns of N texts.
    """

    names: tuple[str, ...]
    arrays: Mapping[str, Array]
    text: Mapping[str, tuple[str, ...]]


def read_table(
    path: str | Path,
    layout: Layout | Callable[[tuple[str, ...]], Layout],
    *,
    what: str = '',
    text: Collection[str] = (),
    blank: Collection[str] = (),
    error: type[RobotIdError] = DataError,
) -> Table:
    """Read a CSV file into arrays of several columns each.

    The ``layout`` says which columns form each array, with None for a column of NaN; it may be a function of the names
    of all columns. ``what`` is what the message about an absent column calls the file, the path by default. Columns
    named in ``text`` hold text, as far as they are in the file; arrays named in ``blank`` may have fields that are
    blank or not finite. The memory needed is that of the arrays and of one piece of the file.

    Raises an ``error`` if the file cannot be read, is not UTF-8, has a column twice or no row, if a line has not as
    many fields as there are columns, or if a field is not a number. The message names the file and, where there is one,
    line and column.
    """
    path = Path(path).expanduser()
    pieces: list[dict[str, Array]] = []
    with refusing(str(path), error, file=str(path)):
        names, line, start = header_of(path, error)
        wanted = layout if isinstance(layout, Mapping) else layout(names)
        groups = {name: tuple(columns) for name, columns in wanted.items()}
        for group in groups.values():
            require_names([name for name in group if name is not None], names, 'column', what or f"'{path}'", error)
        labels: dict[str, list[str]] = {name: [] for name in names if name in text}
        for raw in _pieces(path, start, error):
            piece = _arrow(raw, names, groups, blank) if path.stat().st_size > PIECE and not labels else None
            try:
                pieces.append(_parsed(raw, names, groups, blank, labels) if piece is None else piece)
            except DataError as cause:
                number = line + cause.about['line']
                raise error(f'{path}, line {number}: {cause}', **{**cause.about, 'line': number}) from cause
            line += raw.count(b'\n')
        arrays = {}
        for name in groups:
            arrays[name] = np.concatenate([piece.pop(name) for piece in pieces]) if pieces else np.zeros((0, 0))
            arrays[name].flags.writeable = False
            if not len(arrays[name]):
                raise error(f'{path}: expected numbers below the names of the columns, got none')
    return Table(names=names, arrays=arrays, text={name: tuple(column) for name, column in labels.items()})


def write_table(path: str | Path, columns: Mapping[str, Array | Sequence[str]]) -> None:
    """Write a CSV file, numbers to the last digit.

    The columns, by their names, are arrays of shape (N,) or sequences of N texts. A DataError says that the file cannot
    be written; an older file of that name is then as it was.
    """
    count = len(next(iter(columns.values())))
    with atomic_file(path) as file:
        file.write(_lines([list(columns)]))
        for k in range(0, count, ROWS):
            block = [column[k : k + ROWS] for column in columns.values()]
            cells = [part.tolist() if isinstance(part, np.ndarray) else part for part in block]
            file.write(_lines(zip(*cells, strict=True)))


def _lines(rows: Iterable[Sequence[Any]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator='\n').writerows(rows)
    return text.getvalue().encode()


def header_of(path: Path, error: type[RobotIdError]) -> tuple[tuple[str, ...], int, int]:
    """Return the names of the columns, the number of their line, and where the next line begins."""
    if not path.exists():
        raise error(f'{path} does not exist')
    if not path.is_file():
        raise error(f'{path}: expected a CSV file, got a folder or a device')
    number = 0
    names: list[str] = []
    with open(path, 'rb') as file:
        while not any(names) or names[0].startswith('#'):
            raw = file.readline(LONGEST_LINE)
            if not raw:
                raise error(f'{path}: expected a line with the names of the columns, got none')
            number += 1
            try:
                names = [name.strip() for name in next(csv.reader([raw.decode('utf-8-sig')], strict=True), [])]
            except (UnicodeDecodeError, csv.Error) as cause:
                message = (
                    f'{path}, line {number}: expected names of columns as UTF-8 text, separated by commas; '
                    f'{_reason(cause)}'
                )
                raise error(message, line=number) from cause
        start = file.tell()
    if len(names) > MOST_COLUMNS or (not raw.endswith(b'\n') and len(raw) == LONGEST_LINE):
        message = f'{path}: expected at most {MOST_COLUMNS} columns, got {len(names)}'
        raise error(message, expected=MOST_COLUMNS, found=len(names))
    if all(_number(name) is not None for name in names):
        message = f'{path}, line {number}: expected names of columns, got numbers; write a line of names above them'
        raise error(message, line=number)
    for name, count in Counter(names).items():
        if count > 1:
            message = f"{path}: column '{name[:60]}' is there {count} times; expected each once"
            raise error(message, name=name, found=count)
    return tuple(names), number, start


def _pieces(path: Path, start: int, error: type[RobotIdError]) -> Iterator[bytes]:
    """Yield a file from a place on; each piece ends with a line."""
    with open(path, 'rb') as file:
        file.seek(start)
        while raw := file.read(PIECE):
            rest = file.readline(LONGEST_LINE)
            if len(rest) == LONGEST_LINE:
                raise error(f'{path}: expected lines of numbers, got one of more than {LONGEST_LINE >> 20} MB')
            yield raw + rest


def _arrow(
    raw: bytes, names: tuple[str, ...], groups: Mapping[str, tuple[str | None, ...]], blank: Collection[str]
) -> dict[str, Array] | None:
    """Return one piece as pyarrow reads it, five times as fast; None where it is for another parser to judge.

    Quotes, texts in other alphabets and ``nan(...)`` are: pyarrow takes more, or other, things for a number.
    """
    try:
        import pyarrow  # takes 0.15 s
        from pyarrow import csv as arrow_csv
    except ImportError:
        return None
    if not raw.isascii() or b'"' in raw or b'(' in raw:
        return None
    columns = {name: str(names.index(name)) for group in groups.values() for name in group if name is not None}
    try:
        table: Any = arrow_csv.read_csv(
            pyarrow.py_buffer(raw),
            read_options=arrow_csv.ReadOptions(column_names=[str(k) for k in range(len(names))]),
            parse_options=arrow_csv.ParseOptions(quote_char=False),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(columns.values(), pyarrow.float64()),
                include_columns=list(columns.values()),
                null_values=[''],
            ),
        )
    except pyarrow.ArrowException:
        return None
    piece = {}
    for key, group in groups.items():
        piece[key] = np.full((table.num_rows, len(group)), np.nan)
        for k, name in enumerate(group):
            if name is not None:
                piece[key][:, k] = table.column(columns[name]).to_numpy()
        if key not in blank and not np.isfinite(piece[key]).all():
            return None
    return piece


def _parsed(
    raw: bytes,
    names: tuple[str, ...],
    groups: Mapping[str, tuple[str | None, ...]],
    blank: Collection[str],
    labels: Mapping[str, list[str]],
) -> dict[str, Array]:
    """Return the arrays of one piece; the quick parser first, the one that names the line where that fails."""
    where = {name: k for k, name in enumerate(names)}
    used = {where[name] for group in groups.values() for name in group if name is not None}
    required = [where[name] for key, group in groups.items() if key not in blank for name in group if name is not None]
    table = None if labels else _quick(raw, len(names))
    if table is None or not np.isfinite(table[:, required]).all():
        table = _careful(raw, names, used, set(required), labels)
    piece = {}
    for key, group in groups.items():
        piece[key] = table[:, [0 if name is None else where[name] for name in group]]
        piece[key][:, [name is None for name in group]] = np.nan
    return piece


def _quick(raw: bytes, width: int) -> Array | None:
    """Return all columns as numbers, or None where something else is among them."""
    if b',,' in raw or b',\n' in raw or b',\r' in raw or b'\n,' in raw or raw[:1] == b',' or raw[-1:] == b',':
        raw = BLANK_FIELD.sub(b'nan', b'\n' + raw + b'\n')
    if not raw.strip():
        return None
    try:
        table = np.loadtxt(raw.decode('ascii').split('\n'), delimiter=',', ndmin=2, comments=None)
    except ValueError:
        return None
    return table if table.shape[1] == width else None


def _careful(
    raw: bytes, names: tuple[str, ...], used: set[int], required: set[int], labels: Mapping[str, list[str]]
) -> Array:
    """Return all columns as numbers, NaN for texts, which are added to the labels.

    A DataError is about the first bad line, counted from the beginning of the piece.
    """
    words = [k for k, name in enumerate(names) if name in labels]
    rows: list[list[float]] = []
    try:
        reader = csv.reader(io.StringIO(raw.decode('utf-8'), newline=''), strict=True)
        for row in reader:
            cells = [cell.strip() for cell in row]
            if not any(cells) or cells[0].startswith('#'):
                continue
            if len(cells) != len(names):
                message = f'expected {len(names)} fields, got {len(cells)}'
                raise DataError(message, line=reader.line_num, expected=len(names), found=len(cells))
            values = [_number(cell) if k in used else np.nan for k, cell in enumerate(cells)]
            wrong = [k for k, value in enumerate(values) if value is None or (k in required and not np.isfinite(value))]
            if wrong:
                kind = 'a finite number' if wrong[0] in required else 'a number'
                name, cell = names[wrong[0]][:60], cells[wrong[0]][:40]
                message = f"column '{name}': expected {kind}, got '{cell}'"
                raise DataError(message, line=reader.line_num, name=name, expected=kind, found=cell)
            rows.append([np.nan if value is None else value for value in values])
            for k in words:
                labels[names[k]].append(cells[k])
    except UnicodeDecodeError as cause:
        number = raw[: cause.start].count(b'\n') + 1
        raise DataError(f'expected UTF-8 text; {_reason(cause)}', line=number) from cause
    except csv.Error as cause:
        message = f'expected fields separated by commas; {_reason(cause)}'
        raise DataError(message, line=reader.line_num) from cause
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(names))


def _number(cell: str) -> float | None:
    """Return the number, NaN for a blank cell, or None where it is no number; Python alone takes '1_000'."""
    try:
        return np.nan if not cell else float(cell) if '_' not in cell else None
    except ValueError:
        return None


def _reason(cause: Exception) -> str:
    return f'byte {cause.start + 1} is not' if isinstance(cause, UnicodeDecodeError) else str(cause)
