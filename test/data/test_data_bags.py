# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Bags: what is recorded is read by other libraries, and what other libraries write is read here."""

import json
import shutil
import sqlite3
import struct
import time
from contextlib import closing

import numpy as np
import pytest
import yaml
from recorder_helpers import JOINTS, START, harmonics, joint_state, joint_trajectory, reference_message, stream

from robotid_ros.data import ProcessingSettings, process_file, read_recording
from robotid_ros.data.bag import Bag
from robotid_ros.data.bag_writer import BagWriter
from robotid_ros.data.messages import MessageChunk
from robotid_ros.data.reference import PeriodicReference, decode_reference
from robotid_ros.data.session import RecordingSession
from robotid_ros.errors import DataError

rosbag2 = pytest.importorskip('rosbags.rosbag2')
typesys = pytest.importorskip('rosbags.typesys')
mcap = pytest.importorskip('mcap.reader')
lz4 = pytest.importorskip('lz4.frame')

PERIOD, RATE = 1.0, 500
STATES, REFERENCE = '/arm/joint_states', '/arm/excitation/reference'
STATE, TRAJECTORY = 'sensor_msgs/msg/JointState', 'trajectory_msgs/msg/JointTrajectory'


@pytest.fixture
def store():
    return typesys.get_typestore(typesys.Stores.ROS2_JAZZY)


def recorded(folder, messages, stamps, chunk=100):
    session = RecordingSession(folder, (), ProcessingSettings(), {}, topic=STATES, reference_topic=REFERENCE)
    session.follow(reference_message(JOINTS, PERIOD, START), START - 10**9)
    for k in range(0, len(messages), chunk):
        part = slice(k, k + chunk)
        session.take(MessageChunk.of(messages[part], stamps[part], range(k + 1, k + 1 + len(messages[part]))))
    session.follow(joint_trajectory(0, JOINTS, []), stamps[-1])
    session.finish()
    return session


def test_other_libraries_read_what_is_recorded_byte_for_byte(tmp_path):
    messages, stamps = stream(PERIOD, 3, RATE, np.random.default_rng(1))
    recorded(tmp_path / 'run', messages, stamps)
    with rosbag2.Reader(tmp_path / 'run') as reader:
        assert reader.message_count == len(messages) + 2
        assert {c.topic: c.msgtype for c in reader.connections} == {STATES: STATE, REFERENCE: TRAJECTORY}
        found = [(c.topic, t, bytes(data)) for c, t, data in reader.messages()]
        qualities = {c.topic: c.ext.offered_qos_profiles[0] for c in reader.connections}
    assert [(t, data) for topic, t, data in found if topic == STATES] == list(zip(stamps, messages, strict=True))
    first, last = (data for topic, _, data in found if topic == REFERENCE)
    assert (first, last) == (reference_message(JOINTS, PERIOD, START), joint_trajectory(0, JOINTS, []))
    assert qualities[REFERENCE].durability.name == 'TRANSIENT_LOCAL'
    assert qualities[STATES].durability.name == 'VOLATILE'
    with open(tmp_path / 'run' / 'run.mcap', 'rb') as file:
        reader = mcap.make_reader(file, validate_crcs=True)
        assert [m.data for _, c, m in reader.iter_messages(topics=[STATES])] == messages
        summary = reader.get_summary()
        assert summary.statistics.message_count == len(messages) + 2
        assert {c.topic: c.message_encoding for c in summary.channels.values()} == {STATES: 'cdr', REFERENCE: 'cdr'}
    custom = yaml.safe_load((tmp_path / 'run' / 'metadata.yaml').read_text())['rosbag2_bagfile_information'][
        'custom_data'
    ]
    assert json.loads(custom['robotid_ros'])['averaging']['periods_used'] == [1, 2]


