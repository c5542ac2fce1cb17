# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Readers and writers, against files that other libraries wrote."""

import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from errors_helpers import refused
from hypothesis import given, settings
from hypothesis import strategies as st
from recorder_helpers import joint_state

from robotid_ros.data import (
    Dataset,
    Recording,
    load_dataset,
    load_recording,
    read_recording,
    save_dataset,
    save_recording,
    write_csv,
)
from robotid_ros.data.messages import JointStateDecoder
from robotid_ros.data.settings import ProcessingSettings, measured_torque
from robotid_ros.errors import DataError

UR10 = Path(__file__).parents[3] / 'shared' / 'data' / 'ur10_exciting'
NAMES = ('a', 'joint_number_two', 'c')


def rosbags_store():
    typesys = pytest.importorskip('rosbags.typesys')
    return typesys.get_typestore(typesys.Stores.ROS2_HUMBLE)


def written_by_rosbags(store, stamp, names, position, velocity, effort, frame='base'):
    kind = store.types
    message = kind['sensor_msgs/msg/JointState'](
        header=kind['std_msgs/msg/Header'](
            stamp=kind['builtin_interfaces/msg/Time'](sec=stamp // 10**9, nanosec=stamp % 10**9), frame_id=frame
        ),
        name=list(names),
        position=np.ascontiguousarray(position, float),
        velocity=np.ascontiguousarray(velocity, float),
        effort=np.ascontiguousarray(effort, float),
    )
    return message, bytes(store.serialize_cdr(message, 'sensor_msgs/msg/JointState'))


@pytest.mark.slow
@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.text(st.characters(codec='utf-8', exclude_characters='\0'), max_size=9), min_size=1, max_size=5),
    st.booleans(),
    st.booleans(),
    st.text(st.characters(codec='ascii', exclude_characters='\0'), max_size=6),
)
def test_decodes_what_another_library_serialises(names, with_velocity, with_effort, frame):
    names = [f'{k}{name}' for k, name in enumerate(names)]
    store = rosbags_store()
    rng = np.random.default_rng(len(frame))
    q, dq, tau = rng.standard_normal((3, len(names)))
    stamps = [1_700_000_000_999_999_999, 1_700_000_001_000_000_000, 5]
    data = [
        written_by_rosbags(store, s, names, q, dq if with_velocity else [], tau if with_effort else [], frame)[1]
        for s in stamps
    ]
    decoder = JointStateDecoder()
    batch = decoder.decode(data)
    assert decoder.joints == tuple(names)
    assert batch['stamp'].tolist() == stamps
    assert (batch['reason'] == 0).all()
    assert np.array_equal(batch['position'], np.tile(q, (3, 1)))
    assert np.array_equal(batch['velocity'], np.tile(dq if with_velocity else q * np.nan, (3, 1)), equal_nan=True)
    assert np.array_equal(batch['effort'], np.tile(tau if with_effort else q * np.nan, (3, 1)), equal_nan=True)


@pytest.mark.parametrize('order', ['<', '>'])
@pytest.mark.parametrize('align_empty', [False, True])
@pytest.mark.parametrize('names', [('a', 'b', 'c'), ('ab', 'b'), ('abcde',)])
def test_both_byte_orders_and_both_ways_to_align_an_empty_array(order, align_empty, names):
    position = np.arange(len(names)) + 0.5
    data = joint_state(12_000_000_003, names, position, (), -position, order=order, align_empty=align_empty)
    batch = JointStateDecoder(joints=names).decode([data])
    assert batch['stamp'].tolist() == [12_000_000_003]
    assert batch['position'].tolist() == [position.tolist()]
    assert batch['effort'].tolist() == [(-position).tolist()]
    assert np.isnan(batch['velocity']).all()


