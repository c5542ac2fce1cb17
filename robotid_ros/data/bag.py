# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Bags of ROS 2 (rosbag2: MCAP or sqlite3), those of the recorder node included, read without ROS.

The library ``rosbags`` opens and reads all of them. Two things are done here. It refuses an MCAP file without its end,
as a crash leaves it, and passes over a journal of sqlite3. And it takes a message at a time: 600 s of joint states at
1 kHz in MCAP take twice as long as with the blocks that are read here (docs/files.md). https://mcap.dev/spec
"""

import importlib
import json
import re
import shutil
import sqlite3
import struct
import sys
import tempfile
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from robotid_ros.arrays import Array, IntArray
from robotid_ros.data.messages import COMPLETE, CdrReader, JointStateBatch, JointStateDecoder, MessageChunk
from robotid_ros.data.recording import Recording
from robotid_ros.errors import DataError, MissingDependencyError, RobotIdError
from robotid_ros.files import file_hash
from robotid_ros.model.urdf_tree import parse_urdf
from robotid_ros.progress import Progress
from robotid_ros.reading import read_yaml, refusing

JOINT_STATE = 'sensor_msgs/msg/JointState'
STRING = 'std_msgs/msg/String'
DESCRIPTION = 'robot_description'
TRAJECTORY = 'trajectory_msgs/msg/JointTrajectory'
METADATA = 'metadata.yaml'
DATA_FILE = re.compile(r'\.(db3|mcap)(\.zstd)?$')
BATCH = 4096  # messages decoded at a time, at least
NUMBERS = {  # texts and doubles after the stamp of a message
    'geometry_msgs/WrenchStamped': (1, 6),  # force, torque
    'geometry_msgs/TwistStamped': (1, 6),
    'geometry_msgs/PoseStamped': (1, 7),  # position, quaternion (x, y, z, w)
    'nav_msgs/Odometry': (2, 49),  # pose, its covariance (36), twist along the axes of the child frame
}
"""Types whose numbers :meth:`Bag.numbers` reads."""

MAGIC = b'\x89MCAP0\r\n'
NONE, FOOTER, SCHEMA, CHANNEL, MESSAGE, CHUNK, DATA_END = 0, 2, 3, 4, 5, 6, 15  # no record begins with a zero
RECORD = struct.Struct('<BQ')  # opcode, length of the content
LAST = struct.Struct('<BQQQI8s')  # the last record and what follows it: where the summary is, 0 without one; MAGIC
MESSAGE_HEAD = struct.Struct('<HIqQ')  # before the data of a message: channel, sequence, log time, publish time
LARGEST_CHUNK = 1 << 30  # [bytes]; a chunk with a larger size is damaged
WINDOW = 1 << 20  # [bytes] of messages outside of chunks that are read at a time
BLOCK = 16384  # messages fetched from the library at a time

Block = tuple[int, Mapping[str, MessageChunk]]  # how many bytes were read, and messages by topic


@dataclass(slots=True)
class BagFile:
    """A file of MCAP or sqlite3, or the folder of a bag whose messages are compressed one by one.

    Its faults are ``cut_off_bytes`` after the last whole record, ``damaged_chunks`` that were left out,
    ``absent_messages`` that the summary counts but were not found, ``damaged_databases``.
    """

    path: Path
    topics: dict[str, str] = field(default_factory=dict)  # types of those that have messages
    complete: bool = True  # whether it has its end
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
            reader = _library('rosbags.rosbag2', 'read and write bags').Reader(whole)
            try:
                if path.suffix != '.mcap' or file._has_summary():  # without one, it would go through all records
                    reader.open()  # it counts all messages, once is enough
                    cdr = [each for each in reader.connections if each.ext.serialization_format == 'cdr']
                    file.topics = {each.topic: each.msgtype for each in cdr if each.msgcount}
                    file._reader = reader
            except Exception:
                if path.suffix != '.mcap':
                    raise
                file.complete = False
        if file._reader is None:  # what is whole can be read nonetheless
            for _ in file.messages(()):
                pass
        return file

    def _has_summary(self) -> bool:
        """Return whether a file of MCAP ends with a summary; find out whether it ends at all."""
        with open(self.path, 'rb') as stream:
            stream.seek(max(0, self.path.stat().st_size - LAST.size))
            last = stream.read()
        self.complete = len(last) == LAST.size and last.endswith(MAGIC)
        return self.complete and LAST.unpack(last)[2] != 0

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
                if end > size or opcode == NONE:
                    self.faults['cut_off_bytes'] = size - at
                if end > size or opcode in (NONE, DATA_END, FOOTER):
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
        found: dict[str, tuple[list[bytes], list[int]]] = {}  # messages and their times
        at = 0
        while at + RECORD.size <= len(block):
            opcode, length = RECORD.unpack_from(block, at)
            start, end = at + RECORD.size, at + RECORD.size + length
            if end > len(block) or opcode in (NONE, CHUNK, DATA_END, FOOTER):
                break
            if opcode == MESSAGE and length >= MESSAGE_HEAD.size:
                channel, _, arrival, _ = MESSAGE_HEAD.unpack_from(block, start)
                topic = self._channels.get(channel, '')
                if topic in topics:
                    messages, arrivals = found.setdefault(topic, ([], []))
                    messages.append(block[start + MESSAGE_HEAD.size : end])
                    arrivals.append(arrival)
            elif opcode in (SCHEMA, CHANNEL):
                self._define(opcode, block[start:end])
            at = end
        return at, {topic: MessageChunk.of(*own) for topic, own in found.items()}


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


@dataclass(slots=True)
class Bag:
    """A bag of one or more data files."""

    path: Path
    files: list[BagFile]
    names: list[Path]  # the data files as they are on disk
    lost: int = 0  # messages that the recorder missed, by the publisher's numbers
    _unpacked: tempfile.TemporaryDirectory[str] | None = field(default=None, repr=False)

    @classmethod
    def open(cls, path: str | Path) -> 'Bag':
        """Open a bag: its folder, its ``metadata.yaml``, or one of its ``.mcap`` or ``.db3`` files.

        Raises a DataError if it is none that can be read, a MissingDependencyError if a library for it is absent.
        """
        path = Path(path)
        names, content = _locate(path)
        bag = cls(path=path, files=[], names=names, lost=_lost(content))
        try:
            if str(content.get('compression_mode', '')).lower() == 'message':
                bag.files.append(BagFile.open(names[0].parent))
                return bag
            for name in names:
                whole = bag._unpack(name) if name.suffix == '.zstd' else name
                bag.files.append(BagFile.open(whole))
        except OSError as cause:
            raise DataError(f'{path}: this bag cannot be read: {cause.strerror}') from cause
        return bag

    @property
    def topics(self) -> dict[str, str]:
        """Types of the topics."""
        return {topic: kind.replace('/msg/', '/') for file in self.files for topic, kind in file.topics.items()}

    def beside(self, topic: str, name: str, kind: str) -> str:
        """Return the topic of a type with this last name in the namespace nearest to another's, '' if there is none."""
        near = topic.split('/')[:-1]

        def apart(each: str) -> tuple[int, str]:
            space = each.split('/')[:-1]
            shared = next((k for k, pair in enumerate(zip(space, near, strict=False)) if len(set(pair)) > 1), None)
            return -(min(len(space), len(near)) if shared is None else shared), each

        own = self.of_type(kind.replace('/msg/', '/'))
        return min((each for each in own if each.rpartition('/')[2] == name), key=apart, default='')

    def reference_topic(self, topic: str) -> str:
        """Return the topic on which an excitation of these joint states was announced, '' if there is none."""
        return self.beside(topic, 'reference', TRAJECTORY)

    @property
    def complete(self) -> bool:
        """Whether every file was written to its end."""
        return all(file.complete for file in self.files)

    @property
    def faults(self) -> dict[str, int]:
        """Counts of damaged parts, of what was read so far."""
        found: dict[str, int] = {}
        for file in self.files:
            for name, count in file.faults.items():
                found[name] = found.get(name, 0) + count
        return found

    def choose(self, topic: str | None, kind: str = JOINT_STATE, remedy: str = '', joints: Collection[str] = ()) -> str:
        """Return the topic of a type to be read; refuse a bag with none, or with several where none is given.

        Of several with joint states, such as a gripper's, it is the one with efforts of the most of the ``joints``;
        where none are given, of those in the description nearest to each, or of all.
        """
        names = self.of_type(kind.replace('/msg/', '/'))
        if not names:
            cut = '' if self.complete else '; it has no end, and what is whole holds none'
            raise DataError(f'{self.path}: expected a topic of {kind}, the bag has none{cut}{remedy}')
        if topic is None:
            short = self._with_most_joints(names, joints) if kind == JOINT_STATE and len(names) > 1 else names
            if len(short) != 1:
                raise DataError(f'{self.path}: say which topic to read; {kind} is on: {_listed(names)}')
            topic = short[0]
        if topic not in names:
            raise DataError(f"{self.path}: topic '{topic}' has no {kind}; there are: {_listed(names)}")
        return topic

    def _with_most_joints(self, topics: Sequence[str], joints: Collection[str]) -> list[str]:
        """Return those of some topics whose first messages have efforts, or else positions, of the most joints.

        One that is called joint_states, as is usual, is taken before others if it has any of them.
        """
        described = {name: '' if joints else self.beside(name, DESCRIPTION, STRING) for name in topics}
        firsts = self.firsts({*topics, *described.values()} - {''})
        count = dict.fromkeys(topics, (0, 0))
        for name in firsts.keys() & count:
            decoder = JointStateDecoder()
            decoder.decode_block(firsts[name].payload, firsts[name].lengths)
            told = firsts.get(described[name])
            wanted = joints or (() if told is None else _described_joints(told.messages()[0]))
            found = [
                (sum(not wanted or joint in wanted for joint in each.names), each.offsets[2] >= 0)
                for each in decoder.layouts
            ]
            count[name] = max(((own if effort else 0, own) for own, effort in found), default=(0, 0))
        usual = [name for name in topics if name.rpartition('/')[2] == 'joint_states']
        some = [name for name in usual if count[name][1]] or [name for name in topics if count[name][1]] or usual
        return [name for name in some if count[name] == max(count[each] for each in some)] or list(topics)

    def firsts(self, topics: Collection[str]) -> dict[str, MessageChunk]:
        """Return the first messages of each topic, which latched topics have at the beginning, and read no further."""
        found: dict[str, MessageChunk] = {}
        for chunks in self.messages(topics) if topics else ():
            found = {**chunks, **found}
            if found.keys() >= set(topics):
                break
        return found

    def messages(
        self, topics: Collection[str], progress: Progress | None = None, alone: str | None = None
    ) -> Iterator[Mapping[str, MessageChunk]]:
        """Yield the messages of some topics in the order in which they were written, by topic, :data:`BATCH` at a time.

        Blocks of the file with messages of the topic ``alone`` are yielded as they are.
        """
        total = max(1, sum(file.path.stat().st_size for file in self.files))
        before = 0
        held: dict[str, list[MessageChunk]] = {}
        for file in self.files:
            for place, block in file.messages(topics):
                if held and (alone in block or max(sum(map(len, chunks)) for chunks in held.values()) >= BATCH):
                    yield {name: MessageChunk.joined(chunks) for name, chunks in held.items()}
                    held = {}
                if alone in block:
                    yield block
                else:
                    for name, chunk in block.items():
                        held.setdefault(name, []).append(chunk)
                if progress is not None:
                    progress((before + place) / total, 'reading')
            before += file.path.stat().st_size
        if held:
            yield {name: MessageChunk.joined(chunks) for name, chunks in held.items()}

    def of_type(self, kind: str) -> list[str]:
        """Return the topics of a type, in the order of the alphabet."""
        return sorted(name for name, its in self.topics.items() if its == kind)

    def numbers(self, topic: str) -> tuple[IntArray, Array]:
        """Return the stamps [ns] and the numbers of the messages of a topic of one of the types :data:`NUMBERS`."""
        texts, count = NUMBERS[self.topics[topic]]
        stamps: list[int] = []
        rows: list[tuple[float, ...]] = []
        for chunks in self.messages([topic]):
            for message in chunks[topic].messages():
                try:
                    reader = CdrReader(message)
                    stamps.append(reader.time())
                    for _ in range(texts):  # the frames
                        reader.string()
                    rows.append(reader.doubles(count))
                except ValueError as cause:
                    what = f'message {len(rows) + 1} of topic {topic}'
                    raise DataError(f'{self.path}: {what} cannot be read: {cause}') from cause
        return np.array(stamps, dtype=np.int64), np.array(rows).reshape(len(rows), count)

    def provenance(self, topic: str) -> dict[str, Any]:
        """Return file names, hashes, format, topic and faults; to be called after the messages were read."""
        path = self.path.parent if self.path.name == METADATA else self.path
        kind = DATA_FILE.search(self.names[0].name)
        others = [name for name in self.of_type(JOINT_STATE.replace('/msg/', '/')) if name != topic]
        return {
            'file': path.name,
            'sha256': {name.name: file_hash(name) for name in self.names},
            'format': f'rosbag2 {kind[1] if kind else ""}',
            'topic': topic,
            **({'other_topics': others} if others else {}),
            'ended_properly': self.complete,
            'faults': {**self.faults, **({'lost_before_capture': self.lost} if self.lost else {})},
        }

    def _unpack(self, path: Path) -> Path:
        """Return the decompressed copy of a data file that is compressed as a whole."""
        if self._unpacked is None:
            self._unpacked = tempfile.TemporaryDirectory(prefix='robotid-bag-')
        target = Path(self._unpacked.name) / path.stem
        try:
            with zstandard().open(path, 'rb') as source, open(target, 'wb') as file:
                shutil.copyfileobj(source, file)
        except (zstandard().ZstdError, EOFError) as cause:
            raise DataError(f'{path}: this bag cannot be read: {cause}') from cause
        return target


