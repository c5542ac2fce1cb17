# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Wrong set-ups of real recordings, drawn at random: which are named, and what do the others cost?

python -m benchmark.wrong_setups --cases FOLDER [--each 4] [--seed 1] [--only KIND] [--search]

Of each case of ``python -m benchmark.cases`` the first pair is taken: as it is, and with wrong set-ups, ``--each`` of
them, of kinds that take turns. Where the set-up is not named, the pair is identified as it is recorded and as it was,
and the errors on the second recording are compared; ``--search`` leaves that out. One line a wrong set-up, then how
many of each kind are named.
"""

import argparse
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from benchmark.recordings import Pair, pairs
from robotid_ros.arrays import Array
from robotid_ros.data import Dataset
from robotid_ros.dynamics import inverse_dynamics
from robotid_ros.identification import identify
from robotid_ros.identification.setup import POSITION_UNITS, Finding, SetUp
from robotid_ros.identification.setup_search import find_setup
from robotid_ros.identification.verdict import moved
from robotid_ros.model import RobotModel

Change = Callable[[Dataset], Dataset]
_TILTS = (25.0, 45.0, 90.0, 180.0)  # degrees
_PAYLOAD = (0.15, 0.3)  # of the torque


@dataclass(frozen=True)
class Wrong:
    """What is wrong with a pair of recordings, as the search has to name it."""

    kind: str
    joints: tuple[str, ...]
    pair: Pair

    def named(self, setup: SetUp, own: Sequence[Finding] = ()) -> bool:
        """Return whether a set-up names this, and nothing else but what the recording has of its own."""
        known = {(each.kind, each.joints) for each in own}
        found = [each for each in ((one.kind, one.joints) for one in setup.findings) if each not in known]
        if self.kind == 'as recorded':
            return not found
        if not self.joints:
            return self.kind in [kind for kind, _ in found]
        return found == [(self.kind, self.joints)]


class Maker:
    """Makes wrong set-ups of one pair; each maker returns nothing where the arm has no joints for it."""

    def __init__(self, pair: Pair, rng: np.random.Generator) -> None:
        self.pair, self.rng, self.model = pair, rng, pair.model
        self.names, self.n = pair.model.joint_names, pair.model.n
        position = np.concatenate([each.q[:, self._columns(each)] for each in pair.training])
        self.moving = np.flatnonzero(moved(position)).tolist()
        self.turning = [j for j in self.moving if self.model.joint_types[j] == 'revolute']

    def make(self, kind: str) -> Wrong | None:
        made: Wrong | None = getattr(self, kind.replace(' ', '_'))()
        return made

    def _columns(self, dataset: Dataset) -> list[int]:
        return [dataset.joint_names.index(name) for name in self.names]

    def _wrong(self, kind: str, joints: tuple[str, ...], both: Change, training: Change | None = None) -> Wrong:
        known, unseen = self.pair.training, self.pair.held_out
        known = [(training or both)(each) for each in known]
        return Wrong(kind, joints, replace(self.pair, training=known, held_out=[both(each) for each in unseen]))

    def _mapped(
        self,
        kind: str,
        joints: tuple[str, ...],
        position: Array | None = None,
        torque: Array | None = None,
        zero: Array | None = None,
    ) -> Wrong:
        """Return the pair in other coordinates."""
        eye = np.eye(self.n)
        change = SetUp(
            gravity=self.model.gravity,
            position=eye if position is None else position,
            zero=np.zeros(self.n) if zero is None else zero,
            torque=eye if torque is None else torque,
            drives=self.model.drives,
        )
        return self._wrong(kind, joints, lambda dataset: change.dataset(dataset, self.names))

    def _reversed(self, kind: str) -> Wrong | None:
        if not self.moving:
            return None
        j, turn = int(self.rng.choice(self.moving)), np.eye(self.n)
        turn[j, j] = -1.0
        position, torque = (None if kind == other else turn for other in ('torque', 'position'))
        return self._mapped(kind, (self.names[j],), position, torque)

    def as_recorded(self) -> Wrong:
        return Wrong('as recorded', (), self.pair)

    def axis(self) -> Wrong | None:
        return self._reversed('axis')

    def position(self) -> Wrong | None:
        return self._reversed('position')

    def torque(self) -> Wrong | None:
        return self._reversed('torque')

    def zero(self) -> Wrong | None:
        # That of a first joint about the vertical changes nothing, and that of the last one is another body.
        inner = [j for j in self.turning if 0 < j < self.n - 1]
        if not inner:
            return None
        j, zero = int(self.rng.choice(inner)), np.zeros(self.n)
        zero[j] = np.radians(self.rng.choice([90.0, -90.0, 180.0]))
        return self._mapped('zero', (self.names[j],), zero=zero)

    def order(self) -> Wrong | None:
        kinds = self.model.joint_types
        alike = [(a, b) for a in self.moving for b in self.moving if a < b and kinds[a] == kinds[b]]
        if not alike:
            return None
        a, b = alike[self.rng.integers(len(alike))]
        order = np.eye(self.n)
        order[[a, b]] = order[[b, a]]
        position = order if self.rng.random() < 0.5 else None
        return self._mapped('order', (self.names[a], self.names[b]), position, order)

    def coordinates(self) -> Wrong | None:
        """Positions and torques of coupled motors."""
        free = [k for k in self.turning if k - 1 in self.turning]
        if not free:
            return None
        k, turn, force = int(self.rng.choice(free)), np.eye(self.n), np.eye(self.n)
        turn[k, k - 1] = self.rng.choice([1.0, -1.0])
        force[k - 1, k] = -turn[k, k - 1]
        return self._mapped('coordinates', (self.names[k], self.names[k - 1]), turn, force)

    def position_units(self) -> Wrong:
        """Positions in degrees, turns or mm."""
        kinds = np.array(self.model.joint_types)
        units = [(joint_type, factor) for _, joint_type, factor in POSITION_UNITS if joint_type in kinds]
        joint_type, factor = units[self.rng.integers(len(units))]
        return self._mapped('position units', (), np.eye(self.n) / np.where(kinds == joint_type, factor, 1.0))

    def gravity(self) -> Wrong | None:
        """Another mount than the description's."""
        described = np.array(self.model.gravity)
        if not described.any():
            return None
        about = np.cross(described, self.rng.standard_normal(3))
        tilt = np.radians(self.rng.choice(_TILTS))
        turned = Rotation.from_rotvec(tilt * about / np.linalg.norm(about)).apply(described)
        return Wrong('gravity', (), replace(self.pair, model=replace(self.model, gravity=turned)))

    def units(self) -> Wrong | None:
        """Currents of two kinds of motors."""
        if self.n < 2:
            return None
        factors = np.where(np.arange(self.n) < self.rng.integers(1, self.n), 1.0, np.exp(self.rng.uniform(1.0, 3.0)))
        return self._mapped('units', (), torque=np.diag(factors * np.exp(self.rng.uniform(-3.0, 3.0))))

    def magnitude(self) -> Wrong:
        """Efforts without sign."""

        def unsigned(dataset: Dataset) -> Dataset:
            return _with_torques(dataset, np.abs)

        return self._wrong('magnitude', (), unsigned)

    def change(self) -> Wrong:
        """A payload from some moment of the last recording on."""
        share, moment = self.rng.uniform(*_PAYLOAD), self.rng.uniform(0.35, 0.65)
        last, arm = self.pair.training[-1], _point_at_tip(self.model)
        where = self._columns(last)
        weight = inverse_dynamics(arm, *(getattr(last, name)[:, where] for name in ('q', 'dq', 'ddq')))
        added = np.zeros_like(last.tau)
        added[:, where] = weight * (np.linalg.norm(last.tau_filtered) / max(float(np.linalg.norm(weight)), 1e-9))
        added *= share * (np.arange(len(last)) >= moment * len(last))[:, None]

        def loaded(dataset: Dataset) -> Dataset:
            return _with_torques(dataset, lambda torque: torque + added) if dataset is last else dataset

        return self._wrong('change', (), lambda dataset: dataset, loaded)


