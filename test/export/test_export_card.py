# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Cards of identified arms: what they hold, what reads them, and what they are worth as a prior."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from identification_helpers import TWO_LINKS, UR10E, as_described, dataset, fourier_motion, pinocchio_torque

from robotid_ros.cli import main
from robotid_ros.data import Recording, write_csv
from robotid_ros.errors import IdentificationError
from robotid_ros.export.card import Card
from robotid_ros.identification import IdentificationConfig, IdentificationResult, identify
from robotid_ros.model import RobotModel
from robotid_ros.model.inertia import pseudo_inertia, pseudo_inertia_parameters

ARM = RobotModel.from_urdf(UR10E)


def relative(seed: int) -> RobotModel:
    """Return an arm of the same kinematics with other bodies, which its description does not know."""
    rng = np.random.default_rng(seed)
    bodies = []
    for each in pseudo_inertia(np.array(ARM.inertial)):
        change = np.eye(4) + 0.25 * rng.uniform(-1.0, 1.0, (4, 4))
        bodies.append(pseudo_inertia_parameters(change @ each @ change.T))
    return ARM.with_inertial(np.array(bodies))


def shown(arm: RobotModel, seed: int, seconds: float, noise: float = 0.5):
    rng = np.random.default_rng(seed)
    motion = fourier_motion(6, rng, seconds=20.0, size=0.8)
    part = tuple(each[: int(100 * seconds)] for each in motion)
    torque = pinocchio_torque(arm, *part[1:]) + 5.0 * np.sign(part[2]) + 2.0 * part[2]
    return dataset(ARM, part, torque + rng.normal(0.0, noise, torque.shape))


