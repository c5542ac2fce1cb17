# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Recordings of real arms: the defaults beside a plain fit, pair by pair.

python -m benchmark --only recordings --cases FOLDER

Each case is a folder with ``arm.urdf`` (or ``robot.yaml`` beside it, a robot configuration), recordings, and
``pairs.csv`` with the columns ``train,test``: names of recordings, several for one side joined by ``+``. The plain
fit is what an engineer writes in an afternoon: a zero-phase Butterworth at seven times the band of the motion,
central differences, base parameters by a pivoted QR of Pinocchio's regressor, Coulomb and viscous friction, an offset
and a rotor inertia for each joint, ordinary and weighted least squares on moving samples.
"""

import csv
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import scipy.linalg
import scipy.signal

from benchmark import anchor
from benchmark.row import Row
from robotid_ros.data import Dataset, ProcessingSettings, Recording, process_recording, read_recording
from robotid_ros.errors import RobotIdError
from robotid_ros.identification import identify
from robotid_ros.model import RobotConfig, RobotModel

FOLDER = 'ROBOTID_CASES'
_LOSS = 1 / 1.02  # the default is never worse than the better plain fit by more than 2 %


class PlainFit:
    """Regressor, fit and prediction of one arm, by Pinocchio and numpy alone."""

    def __init__(self, urdf: str, joints: tuple[str, ...]) -> None:
        import pinocchio

        whole = pinocchio.buildModelFromXML(urdf)
        locked = [k for k in range(1, whole.njoints) if whole.names[k] not in joints]
        self.pin = pinocchio
        self.model = pinocchio.buildReducedModel(whole, locked, pinocchio.neutral(whole)) if locked else whole
        self.data, self.n = self.model.createData(), len(joints)
        self.place = np.array([list(self.model.names).index(name) - 1 for name in joints])
        rng = np.random.default_rng(0)
        rows = self.rigid(*(scale * rng.standard_normal((200, self.n)) for scale in (2.0, 2.0, 5.0)))
        rows = rows.reshape(200 * self.n, -1)
        seen = np.flatnonzero(np.linalg.norm(rows, axis=0) > 1e-9)
        _, r, order = scipy.linalg.qr(rows[:, seen], mode='economic', pivoting=True)
        rank = int(np.sum(np.abs(np.diag(r)) > 1e-6 * abs(r[0, 0])))
        self.columns = np.sort(seen[order[:rank]])
        self.parameters = np.zeros(0)

    def rigid(self, q: np.ndarray, dq: np.ndarray, ddq: np.ndarray) -> np.ndarray:
        """Return the regressor of all standard parameters, shape (N, n, 10 n)."""
        back = np.argsort(self.place)
        rows = np.empty((len(q), self.n, 10 * self.n))
        for k in range(len(q)):
            state = q[k, back]
            if self.model.nq != self.model.nv:
                state = self.pin.integrate(self.model, self.pin.neutral(self.model), state)
            rows[k] = self.pin.computeJointTorqueRegressor(self.model, self.data, state, dq[k, back], ddq[k, back])
        return rows[:, self.place]

    def rows(self, data: Dataset) -> np.ndarray:
        """Return the rows of all parameters, shape (N, n, p)."""
        own = [np.sign(data.dq), data.dq, np.ones_like(data.dq), data.ddq]
        diagonal = [part[:, :, None] * np.eye(self.n) for part in own]
        return np.concatenate([self.rigid(data.q, data.dq, data.ddq)[:, :, self.columns], *diagonal], axis=2)

    def fit(self, datasets: list[Dataset], weighted: bool) -> None:
        """Fit by ordinary or weighted least squares."""
        every = max(1, sum(map(len, datasets)) // 6000)
        parts = [data.select(np.arange(0, len(data), every)) for data in datasets]
        rows = np.concatenate([self.rows(part) for part in parts])
        torque = np.concatenate([part.tau_filtered for part in parts])
        speed = np.abs(np.concatenate([part.dq for part in parts]))
        fastest = speed.max(axis=0)
        moving = (speed > 0.02 * fastest) | (fastest < 1e-3)
        weight = np.ones(self.n)
        for _ in range(4 if weighted else 1):
            some = (rows * (moving * weight)[:, :, None]).reshape(-1, rows.shape[2])
            length = np.maximum(np.linalg.norm(some, axis=0), 1e-300)
            found = np.linalg.lstsq(some / length, (torque * moving * weight).ravel(), rcond=1e-4)[0]
            self.parameters = found / length
            left = (rows @ self.parameters - torque) * moving
            spread = np.sqrt((left**2).sum(axis=0) / np.maximum(moving.sum(axis=0), 1))
            weight = 1.0 / np.maximum(spread, 1e-9)

    def error(self, datasets: list[Dataset]) -> float:
        """Return the total relative error against the torque as recorded [%]."""
        left, torque = [], []
        for data in datasets:
            for start in range(0, len(data), 4000):
                part = data.select(np.arange(start, min(start + 4000, len(data))))
                left.append(self.rows(part) @ self.parameters - part.tau)
            torque.append(data.tau)
        return float(100.0 * np.linalg.norm(np.concatenate(left)) / np.linalg.norm(np.concatenate(torque)))


def _filtered(data: Dataset, cutoff: float) -> Dataset:
    """Return a recording through the plain fit's low-pass [Hz]; a whole of averaged periods is as smooth as it is."""
    return data if data.unfiltered is None else data.unfiltered.filtered(cutoff)