def test_the_definitions_in_a_recording_decode_its_messages(tmp_path):
    """A reader that knows no message type decodes with the definitions that the file brings along."""
    messages, stamps = stream(PERIOD, 1, RATE, np.random.default_rng(2))
    recorded(tmp_path / 'run', messages, stamps)
    with open(tmp_path / 'run' / 'run.mcap', 'rb') as file:
        schemas = mcap.make_reader(file).get_summary().schemas.values()
    empty = typesys.get_typestore(typesys.Stores.EMPTY)
    for schema in schemas:
        assert schema.encoding == 'ros2msg'
        types = typesys.get_types_from_msg(schema.data.decode(), schema.name)
        empty.register({name: kind for name, kind in types.items() if name not in empty.fielddefs})
    state = empty.deserialize_cdr(messages[7], STATE)
    assert list(state.name) == list(JOINTS)
    assert state.header.stamp.sec * 10**9 + state.header.stamp.nanosec == stamps[7]
    reference = empty.deserialize_cdr(reference_message(JOINTS, PERIOD, START), TRAJECTORY)
    assert len(reference.points) == 101
    assert reference.points[50].time_from_start.nanosec == 500_000_000
    assert np.allclose(reference.points[50].positions, harmonics([0.5], PERIOD)[0][0])


def test_a_recording_with_a_damaged_summary_is_read_from_its_beginning(tmp_path):
    messages, stamps = stream(PERIOD, 2, RATE, np.random.default_rng(6))
    recorded(tmp_path / 'run', messages, stamps)
    file = tmp_path / 'run' / 'run.mcap'
    data = file.read_bytes()
    (start,) = struct.unpack_from('<Q', data, len(data) - 28)  # the footer's content and the magic bytes are 28 bytes
    file.write_bytes(data[:start] + bytes([255]) * (len(data) - 37 - start) + data[-37:])
    recording = read_recording(tmp_path / 'run')
    assert len(recording) == len(messages)
    assert not recording.provenance['ended_properly']


@pytest.mark.slow
def test_a_chunk_of_nothing_takes_no_time(tmp_path):
    """Without a summary the library goes through all records: 30 million in a chunk of zeros, which is 1 MB on disk."""
    messages, stamps = stream(PERIOD, 2, RATE, np.random.default_rng(6))
    recorded(tmp_path / 'run', messages, stamps)
    file = tmp_path / 'run' / 'run.mcap'
    data = file.read_bytes()
    (start,) = struct.unpack_from('<Q', data, len(data) - 28)
    zeros = lz4.compress(bytes(1 << 28))
    chunk = struct.pack('<QQQII3sQ', 0, 0, 1 << 28, 0, 3, b'lz4', len(zeros)) + zeros
    end = struct.pack('<BQIBQQQI', 15, 4, 0, 2, 20, 0, 0, 0) + data[:8]
    # The record that ends the data (13 bytes) comes before the summary.
    file.write_bytes(data[: start - 13] + struct.pack('<BQ', 6, len(chunk)) + chunk + end)
    began = time.process_time()
    recording = read_recording(tmp_path / 'run')
    assert time.process_time() - began < 10.0
    assert len(recording) == len(messages)
    assert recording.provenance['ended_properly']
    assert recording.provenance['faults']['damaged_chunks'] == 1


@pytest.mark.parametrize('more', [struct.pack('<BQ', 5, 0) * 20_000, bytes(20_000_000)], ids=['empty', 'zeros'])
def test_records_of_nothing_end(tmp_path, more):
    """Empty messages, and what a file system leaves of a file after a loss of power: zeros."""
    messages, stamps = stream(PERIOD, 2, RATE, np.random.default_rng(6))
    recorded(tmp_path / 'run', messages, stamps)
    file = tmp_path / 'run' / 'run.mcap'
    data = file.read_bytes()
    (start,) = struct.unpack_from('<Q', data, len(data) - 28)
    file.write_bytes(data[: start - 13] + more)
    began = time.process_time()
    recording = read_recording(tmp_path / 'run')
    assert time.process_time() - began < 5.0
    assert len(recording) == len(messages)
    assert not recording.provenance['ended_properly']