def test_layouts_that_change_from_message_to_message_are_told_apart():
    rng = np.random.default_rng(1)
    decoder = JointStateDecoder(joints=('a', 'b'))
    orders = [('a', 'b'), ('b', 'a'), ('b', 'gripper', 'a'), ('gripper',), ('a',)]
    messages, expected, reasons = [], [], []
    for _ in range(300):
        names = orders[rng.integers(len(orders))]
        values = dict(zip(names, rng.standard_normal(len(names)), strict=True))
        messages.append(joint_state(7, names, values.values(), values.values(), values.values()))
        expected.append([values.get('a', np.nan), values.get('b', np.nan)])
        reasons.append({('gripper',): 2, ('a',): 3}.get(names, 0))
    batch = decoder.decode(messages)
    assert batch['reason'].tolist() == reasons
    assert np.array_equal(batch['position'], expected, equal_nan=True)
    assert np.array_equal(batch['effort'], expected, equal_nan=True)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200), st.integers(0, 150), st.integers(0, 255))
def test_damaged_messages_never_raise_and_never_spoil_their_neighbours(junk, place, byte):
    good = joint_state(9, NAMES, (1.0, 2.0, 3.0), (), (4.0, 5.0, 6.0))
    bent = bytearray(good)
    bent[place % len(good)] = byte
    batch = JointStateDecoder(joints=NAMES).decode([good, junk, good[: place % len(good)], bytes(bent), good])
    assert batch['reason'][[0, 4]].tolist() == [0, 0]
    assert batch['position'][[0, 4]].tolist() == [[1.0, 2.0, 3.0]] * 2
    # A message cut behind its positions can look like one of an implementation that aligns empty arrays.
    assert batch['reason'][2] == 1 or (
        batch['position'][2].tolist() == [1.0, 2.0, 3.0] and np.isnan(batch['effort'][2]).all()
    )


def recording():
    rng = np.random.default_rng(2)
    values = rng.standard_normal((4, 50, 3))
    values[2, 3, 1] = np.nan
    return Recording(
        joint_names=NAMES,
        time=np.arange(50) * 0.01 + rng.uniform(0, 1e-3, 50),
        position=values[0],
        velocity=values[1],
        effort=values[2],
        current=values[3],
        origin=1_700_000_000_123_456_789,
        provenance={'note': 'a test', 'numbers': [1, 2.5]},
    )


def assert_equal(a, b):
    assert a.joint_names == b.joint_names
    assert np.array_equal(a.time, b.time)
    for name in ('position', 'velocity', 'effort', 'current'):
        assert np.array_equal(getattr(a, name), getattr(b, name), equal_nan=True)


def test_csv_round_trip_to_the_last_digit(tmp_path):
    write_csv(tmp_path / 'run.csv', recording())
    back = read_recording(tmp_path / 'run.csv')
    assert_equal(back, recording())
    assert back.acceleration is None
    assert len(back.provenance['sha256']) == 64


def test_npz_round_trip_without_pickles(tmp_path):
    save_recording(tmp_path / 'run.npz', recording())
    back = load_recording(tmp_path / 'run.npz')
    assert_equal(back, recording())
    assert back.origin == 1_700_000_000_123_456_789
    assert back.provenance == recording().provenance
    with np.load(tmp_path / 'run.npz', allow_pickle=False) as archive:
        assert all(archive[name].dtype != object for name in archive.files)
    assert_equal(read_recording(tmp_path / 'run.npz', joints=NAMES[::-1]).select(NAMES), recording())


def test_csv_columns_in_any_order_with_holes(tmp_path):
    path = tmp_path / 'x.csv'
    path.write_text('position/b,comment,time, effort/a,position/a,current/b\n1,good,0.0,,2,nan\n3,,0.1,5,4,6\n')
    got = read_recording(path, joints=('a', 'b'))
    assert got.position.tolist() == [[2, 1], [4, 3]]
    assert np.array_equal(got.effort, [[np.nan, np.nan], [5, np.nan]], equal_nan=True)
    assert np.array_equal(got.current, [[np.nan, np.nan], [np.nan, 6]], equal_nan=True)
    assert got.provenance['ignored_columns'] == ['comment']


