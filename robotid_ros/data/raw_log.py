# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Raw messages on disk, append-only: everything written before a crash can be read after it.

A folder holds ``log.json`` (what is recorded, written first), ``messages.log``, ``reference.json``
(what the arm followed, if a reference came) and, once the recording was ended properly,
``summary.json``. ``messages.log`` is a sequence of frames:

    magic 'RIDF', uint32 count M, uint32 payload length P, uint32 CRC-32 of all that follows,
    M x (uint32 length, uint32 publisher, int64 arrival [ns], int64 sequence number), P bytes of messages

all little-endian. A frame that was cut off, or whose checksum differs, is skipped and counted.
"""

import json
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from robotid_ros.arrays import IntArray
from robotid_ros.data.joint_state_cdr import JointStateDecoder
from robotid_ros.data.recording import Recording
from robotid_ros.data.rosbag import assemble
from robotid_ros.errors import DataError
from robotid_ros.files import file_hash, write_text

__all__ = [
    'LossCounter',
    'MessageChunk',
    'RawLogWriter',
    'is_raw_log',
    'iterate_raw_log',
    'log_provenance',
    'read_raw_log',
    'read_reference',
    'write_reference',
    'write_summary',
]

MAGIC = b'RIDF'
HEADER = struct.Struct('<4sIII')
ENTRY = np.dtype([('length', '<u4'), ('publisher', '<u4'), ('arrival', '<i8'), ('sequence', '<i8')])
LOG, DESCRIPTION, REFERENCE, SUMMARY = 'messages.log', 'log.json', 'reference.json', 'summary.json'
BATCH = 16384  # messages decoded at a time when reading


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageChunk:
    """Serialised messages with what came along with them.

    Attributes
    ----------
    payload : ndarray of uint8, shape (sum of lengths,)
        The messages, one behind the other.
    lengths : ndarray of int64, shape (M,)
        Bytes of each.
    arrival : ndarray of int64, shape (M,)
        When each was sent (where the middleware tells) or received [ns].
    sequence : ndarray of int64, shape (M,)
        The publisher's own count of its messages; -1 where the middleware does not tell.
    publisher : ndarray of int64, shape (M,)
        Which publisher it was, numbered as they appeared.
    """

    payload: NDArray[np.uint8]
    lengths: IntArray
    arrival: IntArray
    sequence: IntArray
    publisher: IntArray

    @classmethod
    def of(
        cls,
        messages: Sequence[bytes],
        arrival: Sequence[int],
        sequence: Sequence[int] | None = None,
        publisher: Sequence[int] | None = None,
    ) -> 'MessageChunk':
        """Pack messages as they were received."""
        count = len(messages)
        return cls(
            payload=np.frombuffer(b''.join(messages), dtype=np.uint8),
            lengths=np.fromiter(map(len, messages), dtype=np.int64, count=count),
            arrival=np.array(arrival, dtype=np.int64),
            sequence=np.full(count, -1, dtype=np.int64) if sequence is None else np.array(sequence, dtype=np.int64),
            publisher=np.zeros(count, dtype=np.int64) if publisher is None else np.array(publisher, dtype=np.int64),
        )

    def __len__(self) -> int:
        return len(self.lengths)


class RawLogWriter:
    """Appends frames of serialised messages to a folder of its own.

    Parameters
    ----------
    folder : Path
        Created; must not hold a log yet.
    description : mapping
        Topic, joints, settings; plain values.

    Raises
    ------
    DataError
        If the folder cannot be made or has a log already.
    """

    def __init__(self, folder: Path, description: Mapping[str, Any]) -> None:
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._file: BinaryIO = open(folder / LOG, 'xb', buffering=0)  # noqa: SIM115  # closed by close()
        except FileExistsError as cause:
            raise DataError(f'{folder} holds a recording already; expected a new folder') from cause
        except OSError as cause:
            raise DataError(f'cannot record to {folder}: {cause.strerror}') from cause
        write_text(folder / DESCRIPTION, json.dumps({'format': 1, **description}, indent=1))
        self.messages = 0
        self.size = 0

    def append(self, chunk: MessageChunk) -> None:
        """Write messages as one frame.

        Raises
        ------
        OSError
            If the disk is full or gone; what was half written is cut off again.
        """
        if not len(chunk):
            return
        table = np.empty(len(chunk), dtype=ENTRY)
        table['length'] = chunk.lengths
        table['publisher'] = chunk.publisher
        table['arrival'] = chunk.arrival
        table['sequence'] = chunk.sequence
        body = table.tobytes() + chunk.payload.tobytes()
        frame = HEADER.pack(MAGIC, len(chunk), len(body) - table.nbytes, zlib.crc32(body)) + body
        view = memoryview(frame)
        try:
            while view:
                view = view[self._file.write(view) :]
        except OSError:
            with suppress(OSError):  # the reason is worth more than a failed repair
                self._file.truncate(self.size)
                self._file.seek(self.size)
            raise
        self.messages += len(chunk)
        self.size += len(frame)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def iterate_raw_log(folder: Path, faults: dict[str, int] | None = None) -> Iterator[MessageChunk]:
    """Yield the messages of a log, some thousands at a time.

    Parameters
    ----------
    folder : Path
    faults : dict, optional
        Receives ``damaged_frames``, ``damaged_bytes`` and ``cut_off_bytes`` (an unfinished last
        frame) when the iteration ends.

    Yields
    ------
    MessageChunk
    """
    found = {'damaged_frames': 0, 'damaged_bytes': 0, 'cut_off_bytes': 0}
    tables: list[NDArray[Any]] = []
    payloads: list[bytes] = []
    held = 0
    with open(folder / LOG, 'rb') as file:
        for table, payload in _frames(file, found):
            tables.append(table)
            payloads.append(payload)
            held += len(table)
            if held >= BATCH:
                yield _joined(tables, payloads)
                tables, payloads, held = [], [], 0
    if tables:
        yield _joined(tables, payloads)
    if faults is not None:
        faults.update(found)


def read_raw_log(folder: Path, joints: Sequence[str] | None = None) -> Recording:
    """Read a folder of the recorder node whole, whether it was ended properly or not.

    Raises
    ------
    DataError
        If no message can be read, or a joint is in none of them.
    """
    faults: dict[str, int] = {}
    description = read_description(folder)
    known = description.get('joints') or read_reference(folder).get('joints', ())
    decoder = JointStateDecoder(joints=tuple(joints or known))
    batches, arrivals = [], []
    lost = LossCounter()
    for chunk in iterate_raw_log(folder, faults):
        batches.append(decoder.decode_block(chunk.payload, chunk.lengths))
        arrivals.append(chunk.arrival)
        lost.count(chunk)
    if not batches:
        raise DataError(f'{folder}: the recording holds no complete message')
    if not any((batch.reason == 0).any() for batch in batches):
        have = sorted({name for layout in decoder.layouts for name in layout.names})
        raise DataError(f'{folder}: no message has all of {", ".join(decoder.joints)}; there are: {", ".join(have)}')
    provenance = log_provenance(folder, {**faults, 'lost_before_capture': lost.lost})
    return assemble(decoder, batches, np.concatenate(arrivals), provenance)


def log_provenance(folder: Path, faults: Mapping[str, int]) -> dict[str, Any]:
    """Return what a log's folder says about itself."""
    return {
        'file': folder.name,
        'sha256': {LOG: file_hash(folder / LOG)},
        'format': 'recorder',
        'ended_properly': (folder / SUMMARY).is_file(),
        'faults': dict(faults),
        'description': read_description(folder),
    }