@pytest.fixture(scope='module')
def card(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a card that the command made, of a recording with a path that is nobody's business."""
    folder = tmp_path_factory.mktemp('secret_place')
    for name, seed in (('run', 1), ('other', 2)):
        data = shown(relative(3), seed, 20.0)
        write_csv(
            folder / f'{name}.csv',
            Recording(joint_names=data.joint_names, time=data.time, position=data.q, effort=data.tau),
        )
    arguments = ['identify', str(folder / 'run.csv'), '--validate', str(folder / 'other.csv'), '--robot', str(UR10E)]
    with as_described():
        assert main([*arguments, '--friction', 'coulomb_viscous', '--out', str(folder / 'found')]) == 0
    said = ['--arm', 'UR10e', '--serial', '2019', '--licence', 'CC0']
    assert main(['card', str(folder / 'found'), '--out', str(folder / 'card'), *said]) == 0
    return folder / 'card'


def test_a_card_says_what_was_identified_and_from_what(card: Path) -> None:
    text = (card / 'card.yaml').read_text()
    content = yaml.safe_load(text)
    result = IdentificationResult.load(card.parent / 'found')
    assert content['arm'] == 'UR10e'
    assert 'firmware' not in content  # nobody said it
    assert content['judged_by'] == 'validation'
    assert content['error'] == pytest.approx(result.metrics['validation'].relative_error_total)
    assert [each['file'] for each in content['recordings']] == ['run.csv', 'other.csv']
    assert [each['use'] for each in content['recordings']] == ['training', 'validation']
    assert all(len(each['sha256']) == 64 for each in content['recordings'])
    page = (card / 'card.md').read_text()
    assert page.startswith('# UR10e\n')
    assert all(f'| {joint} |' in page for joint in ARM.joint_names)
    for each in (text, page):
        assert 'secret_place' not in each
        assert str(Path.home()) not in each
    source = {'recording': {'file': '/secret_place/old.csv', 'sha256': 64 * '0'}, 'rate': 100.0, 'samples': 250}
    old = Card.of(replace(result, provenance={'training': [source]}), {})  # of a result that has the whole path
    assert old.recordings == ({'file': 'old.csv', 'sha256': 64 * '0', 'use': 'training', 'seconds': 2.5},)


def test_a_card_is_taken_wherever_a_result_is(card: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, own = IdentificationResult.load(card / 'card.yaml'), IdentificationResult.load(card.parent / 'found')
    for name in ('base_values', 'base_std', 'inertial', 'friction_values', 'rotor_inertia'):
        np.testing.assert_array_equal(getattr(one, name), getattr(own, name))
    both = [str(card / 'card.yaml'), str(card.parent / 'found')]
    assert main(['compare', *both, '--out', str(tmp_path / 'compare.html')]) == 0
    assert 'The arm has changed' not in capsys.readouterr().out
    assert main(['export', both[0], '--robot', str(UR10E), '--to', 'cpp', '--out', str(tmp_path / 'cpp')]) == 0
    assert (tmp_path / 'cpp' / 'inverse_dynamics.hpp').is_file()


def test_a_changed_card_is_refused(card: Path, tmp_path: Path) -> None:
    content = yaml.safe_load((card / 'card.yaml').read_text())
    content['result']['base_parameters'][0]['value'] += 1.0
    (tmp_path / 'card.yaml').write_text(yaml.safe_dump(content))
    with pytest.raises(IdentificationError, match='changed or damaged'):
        IdentificationResult.load(tmp_path / 'card.yaml')
    del content['result']
    (tmp_path / 'card.yaml').write_text(yaml.safe_dump(content))
    with pytest.raises(IdentificationError, match='a card without a result'):
        IdentificationResult.load(tmp_path / 'card.yaml')
    with pytest.raises(IdentificationError, match="a card has no 'owner'; it has: arm, serial"):
        Card.of(IdentificationResult.load(card / 'card.yaml'), {'owner': 'me'})


@pytest.mark.usefixtures('set_up_as_described')
def test_the_card_of_a_like_arm_helps_where_the_motion_is_short(card: Path) -> None:
    """Three seconds of an arm whose bodies are those of the card, not those of the description."""
    run, judge = shown(relative(3), 7, 3.0), shown(relative(3), 8, 20.0)
    errors, leaning = [], []
    for prior in ('', str(card / 'card.yaml')):
        config = IdentificationConfig(prior=prior, friction='coulomb_viscous')
        found = identify(run, ARM, config=config, validation=judge)
        errors.append(found.metrics['validation'].relative_error_total)
        leaning += [each.chosen for each in found.decisions if each.subject == 'prior']
    assert errors[1] < 0.7 * errors[0]
    assert len(leaning) == 1  # a result without a card says nothing of one
    assert leaning[0].startswith('card.yaml tells ')
    long = identify(shown(relative(3), 9, 20.0), ARM, config=config)
    said = next(each.chosen for each in long.decisions if each.subject == 'prior')
    assert share(said) < share(leaning[0])
    assert next(each for each in Card.of(long, {}).result.decisions).chosen == said


def share(said: str) -> float:
    return float(said.split('tells ')[1].split(' %')[0])


def test_a_prior_that_does_not_fit_is_refused(card: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = shown(ARM, 1, 5.0)
    other = RobotModel.from_urdf(TWO_LINKS, tip='tool')
    motion = fourier_motion(2, np.random.default_rng(1))
    two = dataset(other, motion, pinocchio_torque(other, *motion[1:]))
    with pytest.raises(IdentificationError, match='expected the prior of an arm with the joints shoulder, elbow, got'):
        identify(two, other, config=IdentificationConfig(prior=str(card / 'card.yaml')))
    with pytest.raises(IdentificationError, match='result'):
        identify(run, ARM, config=IdentificationConfig(prior=str(tmp_path / 'nowhere.yaml')))
    with pytest.raises(IdentificationError, match="estimator 'ols' takes no prior"):
        IdentificationConfig(prior='card.yaml', estimator='ols')
    assert main(['card', str(tmp_path / 'nowhere.yaml')]) == 2
    assert capsys.readouterr().err.count('\n') == 1