@pytest.mark.parametrize('storage', ['SQLITE3', 'MCAP'])
def test_a_bag_that_ros2_recorded_is_averaged_over_its_reference_and_no_longer(tmp_path, store, storage):
    messages, stamps = stream(PERIOD, 4, RATE, np.random.default_rng(4), lead=0.2)
    rest = [joint_state(stamps[-1] + k * 2_000_000, JOINTS, (9, 9, 9), (0, 0, 0), (9, 9, 9)) for k in range(1, 1500)]
    with rosbag2.Writer(tmp_path / 'b', version=9, storage_plugin=rosbag2.StoragePlugin[storage]) as writer:
        states = writer.add_connection(STATES, STATE, typestore=store)
        reference = writer.add_connection(REFERENCE, TRAJECTORY, typestore=store)
        writer.write(reference, stamps[0], reference_message(JOINTS, PERIOD, START))
        for stamp, message in zip(stamps, messages, strict=True):
            writer.write(states, stamp, message)
        writer.write(reference, stamps[-1] + 1, joint_trajectory(0, JOINTS, []))
        for k, message in enumerate(rest):
            writer.write(states, stamps[-1] + 2_000_000 * (k + 1), message)
    heard = []
    dataset, text = process_file(tmp_path / 'b')
    assert dataset.periods == 3, text
    q, _, _, effort = harmonics(dataset.time, PERIOD)
    assert np.abs(dataset.q - q).max() < 3e-4
    assert np.std(dataset.tau - effort) < 0.05
    bag = Bag.open(tmp_path / 'b')
    assert sum(len(chunk) for _, chunk in bag.messages([STATES], lambda f, _: heard.append(f))) == len(messages) + 1499
    assert heard == sorted(heard)
    assert 0.5 < heard[-1] <= 1.0


@pytest.mark.parametrize('mode', ['FILE', 'MESSAGE'])
@pytest.mark.parametrize('storage', ['SQLITE3', 'MCAP'])
def test_compressed_bags(tmp_path, store, storage, mode):
    messages, stamps = stream(PERIOD, 1, RATE, np.random.default_rng(5))
    writer = rosbag2.Writer(tmp_path / 'b', version=9, storage_plugin=rosbag2.StoragePlugin[storage])
    if storage == 'SQLITE3' or mode == 'FILE':
        kind = rosbag2.CompressionMode[mode if storage == 'SQLITE3' else 'FILE']
        writer.set_compression(kind, rosbag2.CompressionFormat.ZSTD)
    else:
        writer.set_compression(rosbag2.CompressionMode.STORAGE, rosbag2.CompressionFormat.ZSTD)
    with writer:
        states = writer.add_connection(STATES, STATE, typestore=store)
        for stamp, message in zip(stamps, messages, strict=True):
            writer.write(states, stamp, message)
    recording = read_recording(tmp_path / 'b')
    assert len(recording) == len(messages)
    assert recording.provenance['counts']['undecodable'] == 0
    assert not list(tmp_path.glob('b/*.mcap')) or mode == 'MESSAGE'


def test_topics_that_alternate_are_told_apart(tmp_path):
    writer = BagWriter(tmp_path / 'b', {'/a': STATE, '/joint_states': STATE})
    for k in range(40):
        for topic, name in (('/a', 'x' * (k % 3 + 1)), ('/joint_states', 'y')):
            message = joint_state(START + k, (name,), (k,))
            writer.append(topic, MessageChunk.of([message] * (k % 4), [k] * (k % 4)))
    writer.close()
    assert read_recording(tmp_path / 'b').position[:, 0].tolist() == [k for k in range(40) for _ in range(k % 4)]
    assert read_recording(tmp_path / 'b', topic='/a', joints=('xx',)).position[:, 0].tolist() == [
        k for k in range(40) if k % 3 == 1 for _ in range(k % 4)
    ]


def test_a_file_beside_a_bag_is_read_by_itself(tmp_path):
    for name, value in (('one', 1.0), ('two', 2.0)):
        writer = BagWriter(tmp_path / name, {'/joint_states': STATE})
        writer.append('/joint_states', MessageChunk.of([joint_state(START, ('a',), (value,))], [START]))
        writer.close()
    shutil.copy(tmp_path / 'two' / 'two.mcap', tmp_path / 'one')
    assert read_recording(tmp_path / 'one').position.tolist() == [[1.0]]
    assert read_recording(tmp_path / 'one' / 'two.mcap').position.tolist() == [[2.0]]


@pytest.mark.parametrize('order', ['<', '>'])
@pytest.mark.parametrize('align_empty', [False, True])
@pytest.mark.parametrize('closed', [True, False])
def test_a_reference_is_decoded(order, align_empty, closed):
    times = np.linspace(0.0, 2.0, 41)[: 41 if closed else 40]
    q, dq, _, _ = harmonics(times, 2.0)
    points = [(round(t * 1e9) + 5, a, b, ()) for t, a, b in zip(times, q.tolist(), dq.tolist(), strict=True)]
    found = decode_reference(joint_trajectory(START, JOINTS, points, order, align_empty))
    assert found == PeriodicReference(joints=JOINTS, period=pytest.approx(2.0), start=START + 5)
    assert decode_reference(joint_trajectory(START, JOINTS, [], order, align_empty)) is None


