# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Bags of ROS 2 (rosbag2: MCAP or sqlite3), those of the recorder node included, read without ROS."""

import json
import re
import shutil
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.data.bag_file import BagFile, zstandard
from robotid_ros.data.cdr import COMPLETE, JointStateBatch, JointStateDecoder
from robotid_ros.data.messages import MessageChunk
from robotid_ros.data.recording import Recording
from robotid_ros.errors import DataError
from robotid_ros.files import file_hash
from robotid_ros.progress import Progress
from robotid_ros.reading import read_yaml

JOINT_STATE = 'sensor_msgs/msg/JointState'
STRING = 'std_msgs/msg/String'
TRAJECTORY = 'trajectory_msgs/msg/JointTrajectory'
METADATA = 'metadata.yaml'
DATA_FILE = re.compile(r'\.(db3|mcap)(\.zstd)?$')
BATCH = 4096  # messages decoded at a time, at least


@dataclass(slots=True)
class Bag:
    """A bag of one or more data files.

    Attributes
    ----------
    path : Path
    files : list of BagFile
    names : list of Path
        The data files as they are on disk.
    lost : int
        Messages that the recorder missed, by the publisher's numbers.
    """

    path: Path
    files: list[BagFile]
    names: list[Path]
    lost: int = 0
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
        own = [each for each, its in self.topics.items() if its == kind.replace('/msg/', '/')]
        near = topic.split('/')[:-1]

        def apart(each: str) -> tuple[int, str]:
            space = each.split('/')[:-1]
            shared = next((k for k, pair in enumerate(zip(space, near, strict=False)) if len(set(pair)) > 1), None)
            return -(min(len(space), len(near)) if shared is None else shared), each

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

    def choose(self, topic: str | None) -> str:
        """Return the topic of joint states to be read; refuse a bag with none, or with several where none is given."""
        kind = JOINT_STATE.replace('/msg/', '/')
        names = sorted(name for name, its in self.topics.items() if its == kind)
        if not names:
            cut = '' if self.complete else '; it has no end, and what is whole holds none'
            raise DataError(f'{self.path}: expected a topic of {JOINT_STATE}, the bag has none{cut}')
        if topic is None:
            short = [name for name in names if name.rsplit('/', 1)[-1] == 'joint_states']
            if len(names) > 1 and len(short) != 1:
                raise DataError(f'{self.path}: say which topic to read; joint states are on: {_listed(names)}')
            topic = names[0] if len(names) == 1 else short[0]
        if topic not in names:
            raise DataError(f"{self.path}: topic '{topic}' has no joint states; they are on: {_listed(names)}")
        return topic

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

    def provenance(self, topic: str) -> dict[str, Any]:
        """Return file names, hashes, format, topic and faults; to be called after the messages were read."""
        path = self.path.parent if self.path.name == METADATA else self.path
        kind = DATA_FILE.search(self.names[0].name)
        return {
            'file': path.name,
            'sha256': {name.name: file_hash(name) for name in self.names},
            'format': f'rosbag2 {kind[1] if kind else ""}',
            'topic': topic,
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


def is_bag(path: str | Path) -> bool:
    """Return whether a path looks like a bag: a folder, its ``metadata.yaml``, or one of its data files."""
    path = Path(path)
    return path.is_dir() or path.name == METADATA or path.suffix in ('.db3', '.mcap', '.zstd')


def is_bag_folder(folder: Path) -> bool:
    """Return whether a folder is a bag, be it one without metadata.yaml, as a killed recorder leaves it."""
    return (folder / METADATA).is_file() or any(DATA_FILE.search(path.name) for path in folder.iterdir())


def read_bag(path: str | Path, topic: str | None = None, joints: Sequence[str] | None = None) -> Recording:
    """Read the joint states of a bag, from the only topic that has some or the one given.

    Without joints, those of the message with the most joints among the first ones are taken. Times are the header
    stamps (those of the bag where no header has one), from the first. Raises a DataError if it is no readable bag, or
    the topic or a joint is not in it.
    """
    bag = Bag.open(path)
    chosen = bag.choose(topic)
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