def _with_torques(dataset: Dataset, change: Callable[[Array], Array]) -> Dataset:
    """Return a recording with other torques, of which only the filtered ones of the whole motion are known."""
    return replace(dataset, tau=change(dataset.tau), tau_filtered=change(dataset.tau_filtered), unfiltered=None)


def _point_at_tip(model: RobotModel) -> RobotModel:
    """Return an arm that carries 1 kg beyond its tip and has no mass itself."""
    inertial, place = np.zeros((model.n, 10)), 1.2 * np.array(model.tip[:3, 3])
    inertia = place @ place * np.eye(3) - np.outer(place, place) + 0.01 * np.eye(3)
    inertial[-1] = [*inertia[np.triu_indices(3)], *place, 1.0]
    return model.with_inertial(inertial, rotor_inertia=np.zeros(model.n))


KINDS = (
    *('axis', 'torque', 'position', 'zero', 'gravity', 'coordinates'),
    *('change', 'order', 'magnitude', 'position units', 'units'),
)


def drawn(folders: list[Path], each: int, seed: int, only: str = '') -> Iterator[tuple[str, Wrong]]:
    """Yield the first pair of each case as it is recorded, and then with so many wrong set-ups."""
    for number, folder in enumerate(folders):
        pair = next(pairs(folder, 1))
        rng = np.random.default_rng([seed, number])
        kinds = (KINDS[(number * each + k + seed) % len(KINDS)] for k in range(each))
        for kind in ('as recorded', *([only] * each if only else kinds)):
            wrong = Maker(pair, rng).make(kind)
            if wrong is not None:
                yield folder.name, wrong


