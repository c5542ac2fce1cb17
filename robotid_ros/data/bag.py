# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Bags of ROS 2 (rosbag2: MCAP or sqlite3), those of the recorder node included, read without ROS.

Databases are read by the library ``rosbags``, MCAP by :mod:`robotid_ros.data.mcap_file`.
"""

import json
import re
import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from itertools import groupby, islice, takewhile
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from robotid_ros.arrays import Array, IntArray, given_away
from robotid_ros.data.mcap_file import MAGIC, McapFile, Message, library, zstandard
from robotid_ros.data.messages import COMPLETE, FIELDS, CdrReader, JointStateDecoder, MessageChunk
from robotid_ros.data.recording import Recording
from robotid_ros.errors import DataError, RobotIdError
from robotid_ros.files import file_hash
from robotid_ros.model.urdf_tree import parse_urdf
from robotid_ros.progress import Progress
from robotid_ros.reading import read_yaml, refusing

JOINT_STATE = 'sensor_msgs/msg/JointState'
STRING = 'std_msgs/msg/String'
DESCRIPTION = 'robot_description'
TRAJECTORY = 'trajectory_msgs/msg/JointTrajectory'
WRENCH = 'geometry_msgs/msg/WrenchStamped'
METADATA = 'metadata.yaml'
DATA_FILE = re.compile(r'\.(db3|mcap)(\.zstd)?$')
BATCH = 4096  # messages decoded at a time, at most
LONGEST = 256  # characters of a type; a damaged database may hold anything
FIRST = 100  # messages that show which joints a topic has: a gripper may publish on the same one
NUMBERS: dict[str, tuple[int, int, Sequence[int]]] = {
    'geometry_msgs/WrenchStamped': (1, 6, range(6)),  # force, torque
    'geometry_msgs/TwistStamped': (1, 6, range(6)),
    'geometry_msgs/PoseStamped': (1, 7, range(7)),  # position, quaternion (x, y, z, w)
    'nav_msgs/Odometry': (2, 49, (*range(43, 49), *range(7))),  # twist along the axes of the child frame, pose
}
"""Types whose numbers :meth:`Bag.numbers` reads: texts and doubles after the stamp, and those that are returned."""


class LibraryFile:
    """A database, or the folder of a bag whose messages are compressed one by one; attributes as of an McapFile.

    Its faults are ``damaged_databases``. A DataError says that it is no bag, or damaged where nothing can be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.complete = True
        self.faults: dict[str, int] = {}
        self.share = 0.0
        self._copy: tempfile.TemporaryDirectory[str] | None = None
        with refusing(f'{path}: this bag', DataError):
            whole = self._with_journal() if path.suffix == '.db3' else path
            self._reader = library('rosbags.rosbag2', 'read and write bags').Reader(whole)
            self._reader.open()  # it counts all messages, once is enough
            cdr = [each for each in self._reader.connections if each.ext.serialization_format == 'cdr']
            self.topics = {str(each.topic): str(each.msgtype)[:LONGEST] for each in cdr if each.msgcount}

    def messages(self, topics: Collection[str]) -> Iterator[Message]:
        """Yield the messages of some topics in the order of their arrival."""
        wanted = [each for each in self._reader.connections if each.topic in topics]
        total = sum(each.msgcount for each in wanted)
        with refusing(f'{self.path}: this bag', DataError):
            for done, (connection, arrival, data) in enumerate(self._reader.messages(wanted) if wanted else ()):
                self.share = done / total
                yield connection.topic, arrival, bytes(memoryview(data))  # a damaged one holds text or a number

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
            # A view in their place can be without end.
            ((views,),) = database.execute("SELECT count(*) FROM sqlite_master WHERE type NOT IN ('table', 'index')")
            if views:
                raise DataError(f'{self.path}: expected tables as rosbag2 writes them, got views or triggers')
            # Pages have no checksum: this checks the structure; altered numbers cannot be found.
            ((found,),) = database.execute('PRAGMA quick_check(1)')
        self.faults['damaged_databases'] = int(found != 'ok')
        return whole


