# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""MCAP files, those without an end, as a crash leaves them, and with damaged chunks, too: https://mcap.dev/spec

The library ``rosbags`` refuses both, and needs twice as long for 600 s of joint states at 1 kHz.
"""

import importlib
import io
import struct
import sys
import zlib
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from robotid_ros.errors import DataError, MissingDependencyError

Message = tuple[str, int, bytes]  # topic, arrival [ns], content
MAGIC = b'\x89MCAP0\r\n'
NONE, FOOTER, SCHEMA, CHANNEL, MESSAGE, CHUNK, STATISTICS, DATA_END = 0, 2, 3, 4, 5, 6, 11, 15  # NONE is no record
READ = {SCHEMA, CHANNEL, MESSAGE, CHUNK, STATISTICS}
RECORD = struct.Struct('<BQ')  # opcode, length of the content
LAST = struct.Struct('<BQQQI8s')  # the last record and what follows it: where the summary is, 0 without one; MAGIC
MESSAGE_HEAD = struct.Struct('<HIqQ')  # before the data of a message: channel, sequence, log time, publish time
COUNTS = 42  # place of the messages of each channel in the statistics: length, then channel and number
LARGEST_CHUNK = 1 << 28  # [bytes]; a chunk with a larger size is damaged


class McapFile:
    """An MCAP file: its topics, by its summary or by all of it, and its messages in the order of the file.

    ``topics`` holds the types of those with messages in CDR, ``complete`` says whether the file has its end, ``share``
    how much of it was read. ``faults`` counts, of the last reading, ``cut_off_bytes`` after the last whole record,
    ``damaged_chunks`` that were left out, and ``absent_messages`` that the summary counts but were not found.

    Raises a DataError if it is no MCAP file, a MissingDependencyError if it is compressed and the library for that is
    absent.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.faults: dict[str, int] = {}
        self.share = 0.0
        self._schemas: dict[int, str] = {}
        self._channels: dict[int, tuple[str, str]] = {}  # topic and type of those in CDR
        self._counts: dict[str, int] = Counter()
        self.complete = self._read_summary()
        if not self.complete or not self._counts:  # what is whole can be read nonetheless
            self._counts = Counter(topic for topic, _, _ in self.messages(None))
        self.topics = {topic: kind for topic, kind in self._channels.values() if self._counts[topic]}

    def messages(self, topics: Collection[str] | None) -> Iterator[Message]:
        """Yield the messages of some topics, or of all, as far as they are whole."""
        found = 0
        for opcode, content in self._records():
            if opcode == MESSAGE and len(content) >= MESSAGE_HEAD.size:
                channel, _, arrival, _ = MESSAGE_HEAD.unpack_from(content)
                topic, _ = self._channels.get(channel, ('', ''))
                if topic and (topics is None or topic in topics):
                    found += 1
                    yield topic, arrival, content[MESSAGE_HEAD.size :]
            elif opcode in (SCHEMA, CHANNEL):
                self._define(opcode, content)
        expected = sum(count for topic, count in self._counts.items() if topics is None or topic in topics)
        self.faults['absent_messages'] = max(0, expected - found)

    def _read_summary(self) -> bool:
        """Take topics and counts from the summary, where it is whole; return whether the file has its end."""
        with open(self.path, 'rb') as stream, suppress(ValueError, struct.error):
            stream.seek(max(0, stream.seek(0, 2) - LAST.size))
            last = stream.read()
            if not last.endswith(MAGIC):
                return False
            _, _, start, _, checksum, _ = LAST.unpack(last)
            if start == 0:
                return True
            stream.seek(start)
            summary = stream.read()[: -LAST.size]
            if checksum and zlib.crc32(last[: -len(MAGIC) - 4], zlib.crc32(summary)) != checksum:
                return False
            counts = b''
            for opcode, content in _walk(io.BytesIO(summary)):
                if opcode in (SCHEMA, CHANNEL):
                    self._define(opcode, content)
                elif opcode == STATISTICS:
                    counts = content[COUNTS + 4 :]
                elif opcode == NONE:
                    return False
            for channel, count in struct.iter_unpack('<HQ', counts):
                self._counts[self._channels.get(channel, ('', ''))[0]] += count
            return True
        return False

    def _records(self) -> Iterator[tuple[int, bytes]]:
        """Yield the records of the file, those within chunks too; count what is damaged."""
        self.faults = {'damaged_chunks': 0, 'cut_off_bytes': 0}
        with open(self.path, 'rb') as stream:
            size = stream.seek(0, 2)
            stream.seek(0)
            if stream.read(len(MAGIC)) != MAGIC:
                raise DataError(f'{self.path}: expected an MCAP file, got something else')
            for opcode, content in _walk(stream):
                self.share = stream.tell() / size
                if opcode == CHUNK:
                    for inner, part in _walk(io.BytesIO(_unpacked(content))):
                        self.faults['damaged_chunks'] += inner == NONE
                        yield inner, part
                elif opcode == NONE:
                    self.faults['cut_off_bytes'] = size - stream.tell()
                else:
                    yield opcode, content

    def _define(self, opcode: int, content: bytes) -> None:
        """Take a schema or a channel; a damaged record is left out."""
        with suppress(ValueError, struct.error):
            (key,) = struct.unpack_from('<H', content)
            if opcode == SCHEMA:
                self._schemas[key], _ = _text(content, 2)
                return
            topic, at = _text(content, 4)
            if _text(content, at)[0] == 'cdr':
                self._channels[key] = topic, self._schemas.get(struct.unpack_from('<H', content, 2)[0], '')