def _described_joints(message: bytes) -> Collection[str]:
    """Return the joints of a description that can be read; what is wrong with another is said where it is used."""
    with suppress(RobotIdError), refusing(DESCRIPTION, DataError):
        return parse_urdf(CdrReader(message).string()).joints
    return ()


def is_bag(path: str | Path) -> bool:
    """Return whether a path looks like a bag: a folder, its ``metadata.yaml``, or one of its data files."""
    path = Path(path)
    return path.is_dir() or path.name == METADATA or path.suffix in ('.db3', '.mcap', '.zstd')


def is_bag_folder(folder: Path) -> bool:
    """Return whether a folder is a bag, be it one without metadata.yaml, as a killed recorder leaves it."""
    return (folder / METADATA).is_file() or any(DATA_FILE.search(path.name) for path in folder.iterdir())


def read_bag(path: str | Path, topic: str | None = None, joints: Sequence[str] | None = None) -> Recording:
    """Read the joint states of a bag, from the topic that is given or :meth:`Bag.choose` finds.

    Without joints, those of the message with the most joints among the first ones are taken. Times are the header
    stamps (those of the bag where no header has one), from the first. Raises a DataError if it is no readable bag, or
    the topic or a joint is not in it.
    """
    bag = Bag.open(path)
    chosen = bag.choose(topic, joints=joints or ())
    decoder = JointStateDecoder(joints=tuple(joints or ()))
    batches, arrivals = [], []
    for chunk in (chunks[chosen] for chunks in bag.messages([chosen])):
        batches.append(decoder.decode_block(chunk.payload, chunk.lengths))
        arrivals.append(chunk.arrival)
    if not batches:
        raise DataError(f'{path}: topic {chosen} has no messages')
    if not decoder.joints:
        raise DataError(f'{path}: no message of topic {chosen} could be read as {JOINT_STATE}')
    if not any((batch.reason == 0).any() for batch in batches):
        have = _listed(sorted({name for layout in decoder.layouts for name in layout.names}))
        raise DataError(f'{path}: no message has all of the joints {_listed(decoder.joints)}; there are: {have}')
    return _assemble(decoder, batches, np.concatenate(arrivals), bag.provenance(chosen))


