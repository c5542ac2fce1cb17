# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.


"""A recording speaks for itself: commands need nothing else, and no motion is lent from another."""

import argparse
import re
import resource
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from errors_helpers import refused
from identification_helpers import TWO_LINKS, fourier_motion, pinocchio_torque
from recorder_helpers import joint_state, joint_trajectory

from robotid_ros.cli import main
from robotid_ros.commands.options import (
    add_processing_arguments,
    add_robot_arguments,
    motion_settings,
    processing_settings,
)
from robotid_ros.commands.sources import source_of
from robotid_ros.data import ProcessingSettings, load_dataset, process_file, read_recording, write_csv
from robotid_ros.data.bag import Bag
from robotid_ros.data.bag_writer import BagWriter
from robotid_ros.data.context import SCHEMAS, message_text, read_context
from robotid_ros.data.messages import JointStateDecoder, MessageChunk
from robotid_ros.data.reference import decode_reference
from robotid_ros.data.session import RecordingSession
from robotid_ros.data.storage import save_recording
from robotid_ros.errors import DataError, ModelError, ModelWarning
from robotid_ros.excitation import ExcitationConfig, optimize_excitation
from robotid_ros.excitation.design import save_excitation
from robotid_ros.model import RobotConfig, RobotModel

pytest.importorskip('rosbags.rosbag2')

MODEL = RobotModel.from_urdf(TWO_LINKS, joints=('shoulder', 'elbow'))
START = 1_700_000_000_000_000_000
RATE = 200.0
QUICK = ['--friction', 'coulomb_viscous', '--estimator', 'wls', '--torque-bandwidth', '-1']
ROBOT = RobotConfig(
    joints=MODEL.joint_names,
    effort={'shoulder': 'current', 'elbow': 'torque'},
    torque_constants={'shoulder': 0.1},
    gear_ratios={'shoulder': 50.0},
    limits={'velocity': {'elbow': 2.0}},
    drives={'elbow': {'shoulder': 0.5}},
    design={'ground': True},
    tip='lower',
)


def torque_of(q, dq, ddq, rng):
    torque = pinocchio_torque(MODEL, q, dq, ddq) + np.array([3.0, 1.5]) * np.sign(dq) + np.array([2.0, 1.0]) * dq
    return torque + 0.05 * rng.standard_normal(q.shape)


def periodic(rng, period, periods):
    """Return times, positions, velocities and torques of a run that repeats."""
    time = np.arange(0.0, period * periods, 1.0 / RATE)
    q, dq, ddq = (np.zeros((len(time), 2)) for _ in range(3))
    for k in range(1, 5):
        w, (a, b) = 2.0 * np.pi * k / period, 0.5 * rng.standard_normal((2, 2)) / k
        s, c = np.sin(w * time)[:, None], np.cos(w * time)[:, None]
        q, dq, ddq = q + a * s + b * c, dq + w * (a * c - b * s), ddq - w * w * (a * s + b * c)
    return time, q, dq, torque_of(q, dq, ddq, rng)


def free(rng):
    time, q, dq, ddq = fourier_motion(2, rng)
    return time, q, dq, torque_of(q, dq, ddq, rng)


def messages(time, q, dq, torque):
    stamps = [START + round(t * 1e9) for t in time.tolist()]
    rows = zip(stamps, q.tolist(), dq.tolist(), torque.tolist(), strict=True)
    return [joint_state(stamp, MODEL.joint_names, a, b, c) for stamp, a, b, c in rows], stamps


def recorded(folder: Path, motion, robot: RobotConfig = ROBOT, purpose: str = 'excitation', period: float = 5.0):
    """Record as the node does; the shoulder's effort is a current."""
    time, q, dq, torque = motion
    data, stamps = messages(time, q, dq, torque / (np.array([5.0, 1.0]) if 'current' in robot.effort.values() else 1.0))
    texts = {
        '/robot_description': TWO_LINKS,
        '/recorder/robot_configuration': message_text(SCHEMAS['robot_configuration'], robot.content()),
        '/excitation/plan': message_text(SCHEMAS['plan'], {'purpose': purpose, 'excitation': {'period': period}}),
    }
    session = RecordingSession(folder, (), ProcessingSettings.for_robot(robot), {}, texts=texts)
    session.take(MessageChunk.of(data, stamps))
    session.finish()


