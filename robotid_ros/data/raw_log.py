"""Raw messages on disk, append-only: everything written before a crash can be read after it.

A folder holds ``log.json`` (what is recorded, written first), ``messages.log`` and, once the
recording was ended properly, ``summary.json``. ``messages.log`` is a sequence of frames:

    magic 'RIDF', uint32 count M, uint32 payload length P, uint32 CRC-32 of all that follows,
    M x (uint32 length, uint32 zero, int64 arrival [ns], int64 sequence number), P bytes of messages

all little-endian. A frame that was cut off, or whose checksum differs, is skipped and counted.
"""

import json
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from robotid_ros.arrays import IntArray
from robotid_ros.data.joint_state_cdr import JointStateDecoder
from robotid_ros.data.recording import Recording
from robotid_ros.data.rosbag import assemble
from robotid_ros.data.storage import atomic_file, file_hash
from robotid_ros.errors import DataError

__all__ = ['RawLogWriter', 'is_raw_log', 'iterate_raw_log', 'read_raw_log', 'write_summary']

MAGIC = b'RIDF'
HEADER = struct.Struct('<4sIII')
ENTRY = np.dtype([('length', '<u4'), ('zero', '<u4'), ('arrival', '<i8'), ('sequence', '<i8')])
LOG, DESCRIPTION, SUMMARY = 'messages.log', 'log.json', 'summary.json'
BATCH = 16384  # messages decoded at a time when reading


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
        with atomic_file(folder / DESCRIPTION) as file:
            file.write(json.dumps({'format': 1, **description}, indent=1).encode())
        self.messages = 0
        self.size = 0

    def append(self, messages: Sequence[bytes], arrival: Sequence[int], sequence: Sequence[int]) -> None:
        """Write messages as one frame.

        Raises
        ------
        OSError
            If the disk is full or gone; what was half written is cut off again.
        """
        if not messages:
            return
        table = np.zeros(len(messages), dtype=ENTRY)
        table['length'] = [len(message) for message in messages]
        table['arrival'] = arrival
        table['sequence'] = sequence
        body = table.tobytes() + b''.join(messages)
        frame = HEADER.pack(MAGIC, len(messages), len(body) - table.nbytes, zlib.crc32(body)) + body
        view = memoryview(frame)
        try:
            while view:
                view = view[self._file.write(view) :]
        except OSError:
            self._file.truncate(self.size)
            self._file.seek(self.size)
            raise
        self.messages += len(messages)
        self.size += len(frame)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def write_summary(folder: Path, summary: Mapping[str, Any]) -> None:
    """Write what the recording was found to hold; its presence says that it was ended properly."""
    with atomic_file(folder / SUMMARY) as file:
        file.write(json.dumps(summary, indent=1).encode())


def is_raw_log(folder: Path) -> bool:
    """Return whether a folder is one of these."""
    return (folder / LOG).is_file()


def iterate_raw_log(
    folder: Path, faults: dict[str, Any] | None = None
) -> Iterator[tuple[NDArray[np.uint8], IntArray, IntArray, IntArray]]:
    """Yield the messages of a log, some thousands at a time.

    Parameters
    ----------
    folder : Path
    faults : dict, optional
        Receives ``damaged_frames``, ``damaged_bytes`` and ``cut_off_bytes`` (an unfinished last
        frame) when the iteration ends.

    Yields
    ------
    payload : ndarray of uint8
        Messages one behind the other.
    lengths, arrival, sequence : ndarray of int64, shape (M,)
        Bytes, arrival [ns], publisher's sequence number (-1 where unknown).
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
                yield _batch(tables, payloads)
                tables, payloads, held = [], [], 0
    if tables:
        yield _batch(tables, payloads)
    if faults is not None:
        faults.update(found)


def read_raw_log(folder: Path, joints: Sequence[str] | None = None) -> Recording:
    """Read a folder of the recorder node, whether it was ended properly or not.

    Raises
    ------
    DataError
        If no message can be read, or a joint is in none of them.
    """
    faults: dict[str, Any] = {}
    description = _description(folder)
    decoder = JointStateDecoder(joints=tuple(joints or description.get('joints', ())))
    batches, arrivals, sequences = [], [], []
    for payload, lengths, arrival, sequence in iterate_raw_log(folder, faults):
        batches.append(decoder.decode_block(payload, lengths))
        arrivals.append(arrival)
        sequences.append(sequence)
    if not batches:
        raise DataError(f'{folder}: the recording holds no complete message')
    if not any((batch.reason == 0).any() for batch in batches):
        have = sorted({name for layout in decoder.layouts for name in layout.names})
        raise DataError(f'{folder}: no message has all of {", ".join(decoder.joints)}; there are: {", ".join(have)}')
    provenance = {
        'file': folder.name,
        'sha256': {LOG: file_hash(folder / LOG)},
        'format': 'recorder',
        'ended_properly': (folder / SUMMARY).is_file(),
        'faults': {**faults, 'lost_before_capture': count_lost(np.concatenate(sequences))},
        'description': description,
    }
    return assemble(decoder, batches, np.concatenate(arrivals), provenance)


def count_lost(sequence: IntArray) -> int:
    """Return how many messages the publisher numbered that never arrived; 0 where it numbers none."""
    steps = np.diff(sequence[sequence >= 0])
    return int((steps[steps > 1] - 1).sum())


def _description(folder: Path) -> dict[str, Any]:
    try:
        return dict(json.loads((folder / DESCRIPTION).read_text()))
    except (OSError, ValueError):
        return {}


def _batch(tables: list[NDArray[Any]], payloads: list[bytes]) -> tuple[NDArray[np.uint8], IntArray, IntArray, IntArray]:
    table = np.concatenate(tables)
    payload = np.frombuffer(payloads[0] if len(payloads) == 1 else b''.join(payloads), dtype=np.uint8)
    return (
        payload,
        table['length'].astype(np.int64),
        table['arrival'].astype(np.int64),
        table['sequence'].astype(np.int64),
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