@pytest.mark.parametrize(
    ('text', 'message'),
    [
        ('', 'expected a line with the names of the columns, got none'),
        ('joint,position/a\n0,1\n', "expected a column 'time'"),
        ('time;position/a\n0,5;1\n', 'expected commas between columns, and points in numbers'),
        ('0.0,1,1\n0.1,2,2\n', 'line 1: expected names of columns, got numbers'),
        ('time,velocity/a\n0,1\n', "expected columns 'position/<joint>'"),
        ('time,position/a\n', 'expected numbers below the names of the columns, got none'),
        ('time,position/a,position/a\n0,1,2\n', "column 'position/a' is there 2 times"),
        ('time,position/a\n0,1\n1,2,3\n', 'line 3: expected 2 fields, got 3'),
        ('time,position/a\n0,1\n1,x\n', "line 3: column 'position/a': expected a number, got 'x'"),
        ('time,position/a\nnan,1\n', "line 2: column 'time': expected a finite number, got 'nan'"),
        ('time,position/a,effort/b\n0,1,2\n', "column 'effort/b' has no 'position/b'"),
    ],
)
def test_bad_csv_is_refused_with_the_reason(tmp_path, text, message):
    path = tmp_path / 'bad.csv'
    path.write_text(text)
    with pytest.raises(DataError, match=message.replace('(', r'\(')):
        read_recording(path)


def test_what_plotjuggler_exports_is_read(tmp_path):
    """Other topics have rows of their own, in which the joint states are blank."""
    (tmp_path / 'export.csv').write_text(
        '__time,/imu/x,/joint_states/b/position,/joint_states/a/position,'
        '/joint_states/a/effort,/joint_states/b/effort\n'
        '1700000000.25,,0.1,0.2,3,4\n1700000000.26,7.5,,,,\n1700000000.27,,0.3,0.4,5,6\n'
    )
    found = read_recording(tmp_path / 'export.csv')
    assert found.joint_names == ('b', 'a')
    np.testing.assert_array_equal(found.position, [[0.1, 0.2], [np.nan, np.nan], [0.3, 0.4]])
    np.testing.assert_array_equal(found.effort[[0, 2]], [[4, 3], [6, 5]])
    assert found.provenance['ignored_columns'] == ['/imu/x']
    assert measured_torque(found, ProcessingSettings())[1] == ('unknown', 'unknown')
    assert found.time[2] - found.time[0] == pytest.approx(0.02, abs=1e-6)
    (tmp_path / 'twice.csv').write_text('__time,/left/a/position,/right/a/position\n0,1,2\n')
    with pytest.raises(DataError, match='the same position of a'):
        read_recording(tmp_path / 'twice.csv')


def test_what_is_no_recording_is_refused(tmp_path):
    (tmp_path / 'x.txt').write_bytes(b'\xff\xfe\x00')
    (tmp_path / 'x.npz').write_bytes(b'no archive')
    (tmp_path / 'x.png').write_bytes(b'')
    (tmp_path / 'folder').mkdir()
    for name, message in (
        ('none.csv', 'does not exist'),
        ('x.txt', 'as UTF-8 text'),
        ('x.npz', 'npz file of this package'),
        ('x.png', 'expected .csv, .npz'),
        ('folder', 'expected a bag'),
    ):
        with pytest.raises(DataError, match=message):
            read_recording(tmp_path / name)
    write_csv(tmp_path / 'run.csv', recording())
    with refused(DataError, file=str(tmp_path / 'run.csv'), name='/x'):
        read_recording(tmp_path / 'run.csv', topic='/x')
    with refused(DataError, file=str(tmp_path / 'run.csv'), name='z', expected=('a', 'joint_number_two', 'c')):
        read_recording(tmp_path / 'run.csv', joints=('z',))


PIPES = """
import os, sys
from contextlib import suppress
from pathlib import Path
from robotid_ros.data import read_recording
from robotid_ros.data.context import read_context
from robotid_ros.data.storage import is_dataset
from robotid_ros.errors import DataError
from robotid_ros.fleet.outcome import entries_of
folder = Path(sys.argv[1])
for name in ('x.csv', 'x.npz', 'x.mcap', 'x.db3', 'metadata.yaml'):
    os.mkfifo(folder / name)
    assert not is_dataset(folder / name)
    for read in (read_context, read_recording, entries_of):
        for path in (folder, folder / name):
            with suppress(DataError):
                read(path)
    (folder / name).unlink()
"""


@pytest.mark.slow
def test_a_pipe_in_place_of_a_file_is_not_waited_for(tmp_path):
    subprocess.run([sys.executable, '-c', PIPES, str(tmp_path)], check=True, timeout=240)