def plain(folder: Path, motion, storage: str, description: str = TWO_LINKS):
    """Write what `ros2 bag record -a` leaves of an arm."""
    from rosbags import rosbag2, typesys

    store = typesys.get_typestore(typesys.Stores.ROS2_JAZZY)
    text = store.types['std_msgs/msg/String'](data=description)
    data, stamps = messages(*motion)
    with rosbag2.Writer(folder, version=9, storage_plugin=rosbag2.StoragePlugin[storage]) as writer:
        topic = writer.add_connection('/robot_description', 'std_msgs/msg/String', typestore=store)
        writer.write(topic, START, store.serialize_cdr(text, 'std_msgs/msg/String'))
        topic = writer.add_connection('/joint_states', 'sensor_msgs/msg/JointState', typestore=store)
        for stamp, message in zip(stamps, data, strict=True):
            writer.write(topic, stamp, message)


def test_what_is_written_first_is_read_back(tmp_path):
    recorded(tmp_path / 'r', free(np.random.default_rng(0)))
    context = read_context(tmp_path / 'r')
    assert context.description == TWO_LINKS
    assert RobotConfig.from_dict(context.robot) == ROBOT
    assert (context.purpose, context.period) == ('excitation', 5.0)
    from rosbags.rosbag2 import Reader

    with Reader(tmp_path / 'r') as reader:
        durable = {c.topic: c.ext.offered_qos_profiles[0].durability.name for c in reader.connections}
    texts = ('/robot_description', '/recorder/robot_configuration', '/excitation/plan')
    topics = [topic for topic, _ in Bag.open(tmp_path / 'r').messages([*texts, '/joint_states'])]
    assert topics[:4] == [*texts, '/joint_states']
    assert durable['/robot_description'] == 'TRANSIENT_LOCAL'
    told = yaml.safe_load(message_text(SCHEMAS['plan'], {}))
    assert (told['schema'], told['version']) == ('robotid_ros/plan', 1)


@pytest.mark.slow
def test_a_folder_of_recordings_is_all_that_the_commands_need(tmp_path, capsys, monkeypatch):
    rng = np.random.default_rng(1)
    recorded(tmp_path / 'runs' / 'a', periodic(rng, 5.0, 5))
    recorded(tmp_path / 'runs' / 'b', periodic(rng, 5.0, 4), purpose='validation')
    monkeypatch.chdir(tmp_path)
    assert main(['identify', 'runs', '--out', 'out', *QUICK]) == 0
    said = capsys.readouterr().out
    assert said.splitlines()[0].endswith(': /robot_description in a')
    assert 'effort     motor current, by torque constants (shoulder); torque (elbow): /recorder/robot_conf' in said
    assert said.count('repeats every 5 s, as its plan says') == 2
    assert 'validation' in said
    dataset = load_dataset(tmp_path / 'out' / 'training_1.npz')
    assert dataset.effort == ('current', 'torque')
    assert dataset.context['description'] == TWO_LINKS
    for words in (
        ['report', 'out'],
        ['validate', 'runs/b', '--result', 'out'],
        ['process', 'runs/b', '--out', 'b.npz'],
        ['validate', 'b.npz', '--result', 'out'],
        ['payload', '--with', 'runs/b', '--result', 'out', '--out', 'payload'],
    ):
        assert main(words) == 0, words
        assert 'arm        ' in capsys.readouterr().out, words


@pytest.mark.parametrize('storage', ['SQLITE3', 'MCAP'])
def test_a_plain_bag_works_as_far_as_it_goes(storage, tmp_path, capsys):
    plain(tmp_path / 'bag', free(np.random.default_rng(2)), storage)
    assert main(['identify', str(tmp_path / 'bag'), '--out', str(tmp_path / 'out'), *QUICK]) == 0
    said = capsys.readouterr().out
    assert '/robot_description in bag' in said.splitlines()[0]
    assert 'unknown, taken as torque' in said.splitlines()[1]
    assert 'any motion: it does not repeat' in said
    assert load_dataset(tmp_path / 'out' / 'training_1.npz').effort == ('unknown', 'unknown')