def main() -> None:
    """Print a line for each wrong set-up, and how many of each kind are named."""
    parser = argparse.ArgumentParser(prog='python -m benchmark.wrong_setups', description=__doc__)
    parser.add_argument('--cases', type=Path, required=True, help='folder of python -m benchmark.cases')
    parser.add_argument('--each', type=int, default=4, help='wrong set-ups of each arm')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--only', default='', choices=('', *KINDS), help='only this kind')
    parser.add_argument('--search', action='store_true', help='do not identify where it is not named')
    options = parser.parse_args()
    folders = sorted(path.parent for path in options.cases.glob('*/pairs.csv'))
    if min(options.each, options.seed) < 0:
        parser.error(f'expected numbers from 0, got --each {options.each} --seed {options.seed}')
    if not folders:
        parser.error(f'{options.cases}: no case with a pairs.csv')
    counted, named = Counter[str](), Counter[str]()
    clean: dict[str, float] = {}
    own: Sequence[Finding] = ()
    for case, wrong in drawn(folders, options.each, options.seed, options.only):
        setup, _ = find_setup(wrong.pair.training, wrong.pair.model)
        told = wrong.named(setup, own)
        if wrong.kind == 'as recorded':
            own = setup.findings
        counted[wrong.kind] += 1
        named[wrong.kind] += told
        found = '; '.join(f'{each.kind} {", ".join(each.joints)}' for each in setup.findings) or 'nothing'
        line = f'{case}: {" of ".join(filter(None, (wrong.kind, ", ".join(wrong.joints))))}: '
        line += 'named' if told else f'found {found}' + (f', a doubt: {setup.doubt.kind}' if setup.doubt else '')
        if not (told or options.search or wrong.kind == 'as recorded'):
            result = identify(wrong.pair.training, wrong.pair.model, test=wrong.pair.held_out)
            if case not in clean:
                pair = next(pairs(options.cases / case, 1))
                as_it_was = identify(pair.training, pair.model, test=pair.held_out)
                clean[case] = as_it_was.metrics['test'].relative_error_total
            error = result.metrics['test'].relative_error_total
            line += f'; {"usable" if result.usable else "not usable"}, {error:.3g} % for {clean[case]:.3g} %'
        print(line, flush=True)
    for kind in sorted(counted):
        print(f'{kind}: {named[kind]} of {counted[kind]}')
    wrong_ones = [kind for kind in counted if kind != 'as recorded']
    print(f'all: {sum(named[kind] for kind in wrong_ones)} of {sum(counted[kind] for kind in wrong_ones)}')


if __name__ == '__main__':
    main()