@dataclass(slots=True)
class Bag:
    """A bag of one or more data files."""

    path: Path
    files: list[McapFile | LibraryFile]
    names: list[Path]  # the data files as they are on disk
    lost: int = 0  # messages that the recorder missed, by the publisher's numbers
    _unpacked: tempfile.TemporaryDirectory[str] | None = field(default=None, repr=False)

    @classmethod
    def open(cls, path: str | Path) -> 'Bag':
        """Open a bag: its folder, its ``metadata.yaml``, or one of its ``.mcap`` or ``.db3`` files.

        Raises a DataError if it is none that can be read, a MissingDependencyError if a library for it is absent.
        """
        path = Path(path)
        if not path.exists():
            raise DataError(f'{path} does not exist')
        folder = path if path.is_dir() else path.parent
        content = _metadata(folder / METADATA)
        names = [file for file in folder.iterdir() if DATA_FILE.search(file.name) and file.is_file()]
        listed = content.get('relative_file_paths', [])
        if not content and path.is_file():
            names = []
        elif isinstance(listed, list):
            wanted = {Path(str(name)).name for name in listed}
            # rosbag2 lists a compressed file with or without the suffix of the compression.
            names = [name for name in names if {name.name, name.name.removesuffix('.zstd')} & wanted] or names
        if path.is_file() and path.name != METADATA and path not in names:
            names = [path]
        elif not names:
            raise DataError(
                f'{path}: expected a bag (a folder with metadata.yaml and .db3 or .mcap files), got none of these'
            )
        names.sort(key=lambda file: [int(s) if s.isdigit() else s for s in re.split(r'(\d+)', file.name)])
        bag = cls(path=path, files=[], names=names, lost=_lost(content))
        with refusing(f'{path}: this bag', DataError):
            if str(content.get('compression_mode', '')).lower() == 'message':
                bag.files.append(LibraryFile(names[0].parent))
                return bag
            for name in names:
                whole = bag._unpack(name) if name.suffix == '.zstd' else name
                bag.files.append(McapFile(whole) if whole.suffix == '.mcap' else LibraryFile(whole))
        return bag

    @property
    def topics(self) -> dict[str, str]:
        """Types of the topics."""
        return {topic: kind.replace('/msg/', '/') for file in self.files for topic, kind in file.topics.items()}

    def beside(self, topic: str, name: str, kind: str) -> str:
        """Return the topic of a type with this last name in the namespace nearest to another's, '' if there is none."""
        near = topic.split('/')[:-1]

        def apart(each: str) -> tuple[int, str]:
            shared = takewhile(lambda pair: pair[0] == pair[1], zip(each.split('/')[:-1], near, strict=False))
            return -len(list(shared)), each

        own = self.of_type(kind)
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
        found = Counter[str]()
        for file in self.files:
            found.update(file.faults)
        return dict(found)

    def choose(self, topic: str | None, kind: str = JOINT_STATE, remedy: str = '', joints: Collection[str] = ()) -> str:
        """Return the topic of a type to be read; refuse a bag with none, or with several where none is given.

        Of several with joint states, such as a gripper's, it is the one with efforts of the most of the ``joints``;
        where none are given, of those in the description nearest to each, or of all.
        """
        names = self.of_type(kind)
        if not names:
            cut = '' if self.complete else '; it has no end, and what is whole holds none'
            message = f'{self.path}: expected a topic of {kind}, the bag has none{cut}{remedy}'
            raise DataError(message, expected=kind, found=tuple(self.topics))
        if topic is None:
            short = self._with_most_joints(names, joints) if kind == JOINT_STATE and len(names) > 1 else names
            if len(short) != 1:
                message = f'{self.path}: say which topic to read; {kind} is on: {_listed(names)}'
                raise DataError(message, expected=kind, found=tuple(names))
            topic = short[0]
        if topic not in names:
            message = f"{self.path}: topic '{topic}' has no {kind}; there are: {_listed(names)}"
            raise DataError(message, name=topic, expected=tuple(names))
        return topic

    def _with_most_joints(self, topics: Sequence[str], joints: Collection[str]) -> list[str]:
        """Return those of some topics whose first messages have efforts, or else positions, of the most joints.

        One that is called joint_states, as is usual, is taken before others if it has any of them.
        """
        count = {}
        for name in topics:
            decoder = JointStateDecoder()
            decoder.decode(self.first(name, FIRST))
            told = [] if joints else self.first(self.beside(name, DESCRIPTION, STRING))
            wanted = joints or (_described_joints(told[0]) if told else ())
            found = [
                (sum(not wanted or joint in wanted for joint in each.names), each.offsets[2] >= 0)
                for each in decoder.layouts
            ]
            count[name] = max(((own if effort else 0, own) for own, effort in found), default=(0, 0))
        usual = [name for name in topics if name.rpartition('/')[2] == 'joint_states']
        some = [name for name in usual if count[name][1]] or [name for name in topics if count[name][1]] or usual
        return [name for name in some if count[name] == max(count[each] for each in some)] or list(topics)

    def first(self, topic: str, count: int = 1) -> list[bytes]:
        """Return the first messages of a topic, of a latched one usually the only one, and read no further."""
        return [data for _, _, data in islice(self._all([topic]), count)]

    def messages(self, topics: Collection[str], progress: Progress | None = None) -> Iterator[tuple[str, MessageChunk]]:
        """Yield topic and messages, those of some topics in their order, at most :data:`BATCH` at a time."""
        for topic, run in groupby(self._all(topics), key=itemgetter(0)):
            while block := list(islice(run, BATCH)):
                yield topic, MessageChunk.of([data for _, _, data in block], [arrival for _, arrival, _ in block])
                if progress is not None:
                    progress(sum(file.share for file in self.files) / len(self.files), 'reading')

    def _all(self, topics: Collection[str]) -> Iterator[Message]:
        for file in self.files:
            if not file.topics.keys().isdisjoint(topics):
                yield from file.messages(topics)

    def of_type(self, kind: str) -> list[str]:
        """Return the topics of a type, in the order of the alphabet."""
        return sorted(name for name, its in self.topics.items() if its == kind.replace('/msg/', '/'))

    def numbers(self, topic: str) -> tuple[IntArray, Array]:
        """Return the stamps [ns] and the numbers of the messages of a topic of one of the types :data:`NUMBERS`."""
        texts, count, used = NUMBERS[self.topics[topic]]
        stamps: list[int] = []
        rows: list[tuple[float, ...]] = []
        for _, _, message in self._all([topic]):
            with refusing(f'{self.path}: message {len(rows) + 1} of topic {topic}', DataError):
                reader = CdrReader(message)
                stamps.append(reader.time())
                for _ in range(texts):  # the frames
                    reader.string()
                rows.append(reader.doubles(count))
        return np.array(stamps, dtype=np.int64), np.array(rows).reshape(len(rows), count)[:, used]

    def provenance(self, topic: str) -> dict[str, Any]:
        """Return file names, hashes, format, topic and faults; to be called after the messages were read."""
        path = self.path.parent if self.path.name == METADATA else self.path
        kind = DATA_FILE.search(self.names[0].name)
        others = [name for name in self.of_type(JOINT_STATE) if name != topic]
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
        with zstandard().open(path, 'rb') as source, open(target, 'wb') as file:
            head = source.read(len(MAGIC))
            if not head.startswith((MAGIC, b'SQLite')):  # a small file can hold any number of zeros
                raise ValueError('expected MCAP or sqlite3 in it')
            file.write(head)
            shutil.copyfileobj(source, file)
        return target