def test_of_two_arms_the_recorded_one_is_taken(tmp_path):
    """Nothing names the arm: not for a table, an npz file, nor a bag with the description of both."""
    other = re.sub(r'"(upper|lower|tool|shoulder|elbow|flange)"', r'"other_\1"', TWO_LINKS)
    other = other[other.index('<link name="other_upper">') : other.index('</robot>')]
    both = TWO_LINKS.replace('</robot>', f'{other}</robot>')
    (tmp_path / 'both.urdf').write_text(both)
    plain(tmp_path / 'bag', free(np.random.default_rng(0)), 'MCAP', both)
    recording = read_recording(tmp_path / 'bag')
    write_csv(tmp_path / 'table.csv', recording)
    save_recording(tmp_path / 'kept.npz', recording)
    parser = argparse.ArgumentParser()
    add_robot_arguments(parser, required=False)
    add_processing_arguments(parser)
    for name in ('bag', 'table.csv', 'kept.npz'):
        words = [] if name == 'bag' else ['--robot', str(tmp_path / 'both.urdf')]
        with pytest.warns(ModelWarning, match='no part of the arm: other_elbow, other_shoulder'):
            source = source_of(parser.parse_args(words), [tmp_path / name])
        assert source.model.joint_names == MODEL.joint_names, name


def test_recordings_that_contradict_each_other_are_refused(tmp_path, capsys):
    motion = free(np.random.default_rng(3))
    plain(tmp_path / 'one', motion, 'MCAP')
    plain(tmp_path / 'two', motion, 'MCAP', TWO_LINKS.replace('two_links', 'other'))
    assert main(['identify', str(tmp_path / 'one'), str(tmp_path / 'two'), '--out', str(tmp_path / 'out'), *QUICK]) == 2
    assert 'has another arm than' in capsys.readouterr().err
    (tmp_path / 'arm.csv').write_text('time,position/a\n0,0\n', encoding='utf-8')
    assert main(['identify', str(tmp_path / 'arm.csv'), '--out', str(tmp_path / 'out')]) == 2
    assert 'which arm? No recording has a robot_description; give it by --robot' in capsys.readouterr().err


@pytest.mark.slow
def test_no_motion_is_lent_from_another_recording(tmp_path, capsys):
    """The period of the training is not that of a free validation, nor of one with a period of its own."""
    rng = np.random.default_rng(4)
    plain(tmp_path / 'run', periodic(rng, 5.0, 5), 'MCAP')
    plain(tmp_path / 'free', free(rng), 'MCAP')
    plain(tmp_path / 'other', periodic(rng, 4.0, 5), 'MCAP')
    words = ['identify', str(tmp_path / 'run'), '--period', '5', '--out', str(tmp_path / 'out'), *QUICK]
    assert main([*words, '--validate', str(tmp_path / 'free'), str(tmp_path / 'other')]) == 0
    said = capsys.readouterr().out
    assert 'repeats every 5 s, as asked' in said
    assert 'any motion: it does not repeat every 5 s, as asked' in said
    assert 'as its positions show, not every 5 s, as asked' in said
    assert main([*words, '--validate', str(tmp_path / 'other'), '--validate-excitation', 'none']) == 0
    assert 'any motion, as asked' in capsys.readouterr().out
    assert main([*words, '--train-fraction', '0.5']) == 0
    assert capsys.readouterr().out.count('repeats every 5 s, as asked') == 2


@pytest.mark.slow
def test_an_option_overrides_only_what_it_names(tmp_path):
    """Random options: of the settings, only those named differ; what motion it was does not depend on the filter."""
    rng = np.random.default_rng(6)
    plain(tmp_path / 'repeats', periodic(rng, 5.0, 4), 'MCAP')
    plain(tmp_path / 'free', free(rng), 'MCAP')
    motions = {name: process_file(tmp_path / name)[0].provenance['motion'] for name in ('repeats', 'free')}
    assert motions['repeats'].startswith('repeats every 5')
    values = {
        'cutoff': lambda: float(rng.uniform(4.0, 45.0)),
        'differentiation': lambda: 'savitzky-golay',
        'period': lambda: 5.0,
        'excitation': lambda: 'none',
    }
    parser = argparse.ArgumentParser()
    add_processing_arguments(parser)
    robot = replace(ROBOT, effort={'shoulder': 'torque', 'elbow': 'torque'})
    defaults = processing_settings(parser.parse_args([]), robot, MODEL.joint_names)
    for number in range(24):
        given = {name: make() for name, make in values.items() if rng.integers(2)}
        if given.keys() >= {'period', 'excitation'}:
            del given['period']
        words = [word for name, value in given.items() for word in (f'--{name}', str(value))]
        settings = processing_settings(parser.parse_args(words), robot, MODEL.joint_names)
        named = {name: value for name, value in given.items() if name != 'excitation'}
        assert settings == replace(defaults, **named, **({'average': False} if 'excitation' in given else {})), words
        if number < 8:
            for name, usual in motions.items():
                motion = process_file(tmp_path / name, settings)[0].provenance['motion']
                if not given.keys() & {'period', 'excitation'}:
                    assert motion == usual, (name, words)
                assert motion.startswith('any motion' if 'excitation' in given else usual.split(',')[0]), (name, words)
    assert motion_settings('none', ()) == {'period': None, 'average': False}
    excitation = tmp_path / 'excitation.yaml'
    save_excitation(optimize_excitation(MODEL, ExcitationConfig(period=5.0, starts=1, iterations=5)), excitation)
    free_motion = replace(defaults, average=False)  # --excitation none, and another for those to judge by
    assert replace(free_motion, **motion_settings(str(excitation), MODEL.joint_names)) == replace(defaults, period=5.0)


