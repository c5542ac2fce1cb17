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
checksum. The summary at the end of a complete file lists topics and chunks. A file without it, as after a crash, is
read up to its last whole record.
Format: https://mcap.dev/spec.
"""

import importlib
import io
import struct
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from robotid_ros.arrays import IntArray
from robotid_ros.data.messages import MessageChunk
from robotid_ros.errors import DataError, MissingDependencyError

MAGIC = b'\x89MCAP0\r\n'
FOOTER, SCHEMA, CHANNEL, MESSAGE, CHUNK, METADATA, DATA_END = 2, 3, 4, 5, 6, 12, 15
RECORD = struct.Struct('<BQ')  # opcode, length of the content
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
    metadata : dict of str to dict
        Metadata records by their name.
    complete : bool
        Whether the file was written to its end.
    faults : dict of str to int
        ``cut_off_bytes`` after the last whole record, ``damaged_chunks`` that were left out,
        ``absent_messages`` that the summary counts but were not found.
    """

    path: Path
    channels: dict[int, tuple[str, str, str]] = field(default_factory=dict)
    metadata: dict[str, dict[str, str]] = field(default_factory=dict)
    complete: bool = False
    faults: dict[str, int] = field(default_factory=dict)
    _schemas: dict[int, str] = field(default_factory=dict)
    _counts: dict[int, int] = field(default_factory=dict)

    @classmethod
    def open(cls, path: Path) -> 'McapFile':
        """Return a file with its channels and metadata: from its summary, or from all of it where that is missing.

        Raises
        ------
        DataError
            If it is no MCAP file.
        MissingDependencyError
            If ``mcap`` is not installed.
        """
        file = cls(path)
        with open(path, 'rb') as stream:
            if stream.read(len(MAGIC)) != MAGIC:
                raise DataError(f'{path}: expected an MCAP file, got something else')
            stream.seek(0)
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
            elif opcode in (SCHEMA, CHANNEL, METADATA):
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
        data = _library('data_stream').ReadDataStream(io.BytesIO(content))
        try:
            chunk = _library('records').Chunk.read(data)
            if chunk.uncompressed_size > LARGEST_CHUNK:
                raise ValueError('too large')
            stream, length = _library('stream_reader').get_chunk_data_stream(chunk, validate_crc=True)
            return bytes(stream.read(length))
        except Exception:  # each decompressor raises errors of its own classes
            self._damaged()
            return None

    def _define(self, opcode: int, content: bytes) -> None:
        """Read a schema, a channel or metadata; a damaged record is left out."""
        stream, records = _library('data_stream').ReadDataStream(io.BytesIO(content)), _library('records')
        try:
            if opcode == SCHEMA:
                schema = records.Schema.read(stream)
                self._schemas[schema.id] = schema.name
            elif opcode == CHANNEL:
                channel = records.Channel.read(stream)
                kind = self._schemas.get(channel.schema_id, '')
                self.channels[channel.id] = (channel.topic, kind, channel.message_encoding)
            else:
                record = records.Metadata.read(stream)
                self.metadata[record.name] = record.metadata
        except Exception:  # struct.error, UnicodeDecodeError and mcap's own
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
            # After opcode, length and channel: the sequence number (4 bytes) and the log time (8 bytes).
            sequence = data[at[:, None] + np.arange(11, 15)].view('<u4')[:, 0].astype(np.int64)
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
                sequence=np.where(sequence > 0, sequence, -1),
                publisher=np.zeros(len(at), dtype=np.int64),
            )
        return found

    def _read_summary(self, stream: BinaryIO) -> bool:
        """Read channels, counts and metadata from the end of the file; return whether it has one."""
        reader = _library('reader').SeekingReader(stream, record_size_limit=LARGEST_CHUNK)
        try:
            summary = reader.get_summary()
            if summary is None:  # a file may have none
                return True
            for channel in summary.channels.values():
                schema = summary.schemas.get(channel.schema_id)
                kind = '' if schema is None else schema.name
                self.channels[channel.id] = (channel.topic, kind, channel.message_encoding)
            if summary.statistics is not None:
                self._counts = dict(summary.statistics.channel_message_counts)
            self.metadata.update((record.name, record.metadata) for record in reader.iter_metadata())
        except Exception:  # struct.error, OSError and mcap's own; what the summary lacks is read from the data
            return False
        return True


def _library(name: str) -> Any:
    """Return a module of the library for MCAP files."""
    try:
        return importlib.import_module(f'mcap.{name}')
    except ImportError as cause:
        raise MissingDependencyError.of('mcap', 'bag', 'read MCAP recordings') from cause


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