def _assemble(
    decoder: JointStateDecoder, batches: Sequence[JointStateBatch], arrival: Any, provenance: dict[str, Any]
) -> Recording:
    """Return decoded messages as one recording; those without all joints or without stamp are counted and left out.

    Where no message has a stamp, the times of ``arrival`` [ns] are used.
    """
    stamps = np.concatenate([b.stamp for b in batches])
    complete = np.concatenate([b.reason for b in batches]) == COMPLETE
    unstamped = complete & (stamps == 0)
    if (complete & ~unstamped).any():
        complete &= ~unstamped
    stamp = stamps[complete]
    arrived = np.asarray(arrival, dtype=np.int64)[complete]
    counts = {**decoder.counts, 'unstamped': int(unstamped.sum())}
    if not stamp.any():
        stamp = arrived
    origin = int(stamp[0]) if len(stamp) else 0

    def collect(name: str) -> Array | None:
        value: Array = np.concatenate([getattr(b, name) for b in batches])[complete]
        return None if np.isnan(value).all() else value

    position = collect('position')
    if position is None:
        raise DataError('no joint state has a position; expected one for each joint')
    return Recording(
        joint_names=decoder.joints,
        time=(stamp - origin) * 1e-9,
        position=position,
        velocity=collect('velocity'),
        effort=collect('effort'),
        origin=origin,
        arrival=(arrived - arrived[0]) * 1e-9 if len(arrived) else None,
        provenance={**provenance, 'counts': counts, 'extra_joints': decoder.extra},
    )