@pytest.mark.slow
def test_a_reference_that_the_arm_does_not_follow_averages_nothing(tmp_path):
    """Random motions beside random references; one whole period after the transient, and several, tell it."""
    rng = np.random.default_rng(5)
    reasons = []
    for number in range(8):
        span = (11.0, 36.0)[number % 2]
        time, q, dq, torque = periodic(rng, 7.3, 5)
        kept = time < span
        period, followed = 5.0, number in (2, 3)
        if followed:
            period = 7.3
            time, q, dq, torque = periodic(rng, period, 5)
            other = tuple(part[: round(period * RATE) + 1] for part in (time, q, dq))
            kept = time < (16.0, 36.0)[number % 2]
        else:
            other = periodic(rng, 5.0, 1.005)[:3]
        points = [(round(t * 1e9), a, b, ()) for t, a, b in zip(*(part.tolist() for part in other), strict=True)]
        data, stamps = messages(time[kept], q[kept], dq[kept], torque[kept])
        folder = tmp_path / str(number)
        kinds = {'/joint_states': 'sensor_msgs/msg/JointState', '/x/reference': 'trajectory_msgs/msg/JointTrajectory'}
        writer = BagWriter(folder, kinds)
        writer.append('/x/reference', MessageChunk.of([joint_trajectory(START, MODEL.joint_names, points)], [START]))
        writer.append('/joint_states', MessageChunk.of(data, stamps))
        writer.close()
        dataset, said = process_file(folder)
        if followed:
            assert 'follows its reference: repeats every 7.3 s' in said
            continue
        assert 'does not follow its reference' in said, (number, said)
        assert 'averaging' not in dataset.provenance or abs(dataset.provenance['averaging']['period'] - 5.0) > 1.0
        reasons.append(dataset.provenance['not_averaged'])
    assert any('(rms) away from it' in reason for reason in reasons)
    assert any('from period to period' in reason for reason in reasons)


@pytest.mark.slow
def test_each_arm_of_a_bag_has_what_is_nearest_to_its_joint_states(tmp_path):
    """Random namespaces and orders of the topics; an arm without a reference is lent none."""
    rng = np.random.default_rng(7)
    for number in range(4):
        spaces = [('/left', '/right'), ('/cell/a', '/cell/b'), ('', '/second'), ('/x/arm', '/x/arm_2')][number]
        periods, alone = (5.0, 4.0), bool(number % 2)
        parts = []
        for space, period in zip(spaces, periods, strict=True):
            motion = periodic(rng, period, 5)
            points = list(zip(*(part[: round(period * RATE) + 1] for part in motion[:3]), strict=True))
            rows = [(round(float(t) * 1e9), a.tolist(), b.tolist(), ()) for t, a, b in points]
            reference = joint_trajectory(START, MODEL.joint_names, rows)
            description = TWO_LINKS.replace('two_links', f'arm{space.replace("/", "_")}')
            parts.append((space, period, *messages(*motion), reference, description))
        writer = BagWriter(tmp_path / str(number), {})
        for k in rng.permutation(2).tolist():
            space, _, data, stamps, reference, description = parts[k]
            writer.say(f'{space}/robot_description', description, START)
            writer.add_topic(f'{space}/joint_states', 'sensor_msgs/msg/JointState')
            if k == 0 or not alone:
                writer.add_topic(f'{space}/excitation/reference', 'trajectory_msgs/msg/JointTrajectory')
                writer.append(f'{space}/excitation/reference', MessageChunk.of([reference], [START]))
            writer.append(f'{space}/joint_states', MessageChunk.of(data, stamps))
        writer.close()
        for k, (space, period, *_, description) in enumerate(parts):
            topic = f'{space}/joint_states'
            assert read_context(tmp_path / str(number), topic).description == description
            motion = process_file(tmp_path / str(number), topic=topic)[0].provenance['motion']
            own = 'repeats every' if k == 1 and alone else 'follows its reference: repeats every'
            assert motion.startswith(f'{own} {period:g}'[:-1]) or f'{own} {period - 1:g}.9' in motion, (number, motion)