def read_description(folder: Path) -> dict[str, Any]:
    """Return what was written into a log's folder when it began; empty where that is lost."""
    return _json(folder / DESCRIPTION)


def read_reference(folder: Path) -> dict[str, Any]:
    """Return the reference the arm followed, as :func:`write_reference` wrote it; empty where there was none."""
    return _json(folder / REFERENCE)


def write_reference(folder: Path, reference: Mapping[str, Any]) -> None:
    """Write the joints, period [s] and start [ns] of the reference the arm follows."""
    write_text(folder / REFERENCE, json.dumps(reference))


def write_summary(folder: Path, summary: Mapping[str, Any]) -> None:
    """Write what the recording was found to hold; its presence says that it was ended properly."""
    write_text(folder / SUMMARY, json.dumps(summary, indent=1))


def is_raw_log(folder: Path) -> bool:
    """Return whether a folder is one of these."""
    return (folder / LOG).is_file()


class LossCounter:
    """Counts messages that a publisher numbered and that never arrived."""

    def __init__(self) -> None:
        self.lost = 0
        self._last: dict[int, int] = {}

    def count(self, chunk: MessageChunk) -> int:
        """Return how many were lost before or within this chunk."""
        lost = 0
        for publisher in np.unique(chunk.publisher).tolist():
            numbers = chunk.sequence[(chunk.publisher == publisher) & (chunk.sequence >= 0)]
            if not len(numbers):
                continue
            steps = np.diff(numbers, prepend=self._last.get(publisher, int(numbers[0]) - 1))
            lost += int((steps[steps > 1] - 1).sum())
            self._last[publisher] = int(numbers[-1])
        self.lost += lost
        return lost


def _json(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text()))
    except (OSError, ValueError):
        return {}


def _joined(tables: list[NDArray[Any]], payloads: list[bytes]) -> MessageChunk:
    table = np.concatenate(tables)
    return MessageChunk(
        payload=np.frombuffer(payloads[0] if len(payloads) == 1 else b''.join(payloads), dtype=np.uint8),
        lengths=table['length'].astype(np.int64),
        arrival=table['arrival'].astype(np.int64),
        sequence=table['sequence'].astype(np.int64),
        publisher=table['publisher'].astype(np.int64),
    )


def _frames(file: BinaryIO, found: dict[str, int]) -> Iterator[tuple[NDArray[Any], bytes]]:
    size = file.seek(0, 2)
    at = 0
    while at < size:
        file.seek(at)
        head = file.read(HEADER.size)
        if len(head) < HEADER.size:
            found['cut_off_bytes'] += size - at
            return
        magic, count, length, checksum = HEADER.unpack(head)
        end = at + HEADER.size + count * ENTRY.itemsize + length
        body = file.read(end - at - HEADER.size) if magic == MAGIC and end <= size else b''
        if magic == MAGIC and end <= size and zlib.crc32(body) == checksum:
            table = np.frombuffer(body, dtype=ENTRY, count=count)
            yield table, body[table.nbytes :]
            at = end
            continue
        following = _next_frame(file, at + 1, size)
        if following < 0:
            found['cut_off_bytes'] += size - at
            return
        found['damaged_frames'] += 1
        found['damaged_bytes'] += following - at
        at = following


def _next_frame(file: BinaryIO, start: int, size: int) -> int:
    """Return where the next intact-looking frame begins, or -1."""
    step, overlap = 1 << 20, len(MAGIC) - 1
    for at in range(start, size, step):
        file.seek(at)
        place = file.read(step + overlap).find(MAGIC)
        if place >= 0:
            return at + place
    return -1