def test_a_pickle_in_an_npz_is_refused(tmp_path):
    np.savez(tmp_path / 'x.npz', header=np.array([{'kind': 'evil'}], dtype=object))
    with pytest.raises(DataError, match='npz file of this package'):
        load_recording(tmp_path / 'x.npz')


@pytest.mark.parametrize('part', [{'context': 'text'}, {'context': {'plan': 3}}, {'provenance': [1, 2]}])
def test_an_npz_whose_header_holds_other_types_is_refused(part, tmp_path):
    """What says where a recording is from, and what it says of itself, is used long after it was read."""
    time = np.arange(100.0)
    recording = Recording(joint_names=('a',), time=0.01 * time, position=time[:, None], effort=time[:, None])
    save_recording(tmp_path / 'good.npz', recording)
    assert len(load_recording(tmp_path / 'good.npz')) == 100
    with np.load(tmp_path / 'good.npz') as archive:
        arrays = dict(archive)
    header = json.loads(str(arrays.pop('header')))
    np.savez(tmp_path / 'bad.npz', header=np.array(json.dumps(header | part)), **arrays)
    with pytest.raises(DataError, match=r'bad\.npz cannot be read'):
        load_recording(tmp_path / 'bad.npz')


def test_dataset_round_trip(tmp_path):
    rng = np.random.default_rng(3)
    values = rng.standard_normal((5, 40, 2))
    dataset = Dataset(
        joint_names=('a', 'b'),
        time=np.arange(40.0),
        q=values[0],
        dq=values[1],
        ddq=values[2],
        tau=values[3],
        tau_filtered=values[4],
        rate=1.0,
        cutoff=0.1,
        noise_std=np.array([0.1, 0.2]),
        periods=7,
        trajectory=np.repeat([0, 1], 20),
        sources=('one', 'two'),
        provenance={'array': np.arange(3), 'text': 'x'},
    )
    save_dataset(tmp_path / 'd.npz', dataset)
    back = load_dataset(tmp_path / 'd.npz')
    for name in ('time', 'q', 'dq', 'ddq', 'tau', 'tau_filtered', 'noise_std', 'trajectory'):
        assert np.array_equal(getattr(back, name), getattr(dataset, name))
    assert (back.joint_names, back.rate, back.cutoff, back.periods, back.sources) == (
        ('a', 'b'),
        1.0,
        0.1,
        7,
        ('one', 'two'),
    )
    assert back.provenance == {'array': [0, 1, 2], 'text': 'x'}
    with refused(DataError, expected='robotid_ros recording 1', found='robotid_ros dataset 2'):
        load_recording(tmp_path / 'd.npz')


def test_a_crash_while_writing_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / 'd.npz'
    save_recording(path, recording())
    before = path.read_bytes()

    def full(*_, **__):
        raise OSError(28, 'No space left on device')

    monkeypatch.setattr(np, 'savez', full)
    with pytest.raises(DataError, match=r'cannot write .*No space left on device'):
        save_recording(path, recording())
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ['d.npz']