def test_of_several_joint_states_those_with_efforts_of_the_most_joints_are_the_arms(tmp_path):
    """Beside the arm a gripper, which has efforts too, and what shows all joints without; of two arms, none."""
    stamps = [START + k * 5_000_000 for k in range(400)]
    swing = np.sin(0.02 * np.arange(400)).tolist()
    kind = 'sensor_msgs/msg/JointState'
    told = {
        '/cell/joint_states': (['shoulder', 'elbow', 'finger'], ()),
        '/arm/joint_states': (['shoulder', 'elbow'], (1.0, 2.0)),
        '/gripper/joint_states': (['finger'], (0.1,)),
    }
    writer = BagWriter(tmp_path / 'one', dict.fromkeys(told, kind))
    for topic, (names, effort) in told.items():
        data = [joint_state(t, names, [x] * len(names), (), effort) for t, x in zip(stamps, swing, strict=True)]
        writer.append(topic, MessageChunk.of(data, stamps))
    writer.close()
    dataset, summary = process_file(tmp_path / 'one')
    assert dataset.joint_names == ('shoulder', 'elbow')
    assert 'joint states of /arm/joint_states, not of /cell/joint_states, /gripper/joint_states' in summary
    assert read_context(tmp_path / 'one').joints == ('shoulder', 'elbow')
    writer = BagWriter(tmp_path / 'two', {f'/{side}/joint_states': kind for side in ('left', 'right')})
    for side in ('left', 'right'):
        data = [joint_state(t, [f'{side}_a'], [x], (), [x]) for t, x in zip(stamps, swing, strict=True)]
        writer.append(f'/{side}/joint_states', MessageChunk.of(data, stamps))
    writer.close()
    with pytest.raises(DataError, match='say which topic to read'):
        process_file(tmp_path / 'two')


@pytest.mark.slow
@pytest.mark.parametrize('how', ['robot', 'joints', 'description', 'configuration'])
def test_of_two_arms_in_one_bag_that_is_read_whose_joints_are_named(how, tmp_path, capsys):
    """Both have efforts of two joints; an option names one, or the bag describes one of them."""
    rng = np.random.default_rng(5)
    kind = 'sensor_msgs/msg/JointState'
    writer = BagWriter(tmp_path / 'bag', {f'/{side}/joint_states': kind for side in ('a', 'b')})
    if how == 'description':
        writer.say('/robot_description', TWO_LINKS, START)
    for side, names in (('a', ['left', 'right']), ('b', [*MODEL.joint_names])):
        time, q, dq, torque = free(rng)
        stamps = [START + round(t * 1e9) for t in time.tolist()]
        rows = zip(stamps, q.tolist(), dq.tolist(), torque.tolist(), strict=True)
        data = [joint_state(stamp, names, *values) for stamp, *values in rows]
        writer.append(f'/{side}/joint_states', MessageChunk.of(data, stamps))
    writer.close()
    (tmp_path / 'arm.urdf').write_text(TWO_LINKS)
    (tmp_path / 'config.yaml').write_text(f'joints: [{", ".join(MODEL.joint_names)}]')
    words = {
        'robot': ['--robot', str(tmp_path / 'arm.urdf')],
        'joints': ['--robot', str(tmp_path / 'arm.urdf'), '--joints', *MODEL.joint_names],
        'description': [],
        'configuration': ['--robot', str(tmp_path / 'arm.urdf'), '--config', str(tmp_path / 'config.yaml')],
    }[how]
    main(['identify', str(tmp_path / 'bag'), '--out', str(tmp_path / 'out'), *words, *QUICK])
    assert 'joint states of /b/joint_states, not of /a/joint_states' in capsys.readouterr().out
    assert load_dataset(tmp_path / 'out' / 'training_1.npz').joint_names == MODEL.joint_names
    if how == 'robot':  # the shoulder is looked at, too
        assert main(['identify', str(tmp_path / 'bag'), *words, '--joints', 'elbow', *QUICK]) == 2
        assert 'joint shoulder moves by' in capsys.readouterr().err
    if how in ('joints', 'configuration', 'description'):
        words = [word for word in words if word not in ('--robot', str(tmp_path / 'arm.urdf'))]
        assert main(['process', str(tmp_path / 'bag'), '--out', str(tmp_path / 'one.npz'), *words]) == 0
        assert load_dataset(tmp_path / 'one.npz').joint_names == MODEL.joint_names