def _described_joints(message: bytes) -> Collection[str]:
    """Return the joints of a description that can be read; what is wrong with another is said where it is used."""
    with suppress(RobotIdError), refusing(DESCRIPTION, DataError):
        return parse_urdf(CdrReader(message).string()).joints
    return ()


def opened(path: 'str | Path | Bag') -> 'Path | Bag':
    """Return the bag at a path: a folder, its ``metadata.yaml``, or one of its data files; of any other, the path."""
    if isinstance(path, Bag):
        return path
    path = Path(path)
    known = path.is_dir() or path.name == METADATA or path.suffix in ('.db3', '.mcap', '.zstd')
    return Bag.open(path) if known else path


def is_bag_folder(folder: Path) -> bool:
    """Return whether a folder is a bag, be it one without metadata.yaml, as a killed recorder leaves it."""
    return (folder / METADATA).is_file() or any(DATA_FILE.search(path.name) for path in folder.iterdir())


def read_bag(bag: Bag, topic: str | None = None, joints: Sequence[str] | None = None) -> Recording:
    """Return the joint states of a bag, from the topic that is given or :meth:`Bag.choose` finds.

    Without joints, those of the message with the most joints among the first ones are taken. Times are the header
    stamps (those of the bag where no header has one), from the first; messages without all joints or without stamp are
    counted and left out. Raises a DataError if it cannot be read, or the topic or a joint is not in it.
    """
    chosen = bag.choose(topic, joints=joints or ())
    decoder = JointStateDecoder(joints=tuple(joints or ()))
    columns: dict[str, Any] = {}
    count = 0
    for _, chunk in bag.messages([chosen]):
        batch = decoder.decode_block(chunk.payload, chunk.lengths)
        complete = batch['reason'] == COMPLETE
        if complete.any():
            count += int(complete.sum())
            for name in ('stamp', 'arrival', *FIELDS):
                rows = (chunk.arrival if name == 'arrival' else batch[name])[complete]
                column = columns.setdefault(name, rows[:0].copy())
                if len(column) < count:  # in place: the parts and the whole together would take twice the memory
                    column.resize((count + count // 4, *rows.shape[1:]), refcheck=False)
                column[count - len(rows) : count] = rows
    if not decoder.counts['messages']:
        raise DataError(f'{bag.path}: topic {chosen} has no messages')
    if not decoder.joints:
        raise DataError(f'{bag.path}: no message of topic {chosen} could be read as {JOINT_STATE}')
    if not count:
        have = _listed(sorted({name for layout in decoder.layouts for name in layout.names}))
        message = f'{bag.path}: no message has all of the joints {_listed(decoder.joints)}; there are: {have}'
        raise DataError(message, expected=decoder.joints)
    for column in columns.values():
        column.resize((count, *column.shape[1:]), refcheck=False)
    stamps, arrival = columns['stamp'], columns['arrival']
    stamped = stamps != 0
    unstamped = int((~stamped).sum())
    if unstamped == len(stamps):
        stamps, stamped = arrival, ~stamped
    origin = int(stamps[stamped][0])

    def collect(name: str) -> Array | None:
        value = columns.pop(name)
        if np.isnan(value).all():
            return None
        return given_away(value[stamped] if unstamped and not stamped.all() else value)

    position = collect('position')
    if position is None:
        raise DataError(f'{bag.path}: no joint state has a position; expected one for each joint')
    counts = {**decoder.counts, 'unstamped': unstamped}
    return Recording(
        joint_names=decoder.joints,
        time=(stamps[stamped] - origin) * 1e-9,
        position=position,
        velocity=collect('velocity'),
        effort=collect('effort'),
        origin=origin,
        arrival=(arrival[stamped] - arrival[stamped][0]) * 1e-9,
        provenance={**bag.provenance(chosen), 'counts': counts, 'extra_joints': decoder.extra},
    )


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