def _locate(path: Path) -> tuple[list[Path], dict[str, Any]]:
    """Return the data files of a bag in their order, and what its metadata.yaml says."""
    if not path.exists():
        raise DataError(f'{path} does not exist')
    folder = path if path.is_dir() else path.parent
    content = _metadata(folder / METADATA)
    files = [file for file in folder.iterdir() if DATA_FILE.search(file.name) and file.is_file()]
    listed = content.get('relative_file_paths', [])
    if not content and path.is_file():
        files = []
    elif isinstance(listed, list):
        wanted = {Path(str(name)).name: k for k, name in enumerate(listed)}
        # rosbag2 lists a compressed file with or without the suffix of the compression.
        known = [file for file in files if file.name in wanted or file.name.removesuffix('.zstd') in wanted]
        files = known or files
    if path.is_file() and path.name != METADATA and path not in files:
        return [path], content
    if not files:
        raise DataError(
            f'{path}: expected a bag (a folder with metadata.yaml and .db3 or .mcap files), got none of these'
        )
    return sorted(
        files, key=lambda file: [int(s) if s.isdigit() else s for s in re.split(r'(\d+)', file.name)]
    ), content


def _metadata(path: Path) -> dict[str, Any]:
    """Return the contents of metadata.yaml; empty where it is missing or damaged, as after a crash."""
    try:
        return dict(read_yaml(path, 'metadata', DataError)['rosbag2_bagfile_information'])
    except (DataError, ValueError, KeyError, TypeError):
        return {}


def _lost(content: dict[str, Any]) -> int:
    """Return what the recorder has counted, from the summary it leaves with the metadata."""
    try:
        return int(json.loads(content['custom_data']['robotid_ros'])['found']['lost_before_capture'])
    except (KeyError, ValueError, TypeError, RecursionError):
        return 0


def _listed(names: Collection[str]) -> str:
    """Return names as text for a message, shortened where there are many."""
    text = ', '.join(names)
    return text if len(text) <= 160 else f'{text[:150]} ... ({len(names)} in all)'
