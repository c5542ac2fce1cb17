# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Damaged and hostile files, given to every reader of the package: ``python -m test.fuzz --inputs 5000 --seed 1``.

Each input is a good file with some bytes, lines, numbers or names replaced. A reader may return a value, or refuse the
input with one line of at most 300 characters. Everything else is listed: another exception (a leak), more than five
seconds (slow), a longer or broken message, values that were never written. Exit code 1 if there is any.
"""

import argparse
import io
import shutil
import signal
import sqlite3
import struct
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from mcap.writer import CompressionType, Writer

sys.path.insert(0, str(Path(__file__).parent))

from recorder_helpers import JOINTS, START, joint_state, reference_message
from ur_calibration_file import CONSTANTS, summary

from robotid_ros.calibration.points import read_joints, read_points
from robotid_ros.data import (
    Dataset,
    load_dataset,
    load_recording,
    process_file,
    read_recording,
    save_dataset,
    save_recording,
    write_csv,
)
from robotid_ros.data.bag_writer import BagWriter
from robotid_ros.data.context import SCHEMAS, message_text, read_context
from robotid_ros.data.messages import MessageChunk
from robotid_ros.errors import RobotIdError
from robotid_ros.excitation import ExcitationConfig, optimize_excitation
from robotid_ros.excitation.design import load_excitation, save_excitation
from robotid_ros.excitation.workspace import load_geometry
from robotid_ros.export.mjcf import mjcf_of, mjcf_with
from robotid_ros.free_floating.measurement import read_floating_bag as read_floating
from robotid_ros.free_floating.measurement import read_measurement
from robotid_ros.free_floating.mission import read_mission
from robotid_ros.identification import IdentificationResult, identify
from robotid_ros.model import RobotConfig, RobotModel
from robotid_ros.model.dh_table import read_dh_file
from robotid_ros.model.robot_config import configured_arm
from robotid_ros.model.ur_calibration import read_torque_constants
from robotid_ros.simulation import nominal_truth
from robotid_ros.simulation.arm_truth import read_truth, write_truth

LONGEST_MESSAGE = 300  # characters, without the path
SLOWEST = 5.0  # [s]
HANGING = 120  # [s]
PACKAGE = Path(__file__).parents[1] / 'robotid_ros'

WORDS = (
    *('', ' ', '\0', '\r', '\n\n', '"', "'", '\\', '#', ',', ':', '- ', '{', '}', '[', ']', '&a', '*a', '%s%n'),
    *('nan', '.nan', '.inf', '-inf', '1e999', '-1', '0', '1e308', '-0.0', '9' * 20, '9' * 5000, '0x10', '1_000'),
    *('1:30:00', '2026-01-01', '0000-00-00', 'null', '~', 'true', '<<', '!!timestamp x', '!!int x', '!!binary x'),
    *('!!python/name:os', '../../x', '/dev/zero', '<script>alert(1)</script>', '*/ int evil(void); /*', '"""'),
    *('<!DOCTYPE x>', ']]>', '&lol;', '\u202e', '\ufeff', '\u2028', 'a' * 300, '{}', '[]', '[[1], [2, 3]]', '${x}'),
    *('[' * 400, '[' * 3000 + ']' * 3000, '- ' * 3000, '{a: ' * 300 + '}' * 300, '<a>' * 3000 + '</a>' * 3000),
    *('{a: {b: c}}', '? [a]\n: b', 'NaN(1)', '"' + 'x,' * 9000),
)
STATEMENTS = (
    'UPDATE messages SET data = NULL WHERE id % 7 = 0',
    "UPDATE messages SET data = 'text' WHERE id % 5 = 0",
    'UPDATE messages SET data = zeroblob(5000000) WHERE id = 3',
    "UPDATE messages SET timestamp = 'never' WHERE id = 3",
    'UPDATE messages SET timestamp = -9223372036854775808 WHERE id = 3',
    'UPDATE messages SET timestamp = 1e300 WHERE id = 3',
    'UPDATE messages SET timestamp = NULL',
    'UPDATE messages SET topic_id = 9',
    "UPDATE messages SET topic_id = 'x' WHERE id = 4",
    'DELETE FROM messages',
    'DROP TABLE messages',
    'DROP TABLE topics',
    'ALTER TABLE messages DROP COLUMN data',
    'ALTER TABLE topics RENAME COLUMN type TO kind',
    "INSERT INTO topics VALUES (2, '/other', 'sensor_msgs/msg/JointState', 'cdr')",
    'UPDATE topics SET name = NULL',
    "UPDATE topics SET name = x'ff00ff'",
    'UPDATE topics SET type = NULL',
    'PRAGMA user_version = 99',
)
TWO_LINKS = """<robot name="two"><link name="base"/>
<link name="one"><inertial><origin xyz="0.2 0 0.01"/><mass value="3"/>
<inertia ixx="0.02" iyy="0.05" izz="0.05" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="two"><inertial><origin xyz="0.15 0.01 0"/><mass value="2"/>
<inertia ixx="0.01" iyy="0.03" izz="0.03" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="a" type="revolute"><parent link="base"/><child link="one"/><axis xyz="0 1 0"/>
<limit lower="-2" upper="2" velocity="2" effort="80"/><dynamics damping="1" friction="2"/></joint>
<joint name="b" type="revolute"><parent link="one"/><child link="two"/><origin xyz="0.4 0 0" rpy="0 0.1 0"/>
<axis xyz="0 1 0"/><limit lower="-2" upper="2" velocity="2" effort="40"/></joint></robot>
"""
DH = """name: elbow_arm
convention: standard
joints:
  - {name: joint1, theta: 0.0, d: 0.290, a: 0.0, alpha: -1.5707963267948966}
  - {name: joint2, theta: -1.57, d: 0.0, a: 0.270, alpha: 0.0, lower: -2.0, upper: 2.0}
  - {name: joint3, theta: 0.0, d: 0.0, a: 0.070, alpha: -1.57, type: prismatic, direction: -1}
"""
GEOMETRY = """capsules:
  - {link: one, from: [0, 0, 0], to: [0.4, 0, 0], radius: 0.06}
spheres:
  - {link: two, centre: [0.1, 0, 0], radius: 0.05}
ignore: [[one, two]]
"""
POINTS = 'position/a,position/b,x,y,z,qw,qx,qy,qz,set,point,std,std_angle\n' + ''.join(
    f'0.{k},-0.{k},0.{k}5,0.1,0.2,1,0,0,0,one,p{k % 2},0.001,0.01\n' for k in range(1, 9)
)