@pytest.mark.parametrize('storage', ['SQLITE3', 'MCAP'])
def test_bags_that_another_library_wrote(tmp_path, storage):
    rosbag2 = pytest.importorskip('rosbags.rosbag2')
    store = rosbags_store()
    rng = np.random.default_rng(4)
    values = rng.standard_normal((20, 3, 3))
    with rosbag2.Writer(tmp_path / 'bag', version=9, storage_plugin=rosbag2.StoragePlugin[storage]) as writer:
        arm = writer.add_connection('/arm/joint_states', 'sensor_msgs/msg/JointState', typestore=store)
        other = writer.add_connection('/gripper/states', 'sensor_msgs/msg/JointState', typestore=store)
        for k in range(20):
            stamp = 1_700_000_000_000_000_000 + k * 2_000_000
            order = [0, 1, 2] if k < 12 else [2, 0, 1]
            names = [NAMES[j] for j in order]
            q, dq, tau = values[k][:, order]
            writer.write(arm, stamp + 500_000, written_by_rosbags(store, stamp, names, q, dq, tau)[1])
            writer.write(other, stamp, written_by_rosbags(store, stamp, ['finger'], [0.0], [], [])[1])
    (data,) = [p for p in (tmp_path / 'bag').iterdir() if p.suffix in ('.db3', '.mcap')]
    for path in (tmp_path / 'bag', tmp_path / 'bag' / 'metadata.yaml', data):
        got = read_recording(path)
        assert got.joint_names == NAMES
        assert np.array_equal(got.position, values[:, 0])
        assert np.array_equal(got.velocity, values[:, 1])
        assert np.array_equal(got.effort, values[:, 2])
        assert got.origin == 1_700_000_000_000_000_000
        assert np.allclose(got.time, np.arange(20) * 0.002, atol=1e-12)
        assert got.provenance['counts']['order_changes'] == 1
        assert got.provenance['topic'] == '/arm/joint_states'
    assert read_recording(tmp_path / 'bag', topic='/gripper/states').joint_names == ('finger',)
    assert read_recording(tmp_path / 'bag', joints=NAMES[:2]).joint_names == NAMES[:2]
    with pytest.raises(
        DataError, match="topic '/nothing' has no sensor_msgs/msg/JointState; there are: /arm/joint_states, /grip"
    ):
        read_recording(tmp_path / 'bag', topic='/nothing')
    with pytest.raises(DataError, match='no message has all of the joints elbow; there are: a, c, joint_number_two'):
        read_recording(tmp_path / 'bag', joints=('elbow',))
    (tmp_path / 'bag' / 'metadata.yaml').unlink()  # as after a crash
    assert np.array_equal(read_recording(data).position, values[:, 0])


def test_stamps_that_a_bag_lacks(tmp_path):
    rosbag2 = pytest.importorskip('rosbags.rosbag2')
    store = rosbags_store()
    for name, missing in (('some', (0, 5)), ('all', range(20))):
        with rosbag2.Writer(tmp_path / name, version=9, storage_plugin=rosbag2.StoragePlugin.MCAP) as writer:
            topic = writer.add_connection('/joint_states', 'sensor_msgs/msg/JointState', typestore=store)
            for k in range(20):
                stamp = 1_700_000_000_000_000_000 + k * 2_000_000
                data = written_by_rosbags(store, 0 if k in missing else stamp, NAMES, [k, 0, 0], [], [])[1]
                writer.write(topic, stamp + 700_000, data)
    some = read_recording(tmp_path / 'some')
    assert some.position[:, 0].tolist() == [k for k in range(20) if k not in (0, 5)]
    assert some.origin == 1_700_000_000_002_000_000
    assert some.provenance['counts']['unstamped'] == 2
    every = read_recording(tmp_path / 'all')  # the bag's own times stand in
    assert every.origin == 1_700_000_000_000_700_000
    assert np.allclose(np.diff(every.time), 0.002, atol=1e-9)
    assert every.provenance['counts']['unstamped'] == 20


def test_a_damaged_bag_is_refused_with_one_line(tmp_path):
    pytest.importorskip('rosbags.rosbag2')
    (tmp_path / 'x.db3').write_bytes(b'this is no database at all')
    (tmp_path / 'x.mcap').write_bytes(b'nor is this')
    with sqlite3.connect(tmp_path / 'empty.db3'):
        pass
    for name in ('x.db3', 'x.mcap', 'empty.db3'):
        with pytest.raises(DataError, match=r'x\.db3|x\.mcap|empty\.db3'):
            read_recording(tmp_path / name)


@pytest.mark.skipif(not UR10.exists(), reason='the UR10 recording is not beside this repository')
def test_the_recording_of_a_real_arm():
    store = rosbags_store()
    with sqlite3.connect(UR10 / 'ur10_exciting_trajectory.db3') as database:
        rows = database.execute('SELECT data FROM messages ORDER BY timestamp').fetchall()
    messages = [store.deserialize_cdr(row[0], 'sensor_msgs/msg/JointState') for row in rows]
    for path in (UR10, UR10 / 'metadata.yaml', UR10 / 'ur10_exciting_trajectory.db3'):
        got = read_recording(path)
        assert got.joint_names == tuple(messages[0].name)
        assert np.array_equal(got.position, [m.position for m in messages])
        assert np.array_equal(got.velocity, [m.velocity for m in messages])
        assert np.array_equal(got.effort, [m.effort for m in messages])
        assert got.rate == pytest.approx(125.0)
        assert json.dumps(got.provenance)
