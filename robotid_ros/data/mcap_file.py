# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""MCAP files, thousands of messages at a time, complete or cut off.

A file is a sequence of records, each with its length; messages are in chunks, which may be compressed and have a
checksum. The summary at the end of a complete file lists topics. A file without it, as after a crash, is read up to its
last whole record. The libraries read neither that nor what follows a damaged chunk, and take a message at a time: 600 s
of joint states at 1 kHz take twice as long (``benchmark/reading.py``). Format: https://mcap.dev/spec.
"""

import importlib
import struct
import sys
import zlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from robotid_ros.arrays import IntArray
from robotid_ros.data.messages import MessageChunk
from robotid_ros.errors import DataError, MissingDependencyError

MAGIC = b'\x89MCAP0\r\n'
FOOTER, SCHEMA, CHANNEL, MESSAGE, CHUNK, STATISTICS, DATA_END = 2, 3, 4, 5, 6, 11, 15
RECORD = struct.Struct('<BQ')  # opcode, length of the content
FOOTER_SIZE = RECORD.size + 20 + len(MAGIC)
MESSAGE_HEAD = 22  # bytes of a message's content before its data: channel, sequence, log time, publish time
LARGEST_CHUNK = 1 << 30  # [bytes]; a chunk with a larger size is damaged
WINDOW = 1 << 20  # [bytes] of messages outside of chunks that are read at a time
RUN = 256  # messages compared at a time


@dataclass(slots=True)
class McapFile:
    """One MCAP file.

    Attributes
    ----------
    path : Path
    channels : dict of int to (topic, type, encoding of the messages)
    complete : bool
        Whether the file was written to its end.
    faults : dict of str to int
        ``cut_off_bytes`` after the last whole record, ``damaged_chunks`` that were left out,
        ``absent_messages`` that the summary counts but were not found.
    """

    path: Path
    channels: dict[int, tuple[str, str, str]] = field(default_factory=dict)
    complete: bool = False
    faults: dict[str, int] = field(default_factory=dict)
    _schemas: dict[int, str] = field(default_factory=dict)
    _counts: dict[int, int] = field(default_factory=dict)

    @classmethod
    def open(cls, path: Path) -> 'McapFile':
        """Return a file with its channels: from its summary, or from all of it where that is missing.

        Raises
        ------
        DataError
            If it is no MCAP file.
        """
        file = cls(path)
        with open(path, 'rb') as stream:
            if stream.read(len(MAGIC)) != MAGIC:
                raise DataError(f'{path}: expected an MCAP file, got something else')
            file.complete = file._read_summary(stream)
        if not file.channels:
            for _ in file.messages(()):
                pass
        return file

    @property
    def topics(self) -> dict[str, str]:
        """Types of the topics that have messages in CDR, as far as the summary tells."""
        return {
            topic: kind
            for key, (topic, kind, encoding) in self.channels.items()
            if encoding == 'cdr' and (not self._counts or self._counts.get(key))
        }

    def messages(self, topics: Collection[str]) -> Iterator[tuple[int, Mapping[str, MessageChunk]]]:
        """Yield the messages of some topics, block by block: how many bytes were read, and chunks by topic."""
        self.faults.update(damaged_chunks=0, cut_off_bytes=0, absent_messages=0)
        read = 0
        with open(self.path, 'rb') as stream:
            for place, block in self._blocks(stream):
                offsets, lengths, channels = self._scan(block, topics)
                read += len(offsets)
                if offsets:
                    yield place, self._chunks(block, np.array(offsets), np.array(lengths), np.array(channels))
        expected = sum(self._counts.get(key, 0) for key, (topic, _, _) in self.channels.items() if topic in topics)
        self.faults['absent_messages'] = max(0, expected - read)

    def _blocks(self, stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
        """Yield the content of each chunk, and blocks of messages outside of chunks."""
        size = stream.seek(0, 2)
        at = len(MAGIC)
        while at < size:
            stream.seek(at)
            head = stream.read(RECORD.size)
            opcode, length = RECORD.unpack(head) if len(head) == RECORD.size else (0, size)
            end = at + RECORD.size + length
            if end > size:
                self.faults['cut_off_bytes'] = size - at
                return
            if opcode in (DATA_END, FOOTER):
                return
            if opcode == CHUNK:
                block = self._unpacked(stream.read(length))
                if block is not None:
                    yield end, block
            elif opcode in (SCHEMA, CHANNEL):
                self._define(opcode, stream.read(length))
            elif opcode == MESSAGE:
                stream.seek(at)
                block = stream.read(max(WINDOW, end - at))
                end = at + _whole_messages(block)
                yield end, block[: end - at]
            at = end

    def _damaged(self) -> None:
        self.faults['damaged_chunks'] = self.faults.get('damaged_chunks', 0) + 1

    def _unpacked(self, content: bytes) -> bytes | None:
        """Return the records of a chunk, or None where it is damaged."""
        fields = _Fields(content)
        try:
            _, _, size, checksum = fields.numbers('<QQQI')
            compression = fields.text()
            (length,) = fields.numbers('<Q')
            block = _decompressed(content[fields.at : fields.at + length], compression, size)
            if len(block) != size or (checksum and zlib.crc32(block) != checksum):
                raise ValueError('damaged')
            return block
        except MissingDependencyError:
            raise
        except Exception:  # each decompressor raises errors of its own classes
            self._damaged()
            return None

    def _define(self, opcode: int, content: bytes) -> None:
        """Read a schema or a channel; a damaged record is left out."""
        fields = _Fields(content)
        try:
            (key,) = fields.numbers('<H')
            if opcode == SCHEMA:
                self._schemas[key] = fields.text()
            else:
                (schema,) = fields.numbers('<H')
                self.channels[key] = (fields.text(), self._schemas.get(schema, ''), fields.text())
        except ValueError:
            self._damaged()

    def _scan(self, block: bytes, topics: Collection[str]) -> tuple[list[int], list[int], list[int]]:
        """Return the positions of the messages of some topics, the lengths of their records, and their channels."""
        offsets: list[int] = []
        lengths: list[int] = []
        channels: list[int] = []
        at = 0
        while at + RECORD.size <= len(block):
            opcode, length = RECORD.unpack_from(block, at)
            stride = RECORD.size + length
            if at + stride > len(block):
                self._damaged()
                break
            count = 1
            if opcode == MESSAGE and length >= MESSAGE_HEAD:
                count = _run(block, at, stride)
                channel = int.from_bytes(block[at + 9 : at + 11], 'little')
                if channel in self.channels and self.channels[channel][0] in topics:
                    offsets += range(at, at + count * stride, stride)
                    lengths += [stride] * count
                    channels += [channel] * count
            elif opcode in (SCHEMA, CHANNEL):
                self._define(opcode, block[at + RECORD.size : at + stride])
            at += count * stride
        return offsets, lengths, channels

    def _chunks(
        self, block: bytes, offsets: IntArray, lengths: IntArray, channels: IntArray
    ) -> dict[str, MessageChunk]:
        """Return messages by topic."""
        found: dict[str, MessageChunk] = {}
        data = np.frombuffer(block, dtype=np.uint8)
        for topic in dict.fromkeys(self.channels[channel][0] for channel in np.unique(channels).tolist()):
            own = np.isin(channels, [key for key, value in self.channels.items() if value[0] == topic])
            at, stride = offsets[own], lengths[own]
            # The log time (8 bytes) comes after opcode, length, channel and a number.
            arrival = data[at[:, None] + np.arange(15, 23)].view('<i8')[:, 0].astype(np.int64)
            first, step = int(at[0]), int(stride[0])
            if (np.diff(at) == step).all() and (stride == step).all():
                rows = data[first : first + len(at) * step].reshape(len(at), step)[:, RECORD.size + MESSAGE_HEAD :]
                payload = np.ascontiguousarray(rows).reshape(-1)
            else:
                starts, ends = (at + RECORD.size + MESSAGE_HEAD).tolist(), (at + stride).tolist()
                parts = [block[start:end] for start, end in zip(starts, ends, strict=True)]
                payload = np.frombuffer(b''.join(parts), dtype=np.uint8)
            found[topic] = MessageChunk(
                payload=payload,
                lengths=stride - (RECORD.size + MESSAGE_HEAD),
                arrival=arrival,
                sequence=np.full(len(at), -1),
                publisher=np.zeros(len(at), dtype=np.int64),
            )
        return found

    def _read_summary(self, stream: BinaryIO) -> bool:
        """Read channels and counts from the end of the file; return whether it has one."""
        end = stream.seek(0, 2) - FOOTER_SIZE
        if end < len(MAGIC):
            return False
        stream.seek(end)
        footer = stream.read()
        opcode, length, begin = struct.unpack_from('<BQQ', footer)
        if (opcode, length) != (FOOTER, 20) or footer[-len(MAGIC) :] != MAGIC or begin > end:
            return False
        at = begin or end  # a file may have no summary
        while at + RECORD.size <= end:
            stream.seek(at)
            opcode, length = RECORD.unpack(stream.read(RECORD.size))
            at += RECORD.size + length
            if opcode > DATA_END or at > end:
                return False
            if opcode in (SCHEMA, CHANNEL):
                self._define(opcode, stream.read(length))
            elif opcode == STATISTICS:
                try:
                    self._counts = _Fields(stream.read(length)[42:]).counts()
                except ValueError:
                    return False
        return at == end and not self.faults


@dataclass(slots=True)
class _Fields:
    """Reads the fields of a record; a ValueError says that it ends too early."""

    data: bytes
    at: int = 0

    def numbers(self, form: str) -> tuple[int, ...]:
        try:
            values = struct.unpack_from(form, self.data, self.at)
        except struct.error as cause:
            raise ValueError(str(cause)) from cause
        self.at += struct.calcsize(form)
        return values

    def text(self) -> str:
        (length,) = self.numbers('<I')
        start, self.at = self.at, self.at + length
        if self.at > len(self.data):
            raise ValueError('a text exceeds the record')
        return self.data[start : self.at].decode()

    def counts(self) -> dict[int, int]:
        """Read a map of channels to numbers."""
        (length,) = self.numbers('<I')
        return {key: count for key, count in [self.numbers('<HQ') for _ in range(length // 10)]}  # noqa: C416


def _decompressed(data: bytes, compression: str, size: int) -> bytes:
    """Return the content of a chunk, and not more than it says."""
    if size > LARGEST_CHUNK:
        raise ValueError('too large')
    if not compression:
        return data
    if compression == 'lz4':
        unpacker = _library('lz4.frame').LZ4FrameDecompressor()
    elif compression == 'zstd':
        unpacker = zstandard().ZstdDecompressor()
    else:
        raise ValueError(f'unknown compression {compression}')
    return bytes(unpacker.decompress(data, max_length=size + 1))


def zstandard() -> Any:
    """Return the module for zstd, which is in the standard library from Python 3.14 on."""
    return _library('compression.zstd' if sys.version_info >= (3, 14) else 'backports.zstd')


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as cause:
        raise MissingDependencyError.of('rosbags', 'bag', 'read compressed recordings') from cause


def _run(block: bytes, at: int, stride: int) -> int:
    """Return how many messages of the same length and channel follow each other."""
    head = block[at : at + 11]  # opcode, length, channel
    count = 1
    while block[at + count * stride : at + count * stride + 11] == head:
        start = at + count * stride
        most = min(RUN, (len(block) - start) // stride)
        if most < 1:
            break
        rows = np.frombuffer(block, dtype=np.uint8, count=most * stride, offset=start).reshape(most, stride)
        same = (rows[:, :11] == rows[0, :11]).all(axis=1)
        if not same.all():
            return count + int(np.argmin(same))
        count += most
    return count


def _whole_messages(block: bytes) -> int:
    """Return the end of the last whole message of those that a block begins with."""
    at = 0
    while at + RECORD.size <= len(block):
        opcode, length = RECORD.unpack_from(block, at)
        if opcode != MESSAGE or at + RECORD.size + length > len(block):
            break
        at += RECORD.size + length
    return at