def test_messages_with_empty_arrays_are_read_as_the_middleware_makes_them():
    serialization = pytest.importorskip('rclpy.serialization')
    from builtin_interfaces.msg import Duration
    from sensor_msgs.msg import JointState
    from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

    for names in (['a'], ['ab', 'cde'], ['joint_1', 'joint_2', 'joint_3']):
        values = [1.5] * len(names)
        for form in range(8):
            for frame in ('', 'base', 'world1'):
                state = JointState(name=names)
                state.header.frame_id, state.header.stamp.sec = frame, 5
                fields = [name for k, name in enumerate(('position', 'velocity', 'effort')) if form >> k & 1]
                for name in fields:
                    setattr(state, name, values)
                batch = JointStateDecoder().decode([bytes(serialization.serialize_message(state))])
                for name in ('position', 'velocity', 'effort'):
                    if name in fields:
                        assert (batch[name] == 1.5).all() or 'position' not in fields
                    else:
                        assert np.isnan(batch[name]).all()
        message = JointTrajectory(joint_names=names)
        for k in range(5):
            message.points.append(
                JointTrajectoryPoint(positions=[0.1 * k] * len(names), time_from_start=Duration(sec=k))
            )
        assert decode_reference(bytes(serialization.serialize_message(message))).period == pytest.approx(4.0)


def test_what_a_killed_recorder_left_in_the_journal_of_a_database_is_read(tmp_path):
    path = tmp_path / 'bag.db3'
    code = f"""
import os, sqlite3, sys
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
from recorder_helpers import START, joint_state
database = sqlite3.connect({str(path)!r})
database.execute('PRAGMA journal_mode=WAL')
database.execute('CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT, type TEXT, serialization_format TEXT)')
database.execute('CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INT, timestamp INT, data BLOB)')
database.execute("INSERT INTO topics VALUES(1, '/joint_states', 'sensor_msgs/msg/JointState', 'cdr')")
rows = [(k + 1, START + k * 10**6, joint_state(START + k * 10**6, ['a'], [k])) for k in range(300)]
database.executemany('INSERT INTO messages VALUES(?, 1, ?, ?)', rows)
database.commit()
os._exit(1)
"""
    subprocess.run([sys.executable, '-c', code], check=False)
    assert path.with_name('bag.db3-wal').stat().st_size > 0
    recording = read_recording(path)
    assert recording.position[:, 0].tolist() == list(range(300))
    assert not recording.provenance['ended_properly']
    with closing(sqlite3.connect(f'{path.as_uri()}?immutable=1', uri=True)) as database:  # the file is as it was
        assert database.execute('SELECT count(*) FROM sqlite_master').fetchone() == (0,)


@pytest.mark.slow
def test_on_a_full_disk_no_folder_looks_complete(tmp_path):
    code = f"""
import resource, sys
from pathlib import Path
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
from recorder_helpers import *
from robotid_ros.data import ProcessingSettings
from robotid_ros.data.messages import MessageChunk
from robotid_ros.data.session import RecordingSession
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
session = RecordingSession(Path({str(tmp_path / 'r')!r}), JOINTS, ProcessingSettings(), {{}})
for k in range(0, 5000, 250):
    data = [joint_state(START + i * 10**6, JOINTS, (i, 0, 0)) for i in range(k, k + 250)]
    session.take(MessageChunk.of(data, [START + i * 10**6 for i in range(k, k + 250)]))
session.finish()
print(session.problem)
"""
    assert resource.RLIMIT_FSIZE is not None
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True)
    assert 'raw messages are no longer written' in done.stdout
    assert not (tmp_path / 'r' / 'metadata.yaml').exists()
    recording = read_recording(tmp_path / 'r')
    assert not recording.provenance['ended_properly']
    count = len(recording)
    assert 250 <= count < 5000
    assert recording.position[:, 0].tolist() == list(range(count))


