# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""One data file of a bag, complete or cut off, some thousand messages at a time.

The library ``rosbags`` opens and reads all of them. Two things are done here. It refuses an MCAP file without its end,
as a crash leaves it, and passes over a journal of sqlite3. And it takes a message at a time: 600 s of joint states at
1 kHz in MCAP take twice as long as with the blocks that are read here (docs/files.md). https://mcap.dev/spec
"""

import importlib
import shutil
import sqlite3
import struct
import sys
import tempfile
import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from robotid_ros.data.messages import MessageChunk
from robotid_ros.errors import DataError, MissingDependencyError

MAGIC = b'\x89MCAP0\r\n'
FOOTER, SCHEMA, CHANNEL, MESSAGE, CHUNK, DATA_END = 2, 3, 4, 5, 6, 15
RECORD = struct.Struct('<BQ')  # opcode, length of the content
MESSAGE_HEAD = 22  # bytes of a message's content before its data: channel, sequence, log time, publish time
LARGEST_CHUNK = 1 << 30  # [bytes]; a chunk with a larger size is damaged
WINDOW = 1 << 20  # [bytes] of messages outside of chunks that are read at a time
RUN = 256  # messages compared at a time
BLOCK = 16384  # messages fetched from the library at a time

Block = tuple[int, Mapping[str, MessageChunk]]  # how many bytes were read, and messages by topic


@dataclass(slots=True)
class BagFile:
    """A file of MCAP or sqlite3, or the folder of a bag whose messages are compressed one by one.

    Attributes
    ----------
    path : Path
    topics : dict of str to str
        Types of the topics that have messages.
    complete : bool
        Whether it has its end.
    faults : dict of str to int
        ``cut_off_bytes`` after the last whole record, ``damaged_chunks`` that were left out,
        ``absent_messages`` that the summary counts but were not found, ``damaged_databases``.
    """

    path: Path
    topics: dict[str, str] = field(default_factory=dict)
    complete: bool = True
    faults: dict[str, int] = field(default_factory=dict)
    _reader: Any = None
    _copy: tempfile.TemporaryDirectory[str] | None = None
    _schemas: dict[int, str] = field(default_factory=dict)
    _channels: dict[int, str] = field(default_factory=dict)  # topics in CDR

    @classmethod
    def open(cls, path: Path) -> 'BagFile':
        """Return it with its topics; a DataError says that it is no bag, or damaged where nothing of it can be read."""
        file = cls(path)
        with _reading(path):
            whole = file._with_journal() if path.suffix == '.db3' else path
            file._reader = _library('rosbags.rosbag2', 'read and write bags').Reader(whole)
            try:
                file._reader.open()  # it counts all messages, once is enough
                cdr = [each for each in file._reader.connections if each.ext.serialization_format == 'cdr']
                file.topics = {each.topic: each.msgtype for each in cdr if each.msgcount}
            except Exception:
                if path.suffix != '.mcap':
                    raise
                file._reader, file.complete = None, False
        if file._reader is None:  # what is whole can be read nonetheless
            for _ in file.messages(()):
                pass
        return file

    def messages(self, topics: Collection[str]) -> Iterator[Block]:
        """Yield the messages of some topics, block by block."""
        wanted = [] if self._reader is None else [each for each in self._reader.connections if each.topic in topics]
        total, done = sum(each.msgcount for each in wanted), 0
        for place, chunks in self._from_mcap(topics) if self.path.suffix == '.mcap' else self._from_library(wanted):
            done += sum(map(len, chunks.values()))
            yield place or self.path.stat().st_size * done // max(total, 1), chunks
        if self.path.suffix == '.mcap':
            self.faults['absent_messages'] = max(0, total - done)

    def _from_library(self, wanted: list[Any]) -> Iterator[Block]:
        with _reading(self.path):
            messages = self._reader.messages(wanted) if wanted else iter(())
            while block := list(islice(messages, BLOCK)):
                chunks = {}
                for each in wanted:
                    own = block if len(wanted) == 1 else [item for item in block if item[0].id == each.id]
                    if own:
                        chunks[each.topic] = MessageChunk.of([item[2] for item in own], [item[1] for item in own])
                yield 0, chunks

    def _with_journal(self) -> Path:
        """Return a database, or a copy of it with what a killed recorder left in its journal."""
        whole, journal = self.path, self.path.with_name(f'{self.path.name}-wal')
        if journal.is_file() and journal.stat().st_size:
            self._copy = tempfile.TemporaryDirectory(prefix='robotid-bag-')
            whole = Path(self._copy.name) / self.path.name
            for file in (self.path, journal):
                shutil.copyfile(file, whole.with_name(file.name))
            self.complete = False
        with closing(sqlite3.connect(f'{whole.absolute().as_uri()}', uri=True)) as database:
            if self._copy is not None:
                database.execute('PRAGMA wal_checkpoint(TRUNCATE)')
            # Pages have no checksum: this checks the structure; altered numbers cannot be found.
            ((found,),) = database.execute('PRAGMA quick_check(1)')
        self.faults['damaged_databases'] = int(found != 'ok')
        return whole

    def _from_mcap(self, topics: Collection[str]) -> Iterator[Block]:
        """Yield the messages of each chunk, and of windows where messages are outside of chunks."""
        self.faults.update(damaged_chunks=0, cut_off_bytes=0)
        with open(self.path, 'rb') as stream:
            size = stream.seek(0, 2)
            stream.seek(0)
            if stream.read(len(MAGIC)) != MAGIC:
                raise DataError(f'{self.path}: expected an MCAP file, got something else')
            at = len(MAGIC)
            while at < size:
                stream.seek(at)
                head = stream.read(RECORD.size)
                opcode, length = RECORD.unpack(head) if len(head) == RECORD.size else (0, size)
                end = at + RECORD.size + length
                if end > size:
                    self.faults['cut_off_bytes'] = size - at
                if end > size or opcode in (DATA_END, FOOTER):
                    break
                block = b''
                if opcode == CHUNK:
                    block = self._unpacked(stream.read(length))
                elif opcode in (SCHEMA, CHANNEL, MESSAGE):
                    stream.seek(at)
                    block = stream.read(max(WINDOW, end - at))
                used, chunks = self._scan(block, topics)
                if opcode == CHUNK:
                    self.faults['damaged_chunks'] += used < len(block)
                elif block:
                    end = at + used
                if chunks:
                    yield end, chunks
                at = end

    def _unpacked(self, content: bytes) -> bytes:
        """Return the records of a chunk, none where it is damaged."""
        try:
            _, _, size, checksum = struct.unpack_from('<QQQI', content)
            compression, at = _text(content, 28)
            block = _decompressed(content[at + 8 :], compression, size)
            if len(block) != size or (checksum and zlib.crc32(block) != checksum):
                raise ValueError('damaged')
            return block
        except MissingDependencyError:
            raise
        except Exception:  # each decompressor raises errors of its own classes
            self.faults['damaged_chunks'] += 1
            return b''

    def _define(self, opcode: int, content: bytes) -> None:
        """Take a schema or a channel; a damaged record is left out."""
        with suppress(ValueError, struct.error):
            (key,) = struct.unpack_from('<H', content)
            if opcode == SCHEMA:
                self._schemas[key], _ = _text(content, 2)
                return
            topic, at = _text(content, 4)
            if _text(content, at)[0] == 'cdr':
                self._channels[key] = topic
                if self._reader is None:
                    self.topics[topic] = self._schemas.get(struct.unpack_from('<H', content, 2)[0], '')

    def _scan(self, block: bytes, topics: Collection[str]) -> tuple[int, dict[str, MessageChunk]]:
        """Return where the last whole record before a chunk or the end is over, and the messages of some topics."""
        found: dict[str, list[tuple[int, int, int]]] = {}  # position, length and number of records that are alike
        at = 0
        while at + RECORD.size <= len(block):
            opcode, length = RECORD.unpack_from(block, at)
            stride, count = RECORD.size + length, 1
            if at + stride > len(block) or opcode in (CHUNK, DATA_END, FOOTER):
                break
            if opcode == MESSAGE and length >= MESSAGE_HEAD:
                count = _run(block, at, stride)
                topic = self._channels.get(int.from_bytes(block[at + 9 : at + 11], 'little'))
                if topic in topics:
                    found.setdefault(str(topic), []).append((at, stride, count))
            elif opcode in (SCHEMA, CHANNEL):
                self._define(opcode, block[at + RECORD.size : at + stride])
            at += count * stride
        return at, {topic: _chunk(block, runs) for topic, runs in found.items()}


def _chunk(block: bytes, runs: list[tuple[int, int, int]]) -> MessageChunk:
    """Return the messages of runs of records that are equally long: where each begins, its length, their number."""
    parts, arrivals = [], []
    for at, stride, count in runs:
        rows = np.frombuffer(block, np.uint8, count * stride, at).reshape(count, stride)
        # The log time (8 bytes) comes after opcode, length, channel and a number.
        arrivals.append(np.ascontiguousarray(rows[:, 15:23]).view('<i8')[:, 0])
        parts.append(rows[:, RECORD.size + MESSAGE_HEAD :].reshape(-1))
    lengths = [np.full(count, stride - RECORD.size - MESSAGE_HEAD) for _, stride, count in runs]
    arrival = np.concatenate(arrivals)
    return MessageChunk(
        payload=np.concatenate(parts),
        lengths=np.concatenate(lengths),
        arrival=arrival.astype(np.int64),
        sequence=np.full(len(arrival), -1),
        publisher=np.zeros(len(arrival), dtype=np.int64),
    )


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


def _text(content: bytes, at: int) -> tuple[str, int]:
    """Return a text of a record, and where it ends; a ValueError or struct.error says that it ends too early."""
    (length,) = struct.unpack_from('<I', content, at)
    if at + 4 + length > len(content):
        raise ValueError('a text exceeds the record')
    return content[at + 4 : at + 4 + length].decode(), at + 4 + length


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


def _library(name: str, purpose: str = 'read compressed recordings') -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as cause:
        raise MissingDependencyError.of('rosbags', 'bag', purpose) from cause


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Turn errors of the library, of many classes, into a DataError of one line."""
    try:
        yield
    except (DataError, MissingDependencyError, KeyboardInterrupt, OSError):
        raise
    except Exception as cause:
        raise DataError(f'{path}: this bag cannot be read: {" ".join(str(cause).split())[:200]}') from cause