def _walk(stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yield opcode and content of each record; last, where one is damaged, NONE, with the stream at its begin."""
    at = stream.tell()
    size = stream.seek(0, 2)
    stream.seek(at)
    while at < size:
        head = stream.read(RECORD.size)
        opcode, length = RECORD.unpack(head) if len(head) == RECORD.size else (NONE, 0)
        if opcode in (DATA_END, FOOTER):
            return
        if opcode == NONE or at + RECORD.size + length > size:
            stream.seek(at)
            yield NONE, b''
            return
        content = stream.read(length) if opcode in READ else b''
        at += RECORD.size + length
        if opcode not in READ:
            stream.seek(at)
        yield opcode, content


def _text(content: bytes, at: int) -> tuple[str, int]:
    """Return a text of a record, and where it ends; a ValueError or struct.error says that it ends too early."""
    (length,) = struct.unpack_from('<I', content, at)
    if at + 4 + length > len(content):
        raise ValueError('a text exceeds the record')
    return content[at + 4 : at + 4 + length].decode(), at + 4 + length


def _unpacked(content: bytes) -> bytes:
    """Return the records of a chunk, and not more than it says; a zero, which is no record, where it is damaged."""
    try:
        _, _, size, checksum = struct.unpack_from('<QQQI', content)
        compression, at = _text(content, 28)
        block = content[at + 8 :]
        if size > LARGEST_CHUNK:
            raise ValueError('too large')
        if compression:
            lz4 = compression == 'lz4'  # of any other but zstd, it fails
            unpacker = library('lz4.frame').LZ4FrameDecompressor() if lz4 else zstandard().ZstdDecompressor()
            block = bytes(unpacker.decompress(block, max_length=size + 1))
        if len(block) != size or (checksum and zlib.crc32(block) != checksum):
            raise ValueError('damaged')
        return block
    except MissingDependencyError:
        raise
    except Exception:  # each decompressor raises errors of its own classes
        return b'\0'


def zstandard() -> Any:
    """Return the module for zstd, which is in the standard library from Python 3.14 on."""
    return library('compression.zstd' if sys.version_info >= (3, 14) else 'backports.zstd')


def library(name: str, purpose: str = 'read compressed recordings') -> Any:
    """Return a module that comes with ``rosbags``; a MissingDependencyError says what it is needed for."""
    try:
        return importlib.import_module(name)
    except ImportError as cause:
        raise MissingDependencyError.of('rosbags', 'bag', purpose) from cause