def test_a_link_that_cannot_be_is_named_and_a_tip_is_proposed_before_the_gripper():
    body = '<inertial><mass value="1"/><inertia ixx="{}" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>'

    def joint(name, parent, child, kind='revolute', size='0.01'):
        limits = '<axis xyz="0 1 0"/><origin xyz="0 0 0.2"/><limit lower="-1" upper="1" velocity="1" effort="9"/>'
        ends = f'<parent link="{parent}"/><child link="{child}"/>'
        return (
            f'<link name="{child}">{body.format(size)}</link><joint name="{name}" type="{kind}">{ends}{limits}</joint>'
        )

    with refused(ModelError, name='one', found=1e308):
        RobotModel.from_urdf(f'<robot name="r"><link name="base"/>{joint("j", "base", "one", size="1e308")}</robot>')
    arms = ''.join(
        joint(f'{side}{k}', 'base' if k == 1 else f'{side}_{k - 1}', f'{side}_{k}')
        for side in ('left', 'right') for k in (1, 2, 3)
    )  # fmt: skip
    fingers = ''.join(
        joint(f'{side}_finger_{k}', f'{side}_3', f'{side}_finger_link_{k}', 'prismatic')
        for side in ('left', 'right') for k in (1, 2)
    )  # fmt: skip
    with refused(ModelError, name='base', expected=('left_3', 'right_3')):
        RobotModel.from_urdf(f'<robot name="r"><link name="base"/>{arms}{fingers}</robot>')


def test_help_shows_ranges(capsys):
    with pytest.raises(SystemExit):
        main(['identify', '--help'])
    assert ' to ' in capsys.readouterr().out


def test_a_csv_file_tells_its_joints_below_a_remark(tmp_path):
    (tmp_path / 'run.csv').write_text('# made by hand\n\ntime,"position/elbow",effort/elbow,position/wrist\n0,0,0,0\n')
    assert read_context(tmp_path / 'run.csv').joints == ('elbow', 'wrist')
    (tmp_path / 'exported.csv').write_text('__time,/imu/x,/joint_states/elbow/position,/joint_states/elbow/effort\n')
    assert read_context(tmp_path / 'exported.csv').joints == ('elbow',)


def test_a_configuration_that_speaks_of_currents_does_not_change_the_torques_of_a_csv(tmp_path):
    """What effort holds in joint states is not what it holds in a table, whose columns say so; the user is told."""
    (tmp_path / 'arm.urdf').write_text(TWO_LINKS, encoding='utf-8')
    (tmp_path / 'run.csv').write_text('time,position/shoulder,position/elbow\n0,0,0\n', encoding='utf-8')
    parser = argparse.ArgumentParser()
    add_robot_arguments(parser)
    add_processing_arguments(parser)
    for effort, told in (('current', True), ('torque', False)):
        (tmp_path / 'arm.yaml').write_text(f'joints: [shoulder, elbow]\neffort: {effort}\n', encoding='utf-8')
        words = ['--robot', str(tmp_path / 'arm.urdf'), '--config', str(tmp_path / 'arm.yaml')]
        said = source_of(parser.parse_args(words), [tmp_path / 'run.csv']).lines[1]
        assert said.startswith('effort     as the columns of CSV say')
        assert ('columns of currents are called current/JOINT' in said) == told


def test_a_text_of_another_schema_is_no_configuration(tmp_path):
    writer = BagWriter(tmp_path / 'b', {'/joint_states': 'sensor_msgs/msg/JointState'})
    writer.say('/x/plan', 'lunch at noon', START)
    writer.say('/x/robot_configuration', 'schema: robotid_ros/robot_configuration\nversion: 9\n', START)
    writer.append('/joint_states', MessageChunk.of([joint_state(START, ('a',), (0.0,))], [START]))
    writer.close()
    with refused(DataError, name='robotid_ros/robot_configuration', expected=1, found=9):
        read_context(tmp_path / 'b')