def _plain_cutoff(data: Dataset) -> float:
    """Return seven times the band of the motion, at least 1.5 Hz and at most a fifth of the rate [Hz]."""
    if data.unfiltered is None:
        return 0.2 * data.rate
    longest = max(data.unfiltered.runs, key=len)
    rate = data.unfiltered.rate
    sections = scipy.signal.butter(4, min(10.0, 0.2 * rate), fs=rate, output='sos')
    speed = np.gradient(scipy.signal.sosfiltfilt(sections, longest.position, axis=0), 1.0 / rate, axis=0)
    band = []
    for j in np.flatnonzero(np.ptp(longest.position, axis=0) > 0.02):
        size = min(len(speed), max(256, len(speed) // 2))
        frequency, power = scipy.signal.welch(speed[:, j], rate, nperseg=size, detrend=False)
        band.append(frequency[np.searchsorted(np.cumsum(power) / power.sum(), 0.95)])
    usual = float(np.median(band)) if band else 0.0  # where hardly anything moves
    return float(min(max(7.0 * usual, 1.5), 0.2 * rate))


@dataclass(frozen=True)
class Pair:
    """Recordings to identify from and to judge by, of one arm."""

    name: str
    urdf: Path
    model: RobotModel
    training: list[Dataset]
    held_out: list[Dataset]


def pairs(folder: Path, most: int | None = None) -> Iterator[Pair]:
    """Yield the pairs of a case, or the first of them."""
    config = RobotConfig.from_yaml(folder / 'robot.yaml') if (folder / 'robot.yaml').is_file() else None
    urdf = folder / 'arm.urdf'
    with (folder / 'pairs.csv').open(encoding='utf-8') as file:
        named = [(row['train'], row['test']) for row in csv.DictReader(file)]
    for train, test in named[:most]:
        recordings = {name: _recordings(folder, name) for name in (train, test)}
        joints = recordings[train][0].joint_names if config is None else config.joints
        place: dict[str, Any] = {} if config is None else {'tip': config.tip, 'base': config.base}
        model = RobotModel.from_urdf(urdf, joints=joints, **place)
        model = model if config is None else config.applied(model)
        settings = ProcessingSettings.for_robot(config, joints=joints)
        training, held_out = (
            [process_recording(each, settings) for each in recordings[name]] for name in (train, test)
        )
        name = f'{folder.name}, {train} to {test}'
        yield Pair(name=name, urdf=urdf, model=model, training=training, held_out=held_out)


def _case(folder: Path) -> Iterator[Row]:
    for pair in pairs(folder):
        name, urdf, training, held_out = pair.name, pair.urdf, pair.training, pair.held_out
        result = identify(training, pair.model, validation=held_out)
        metrics = result.metrics['validation']
        cutoff = _plain_cutoff(training[0])
        plain = PlainFit(urdf.read_text(encoding='utf-8'), pair.model.joint_names)
        old, new = ([_filtered(each, cutoff) for each in part] for part in (training, held_out))
        errors = {}
        for kind in ('ordinary', 'weighted'):
            plain.fit(old, kind == 'weighted')
            errors[kind] = plain.error(new)
        totals = ', '.join(f'{kind} {error:.2f} %' for kind, error in errors.items())
        yield Row(
            what=f'{name}, total error',
            unit='%',
            values=metrics.relative_error_total,
            anchor=f'plain least squares: {totals}',
            theirs=min(errors.values()),
            times=_LOSS,
            runs='one run',
            note='usable' if result.usable else f'not usable: {result.reason}',
        )
        try:
            other, theirs, note = *figaroh_rmse(urdf, old[0], new[0]), ''
        except anchor.AnchorError as cause:
            other, theirs, note = '', np.zeros(0), f'FIGAROH gave no figure: {cause}'
        yield Row(
            what=f'{name}, RMSE per joint against FIGAROH',
            unit='N m',
            values=() if note else metrics.rmse,
            anchor=other,
            theirs=theirs,
            runs='one run',
            note=note,
        )


def figaroh_rmse(urdf: Path, training: Dataset, held_out: Dataset) -> tuple[str, np.ndarray]:
    """Return FIGAROH's name and the RMSE of each joint that its weighted least squares reach on the same signals."""
    given = {name: getattr(training, name) for name in ('time', 'q', 'dq', 'ddq')}
    given |= {f'validation_{name}': getattr(held_out, name) for name in ('q', 'dq', 'ddq')}
    given['tau'] = training.tau_filtered if training.tau_filtered.size else training.tau
    text = bare(urdf, training.joint_names)
    found = anchor.run('figaroh_identification.identify', **given, urdf=text, rate=float(training.rate))
    return found['name'], np.sqrt(np.mean((found['torque'] - held_out.tau) ** 2, axis=0))


def bare(urdf: Path, joints: tuple[str, ...]) -> str:
    """Return a description without shapes, whose meshes nobody has, one angle a joint, all other joints held."""
    root = ElementTree.parse(urdf).getroot()
    for link in root.iter('link'):
        for shape in [part for part in link if part.tag in ('visual', 'collision')]:
            link.remove(shape)
    for joint in root.iter('joint'):
        if 'type' in joint.attrib and joint.get('name') not in joints:
            joint.set('type', 'fixed')
        if joint.get('type') == 'continuous':  # two coordinates there, sine and cosine
            joint.set('type', 'revolute')
            for limit in joint.findall('limit'):
                joint.remove(limit)
            ElementTree.SubElement(joint, 'limit', lower='-1000', upper='1000', velocity='100', effort='10000')
    return ElementTree.tostring(root, encoding='unicode')


def _recordings(folder: Path, names: str) -> list[Recording]:
    paths = [folder / name for name in names.split('+')]
    return [read_recording(path if path.exists() else path.with_name(f'{path.name}.csv')) for path in paths]


def recordings(quick: bool) -> Iterator[Row]:
    """Identify from one recording of each pair, judge by the other."""
    place = os.environ.get(FOLDER, '')
    folders = sorted(path.parent for path in Path(place).glob('*/pairs.csv')) if place else []
    if not folders:
        yield Row(
            what='recordings of real arms, total error of the defaults',
            unit='%',
            anchor='the better of plain ordinary and weighted least squares',
            times=_LOSS,
            note='no recordings: give --cases FOLDER, one folder for each arm with arm.urdf, recordings and pairs.csv',
        )
        return
    for folder in folders:
        try:
            for row in _case(folder):
                yield replace(row, case=folder.name)
        except (RobotIdError, OSError, KeyError) as cause:  # the other arms go on
            yield Row(
                what=f'{folder.name}, all that follows', case=folder.name, failure=f'{type(cause).__name__}: {cause}'
            )


CASES = (recordings,)