@pytest.mark.parametrize(
    ('message', 'words'),
    [
        (b'', 'expected a serialised JointTrajectory, got 0 other bytes'),
        (joint_state(START, JOINTS, (1, 2, 3)), 'expected a serialised JointTrajectory'),
        (reference_message(JOINTS, 1.0, START)[:-9], 'expected a serialised JointTrajectory'),
        (joint_trajectory(START, JOINTS, [(k, (1, 2), (), ()) for k in range(5)]), 'expected a serialised'),
        (joint_trajectory(START, JOINTS, [(k, (1, 2, 3), (), ()) for k in (0, 1)]), 'at least 3 points'),
        (joint_trajectory(START, JOINTS, [(k, (1, 2, 3), (), ()) for k in (0, 1, 1)]), 'increasing times'),
    ],
    ids=['nothing', 'joint state', 'cut', 'two joints', 'two points', 'equal times'],
)
def test_what_is_no_reference_is_refused(message, words):
    with pytest.raises(DataError, match=words):
        decode_reference(message)


def test_a_sqlite_bag_whose_pages_are_mixed_up_is_named(tmp_path):
    """There are no checksums in it; this one is read to the end all the same."""
    path, q = tmp_path / 'bag.db3', np.linspace(0.0, 1.0, 600)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute('CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT, type TEXT, serialization_format TEXT)')
        database.execute('CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INT, timestamp INT, data BLOB)')
        database.execute("INSERT INTO topics VALUES(1, '/joint_states', 'sensor_msgs/msg/JointState', 'cdr')")
        rows = [(k + 1, START + k * 10**6, joint_state(START + k * 10**6, ['a'], [q[k]])) for k in range(len(q))]
        database.executemany('INSERT INTO messages VALUES(?, 1, ?, ?)', rows)
    assert not any(read_recording(path).provenance['faults'].values())
    pages = bytearray(path.read_bytes())
    size = int.from_bytes(pages[16:18], 'big')
    leaves = [at for at in range(0, len(pages), size) if pages[at] == 0x0D]
    first, second = leaves[-3:-1]
    one, other = slice(first, first + size), slice(second, second + size)
    pages[one], pages[other] = pages[other], pages[one]
    path.write_bytes(pages)
    recording = read_recording(path)
    assert recording.provenance['faults']['damaged_databases'] == 1
    np.testing.assert_array_equal(np.sort(recording.position[:, 0]), q)


def database(path, statement):
    """Write a bag of joint states as rosbag2 does, then do something to its tables."""
    messages, stamps = stream(PERIOD, 1, RATE, np.random.default_rng(6))
    with closing(sqlite3.connect(path)) as base:
        base.execute('CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT, type TEXT, serialization_format TEXT)')
        base.execute('CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INTEGER, timestamp INTEGER, data BLOB)')
        base.execute('INSERT INTO topics VALUES (1, ?, ?, ?)', (STATES, STATE, 'cdr'))
        rows = zip(stamps, messages, strict=True)
        base.executemany('INSERT INTO messages(topic_id, timestamp, data) VALUES (1, ?, ?)', rows)
        base.executescript(statement)
        base.commit()
    return len(messages)


ENDLESS = """ALTER TABLE messages RENAME TO m; CREATE VIEW messages AS WITH RECURSIVE r(id, topic_id, timestamp, data)
AS (SELECT * FROM m UNION ALL SELECT id, topic_id, timestamp, data FROM r) SELECT * FROM r"""


@pytest.mark.parametrize(
    ('statement', 'words'),
    [
        (ENDLESS, 'got views or triggers'),
        ("UPDATE messages SET data = 'text'", 'cannot be read'),
        ("UPDATE topics SET type = x'ff00'", 'expected a topic of'),
    ],
)
def test_a_database_of_something_else_is_refused(tmp_path, statement, words):
    database(tmp_path / 'x.db3', statement)
    with pytest.raises(DataError, match=words):
        read_recording(tmp_path / 'x.db3')


def test_a_message_larger_than_any_joint_state_is_left_out(tmp_path):
    count = database(tmp_path / 'x.db3', 'UPDATE messages SET data = zeroblob(2000000) WHERE id = 3')
    recording = read_recording(tmp_path / 'x.db3')
    assert len(recording) == count - 1
    assert recording.provenance['counts']['undecodable'] == 1