@dataclass(frozen=True, kw_only=True)
class Target:
    """A reader with the good file it is given damaged."""

    name: str
    path: Path  # below the folder of the run
    read: Callable[[Path], Any]
    binary: bool = False


@dataclass
class Tally:
    """What became of the inputs of one reader."""

    accepted: int = 0
    refused: int = 0
    problems: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)

    def note(self, kind: str, detail: str) -> None:
        self.problems[kind] += 1
        self.examples.setdefault(f'{kind}: {detail}'[:200], detail)


def motion(count: int) -> tuple[np.ndarray, ...]:
    """Return time, position, velocity, acceleration, each (count, 2)."""
    time_ = np.arange(count) * 0.01
    phase = 2.0 * np.pi * time_[:, None] * np.array([0.5, 0.7])
    return time_, np.sin(phase), 3.7 * np.cos(phase), -14.0 * np.sin(phase)


def make_targets(folder: Path) -> list[Target]:
    """Write the good files and return their readers."""
    rng = np.random.default_rng(0)
    texts = {
        'arm.urdf': TWO_LINKS,
        'dh.yaml': DH,
        'geometry.yaml': GEOMETRY,
        'points.csv': POINTS,
        'config.yaml': (PACKAGE / 'robots' / 'ur10e.yaml').read_text(),
        'mission.yaml': (PACKAGE / 'robots' / 'iiwa14_space.yaml').read_text(),
        'measurement.csv': 'time,position/a,velocity/a,'
        + ','.join(f'base/{kind}_velocity/{axis}' for kind in ('linear', 'angular') for axis in 'xyz')
        + '\n'
        + ''.join(f'{k / 10},0.1,0.2,0,0,0.1,0.2,0.3,{k}\n' for k in range(20)),
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    model = RobotModel.from_urdf(TWO_LINKS)
    time_, q, dq, ddq = motion(400)
    from robotid_ros.dynamics import inverse_dynamics

    tau = np.asarray(inverse_dynamics(model, q, dq, ddq)) + rng.normal(0.0, 0.01, q.shape)
    arrays = {'time': time_, 'q': q, 'dq': dq, 'ddq': ddq, 'tau': tau, 'tau_filtered': tau}
    dataset = Dataset(joint_names=('a', 'b'), rate=100.0, cutoff=50.0, **arrays)
    save_dataset(folder / 'dataset.npz', dataset)
    result = identify(dataset, model, friction='coulomb_viscous').to_yaml()
    (folder / 'result.yaml').write_text(result[: result.index('sha256:')])  # whose hash would refuse every damage
    save_excitation(
        optimize_excitation(model, ExcitationConfig(period=5.0, harmonics=3, starts=1, iterations=20)),
        folder / 'excitation.yaml',
    )
    bag = folder / 'bag'
    write_bag(bag)
    recording = read_recording(bag)
    write_csv(folder / 'recording.csv', recording)
    save_recording(folder / 'recording.npz', recording)
    write_database(folder / 'bag.db3')
    (folder / 'arm.xml').write_text(mjcf_of(model))
    write_truth(folder / 'truth.yaml', nominal_truth(model))
    for name, compression in (('compressed', CompressionType.ZSTD), ('chunked', CompressionType.LZ4)):
        write_mcap(folder / name / 'bag_0.mcap', compression)
    write_floating(folder / 'floating')
    (folder / 'summary.txt').write_text(summary(CONSTANTS))
    said = {
        'robot_description': TWO_LINKS,
        'robot_configuration': message_text(
            SCHEMAS['robot_configuration'], RobotConfig.from_yaml(folder / 'config.yaml').content()
        ),
        'plan': message_text(
            SCHEMAS['plan'],
            {'purpose': 'validation', 'excitation': yaml.safe_load((folder / 'excitation.yaml').read_text())},
        ),
    }
    for part, text in said.items():
        (folder / f'{part}.text').write_text(text)

    def said_in_a_bag(path: Path) -> Any:
        """Read a text as a latched topic of a bag, with all that follows from it."""
        bag = path.with_suffix('.bag')
        writer = BagWriter(bag, {'/joint_states': 'sensor_msgs/msg/JointState'})
        writer.say(f'/x/{path.stem}', path.read_bytes().decode('utf-8', 'replace'), START)
        writer.append('/joint_states', MessageChunk.of(*messages(60)))
        writer.close()
        context = read_context(bag)
        config = context.configuration()
        found = process_file(bag), context.purpose, context.period
        return configured_arm(context.description, config) if context.description else found

    good = sorted(recording.position[:, 0].tolist())

    def whole_values(path: Path) -> Any:
        found = read_recording(path).position[:, 0].tolist()
        assert set(found) <= set(good), 'values that were never written'
        return found

    return [
        Target(name='CSV', path=folder / 'recording.csv', read=read_recording),
        Target(name='CSV, processed', path=folder / 'recording.csv', read=process_file),
        Target(name='points', path=folder / 'points.csv', read=read_points),
        Target(name='joints', path=folder / 'points.csv', read=lambda path: read_joints(path, ('a', 'b'))),
        Target(name='measurement', path=folder / 'measurement.csv', read=lambda path: read_measurement(path, ('a',))),
        Target(name='npz recording', path=folder / 'recording.npz', read=load_recording, binary=True),
        Target(name='npz dataset', path=folder / 'dataset.npz', read=load_dataset, binary=True),
        Target(name='MCAP', path=bag / 'bag.mcap', read=whole_values, binary=True),
        Target(name='MCAP, processed', path=bag / 'bag.mcap', read=lambda path: process_file(path.parent), binary=True),
        Target(name='MCAP, zstd', path=folder / 'compressed' / 'bag_0.mcap', read=whole_values, binary=True),
        Target(name='MCAP, lz4', path=folder / 'chunked' / 'bag_0.mcap', read=whole_values, binary=True),
        Target(
            name='floating bag',
            path=folder / 'floating' / 'floating.mcap',
            read=lambda path: read_floating(path.parent, JOINTS),
            binary=True,
        ),
        *(Target(name=f'topic {part}', path=folder / f'{part}.text', read=said_in_a_bag) for part in said),
        Target(name='MJCF', path=folder / 'arm.xml', read=lambda path: mjcf_with(model, path)),
        Target(name='truth', path=folder / 'truth.yaml', read=lambda path: read_truth(path, model)),
        Target(name='metadata.yaml', path=bag / 'metadata.yaml', read=read_recording),
        Target(name='sqlite3', path=folder / 'bag.db3', read=read_recording, binary=True),
        Target(name='URDF', path=folder / 'arm.urdf', read=RobotModel.from_urdf),
        Target(name='DH table', path=folder / 'dh.yaml', read=read_dh_file),
        Target(name='robot configuration', path=folder / 'config.yaml', read=RobotConfig.from_yaml),
        Target(name='calibration summary', path=folder / 'summary.txt', read=read_torque_constants),
        Target(name='excitation', path=folder / 'excitation.yaml', read=load_excitation),
        Target(name='geometry', path=folder / 'geometry.yaml', read=load_geometry),
        Target(name='mission', path=folder / 'mission.yaml', read=read_mission),
        Target(name='result', path=folder / 'result.yaml', read=IdentificationResult.load),
    ]


def messages(count: int) -> tuple[list[bytes], list[int]]:
    stamps = [START + k * 5_000_000 for k in range(count)]
    angle = [0.3 * np.sin(0.05 * np.pi * k) for k in range(count)]  # which repeats as its reference says
    data = [
        joint_state(s, JOINTS, (a, np.sin(a), 1.0), (1, 1, 1), (a, 2, 3)) for s, a in zip(stamps, angle, strict=True)
    ]
    return data, stamps


def write_bag(folder: Path) -> None:
    kinds = {'/joint_states': 'sensor_msgs/msg/JointState', '/reference': 'trajectory_msgs/msg/JointTrajectory'}
    writer = BagWriter(folder, kinds)
    data, stamps = messages(120)
    writer.append('/reference', MessageChunk.of([reference_message(JOINTS, 0.2, START)], [START]))
    for k in range(0, 120, 30):
        writer.append('/joint_states', MessageChunk.of(data[k : k + 30], stamps[k : k + 30], range(k + 1, k + 31)))
    writer.close()


def write_mcap(path: Path, compression: CompressionType) -> None:
    """Write the joint states as another library does, in compressed chunks of 2 kB."""
    path.parent.mkdir()
    with path.open('wb') as file:
        writer = Writer(file, chunk_size=2048, compression=compression)
        writer.start(profile='ros2')
        schema = writer.register_schema('sensor_msgs/msg/JointState', 'ros2msg', b'')
        channel = writer.register_channel('/joint_states', 'cdr', schema)
        for data, stamp in zip(*messages(120), strict=True):
            writer.add_message(channel, stamp, data, stamp)
        writer.finish()


def write_floating(folder: Path) -> None:
    """Write joint states and the twist of a base, whose CDR is a header and six doubles."""
    kinds = {'/joint_states': 'sensor_msgs/msg/JointState', '/twist': 'geometry_msgs/msg/TwistStamped'}
    writer = BagWriter(folder, kinds)
    data, stamps = messages(120)
    twists = [
        struct.pack('<4BiII4s6d', 0, 1, 0, 0, *divmod(stamp, 10**9), 2, b'w\0', *(0.01 * k for k in range(6)))
        for stamp in stamps
    ]
    writer.append('/joint_states', MessageChunk.of(data, stamps))
    writer.append('/twist', MessageChunk.of(twists, stamps))
    writer.close()


def write_database(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute('CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT, type TEXT, serialization_format TEXT)')
        database.execute(
            'CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INTEGER, timestamp INTEGER, data BLOB)'
        )
        database.execute('CREATE INDEX timestamp_idx ON messages (timestamp ASC)')
        database.execute("INSERT INTO topics VALUES (1, '/joint_states', 'sensor_msgs/msg/JointState', 'cdr')")
        rows = [(k, 1, stamp, data) for k, (data, stamp) in enumerate(zip(*messages(120), strict=True))]
        database.executemany('INSERT INTO messages VALUES (?, ?, ?, ?)', rows)
    database.close()


def damaged(path: Path, binary: bool, rng: np.random.Generator) -> bytes:
    """Return a good file with one to four changes."""
    data = path.read_bytes()
    if path.suffix == '.npz' and rng.integers(3):
        return damaged_archive(data, rng)
    if path.suffix == '.db3' and rng.integers(2):
        return damaged_database(data, rng)
    for _ in range(int(min(rng.geometric(0.6), 4))):
        kind = rng.integers(4 if binary else 10)
        size = max(len(data), 1)
        at = int(rng.integers(size))
        some = int(min(rng.geometric(0.05), size))
        if kind == 0:  # bits
            data = data[:at] + bytes([data[at] ^ int(rng.integers(1, 256))]) + data[at + 1 :] if data else b'x'
        elif kind == 1:  # cut off
            data = data[:at]
        elif kind == 2:  # something is missing
            data = data[:at] + data[at + some :]
        elif kind == 3:  # something is there twice, or junk
            piece = data[at : at + some] if rng.integers(2) else rng.bytes(some)
            data = data[:at] + piece + data[at:]
        else:
            data = damaged_text(data, rng)
    return data


def damaged_archive(data: bytes, rng: np.random.Generator) -> bytes:
    """Return an npz whose checksums are right and whose arrays, or the text in it, are not."""
    with np.load(io.BytesIO(data)) as archive:
        arrays = {name: archive[name] for name in archive.files}
    names = sorted(arrays)
    name = names[int(rng.integers(len(names)))]
    kind = rng.integers(6)
    if kind == 0:
        del arrays[name]
    elif kind == 1:
        arrays[name] = arrays[name][..., :1] if arrays[name].ndim else np.array(3)
    elif kind == 2:
        arrays[name] = np.array(['a', 'b'])
    elif kind == 3:
        arrays[WORDS[int(rng.integers(len(WORDS)))][:40].replace('\0', '') or 'x'] = np.zeros(3)
    else:
        arrays['header'] = np.array(damaged_text(str(arrays['header']).encode(), rng).decode())
    file = io.BytesIO()
    np.savez(file, **{key: value for key, value in arrays.items() if key != 'file'})
    whole = file.getvalue()
    if kind == 5:  # a shape that needs a thousand times the memory there is
        whole = whole.replace(b"'shape': (120, 3)", b"'shape': (1" + b'0' * 12 + b', )', 1)
    return whole


def damaged_database(data: bytes, rng: np.random.Generator) -> bytes:
    """Return a database that holds something else than it should."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / 'x.db3'
        path.write_bytes(data)
        with closing(sqlite3.connect(path)) as database, suppress(sqlite3.Error):
            for _ in range(int(rng.integers(1, 3))):
                database.execute(STATEMENTS[int(rng.integers(len(STATEMENTS)))])
            database.commit()
        return path.read_bytes()


def damaged_text(data: bytes, rng: np.random.Generator) -> bytes:
    """Return a text with a line, a word or a number replaced."""
    lines = data.decode('utf-8', 'replace').split('\n')
    k = int(rng.integers(len(lines)))
    word = WORDS[int(rng.integers(len(WORDS)))]
    kind = rng.integers(5)
    if kind == 0:
        del lines[k]
    elif kind == 1:
        lines.insert(int(rng.integers(len(lines) + 1)), lines[k])
    elif kind == 2:
        lines[k] = word
    else:  # one of the words of a line
        marks = ' ,:"[]{}=<>\n\t'
        cuts = [i for i, c in enumerate(lines[k]) if c in marks]
        start = cuts[int(rng.integers(len(cuts)))] + 1 if cuts else 0
        stop = next((i for i in cuts if i >= start), len(lines[k]))
        lines[k] = lines[k][:start] + word + lines[k][stop:]
    return '\n'.join(lines).encode('utf-8', 'replace')


@contextmanager
def time_limit() -> Iterator[None]:
    def ring(*_: object) -> None:
        raise TimeoutError(f'more than {HANGING} s')

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(HANGING)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def attempt(target: Target, path: Path, tally: Tally) -> None:
    """Read one damaged file and note what became of it."""
    begin = time.process_time()  # how long others keep the machine busy is not the reader's fault
    try:
        with time_limit(), warnings.catch_warnings():
            warnings.simplefilter('ignore')
            target.read(path)
        tally.accepted += 1
    except RobotIdError as refusal:
        tally.refused += 1
        text = str(refusal).replace(str(path), '').replace(str(path.parent), '')
        if len(text) > LONGEST_MESSAGE:
            tally.note('too long', text[:200])
        if len(text.splitlines()) > 1:
            tally.note('not one line', text[:200])
    except Exception as cause:
        place = traceback.extract_tb(cause.__traceback__)[-1]
        tally.note('leak', f'{type(cause).__name__} at {Path(place.filename).name}:{place.lineno}: {str(cause)[:80]}')
    taken = time.process_time() - begin
    if taken > SLOWEST:
        tally.note('slow', f'{taken:.1f} s')


def run(inputs: int, seed: int, folder: Path, keep: Path | None = None) -> dict[str, Tally]:
    """Give damaged files to every reader, equally many to each.

    Parameters
    ----------
    inputs, seed : int
    folder : Path
        For the files.
    keep : Path, optional
        Where to put the inputs that were not read or refused as they should be.
    """
    targets = make_targets(folder)
    for target in targets:
        target.read(target.path)  # a good file is read
    tallies = {target.name: Tally() for target in targets}
    for number in range(inputs):
        target = targets[number % len(targets)]
        rng = np.random.default_rng([seed, number])
        data = damaged(target.path, target.binary, rng)
        place = folder / 'damaged'
        shutil.rmtree(place, ignore_errors=True)
        if target.path.parent == folder:
            place.mkdir()
        else:  # a bag: the rest of the folder stays as it is
            shutil.copytree(target.path.parent, place)
        path = place / target.path.name
        path.write_bytes(data)
        tally = tallies[target.name]
        before = sum(tally.problems.values())
        attempt(target, path, tally)
        if keep is not None and sum(tally.problems.values()) > before:
            keep.mkdir(parents=True, exist_ok=True)
            (keep / f'{number}-{path.name}').write_bytes(data)
    return tallies


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--inputs', type=int, default=5000)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--keep', type=Path, help='folder for the inputs that did harm')
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tallies = run(options.inputs, options.seed, Path(folder), options.keep)
    print(f'{"reader":22} {"accepted":>8} {"refused":>8}  problems')
    for name, tally in tallies.items():
        problems = ', '.join(f'{count} {kind}' for kind, count in tally.problems.items()) or '-'
        print(f'{name:22} {tally.accepted:8} {tally.refused:8}  {problems}')
    for name, tally in tallies.items():
        for kind in tally.examples:
            print(f'{name}: {kind}')
    return int(any(tally.problems for tally in tallies.values()))


if __name__ == '__main__':
    sys.exit(main())
