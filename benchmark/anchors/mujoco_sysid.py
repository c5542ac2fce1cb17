# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""MuJoCo's own system identification: simulates the arm again and again and fits what its sensors would have shown."""

import time
from typing import Any

import mujoco
import numpy as np
from mujoco import rollout, sysid

DRIVES = ('armature', 'damping', 'frictionloss')


def _arm(text: str, stiffness: list[float]) -> mujoco.MjSpec:
    """Return the arm with position servos and the sensors that a real one has."""
    spec = mujoco.MjSpec.from_string(text)
    compiled = spec.compile()
    for k, body in enumerate(spec.bodies):  # the identification starts from principal inertias
        if k:
            body.inertia, body.iquat = compiled.body_inertia[k], compiled.body_iquat[k]
            body.fullinertia = np.full(6, np.nan)
    # Explicit in all forces: an implicit step applies less of a servo's damping than its sensor says, which looks like
    # half a rotor's inertia in the torque.
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_EULER
    spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_EULERDAMP
    for joint, gain in zip(spec.joints, stiffness, strict=True):
        servo = spec.add_actuator(name=joint.name, target=joint.name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
        servo.set_to_position(kp=gain, kv=0.02 * gain)
    for kind in ('JOINTPOS', 'JOINTVEL', 'JOINTACTFRC'):
        for joint in spec.joints:
            spec.add_sensor(
                name=f'{kind} {joint.name}',
                type=getattr(mujoco.mjtSensor, f'mjSENS_{kind}'),
                objtype=mujoco.mjtObj.mjOBJ_JOINT,
                objname=joint.name,
            )
    return spec


def _set(joint: Any, name: str, value: float) -> None:
    if np.ndim(getattr(joint, name)):  # damping is a polynomial in newer versions
        setattr(joint, name, np.array([value, 0.0, 0.0]))
    else:
        setattr(joint, name, float(value))


def _start(model: mujoco.MjModel, q: np.ndarray) -> np.ndarray:
    return sysid.create_initial_state(model, q, np.zeros(model.nv), np.zeros(0))


def simulate(given: dict[str, Any]) -> dict[str, Any]:
    """Return what the sensors of an arm show while its servos follow ``command`` (N, n), from rest."""
    spec = _arm(given['mjcf'], given['stiffness'])
    for k, joint in enumerate(spec.joints):
        for name in DRIVES[1:]:
            _set(joint, name, given[name][k])
    model = spec.compile()
    data = mujoco.MjData(model)
    command = given['command']
    state, sensor = rollout.rollout(model, data, _start(model, command[0]), command[:-1])
    state, sensor = state[0], sensor[0]
    return dict(zip(('time', 'q', 'dq', 'torque'), (state[:, 0], *np.split(sensor, 3, axis=1)), strict=True))


def identify(given: dict[str, Any]) -> dict[str, Any]:
    """Return the bodies and drives that explain ``q``, ``dq``, ``torque`` (N, n) under ``command``, from the prior."""
    spec = _arm(given['mjcf'], given['stiffness'])
    model = spec.compile()
    parameters = sysid.ParameterDict()
    bodies = [model.body(k).name for k in range(1, model.nbody)]
    for name in bodies:

        def shape(target: mujoco.MjSpec, given: Any, name: str = name) -> None:
            sysid.apply_body_inertia(target, name, given)
            target.body(name).iquat = [1.0, 0.0, 0.0, 0.0]  # MuJoCo 4.0 does not compile the NaN that is left there

        parameters.add(sysid.body_inertia_param(spec, model, name, sysid.InertiaType.Pseudo, modifier=shape))
    joints = [joint.name for joint in spec.joints]
    for k, joint in enumerate(joints):
        for kind in DRIVES:
            value = given[kind][k]

            def apply(target: mujoco.MjSpec, given: Any, joint: str = joint, kind: str = kind) -> None:
                _set(target.joint(joint), kind, given.value[0])

            parameters.add(sysid.Parameter(f'{joint} {kind}', value, 0.0, 5.0 * value + 1.0, modifier=apply))
    measured = np.column_stack([given['q'], given['dq'], given['torque']])
    sequence = sysid.ModelSequences(
        'arm',
        spec,
        'run',
        _start(model, given['command'][0]),
        sysid.TimeSeries(given['command_time'], given['command']),
        sysid.TimeSeries.from_names(given['time'], measured, model),
    )
    processor = time.process_time()
    found, result = sysid.optimize(
        initial_params=parameters,
        residual_fn=sysid.build_residual_fn(models_sequences=[sequence], n_threads=1),
        optimizer='mujoco',
        max_iters=given['iterations'],
        verbose=False,
    )
    processor = time.process_time() - processor
    fitted = sysid.apply_param_modifiers_spec(found, spec.copy()).compile()
    rotation = np.empty((model.nbody - 1, 9))
    for k in range(1, model.nbody):
        mujoco.mju_quat2Mat(rotation[k - 1], fitted.body_iquat[k])
    rotation = rotation.reshape(-1, 3, 3)
    inertia = np.einsum('kij,kj,klj->kil', rotation, fitted.body_inertia[1:], rotation)
    iterations = len(getattr(result, 'extras', {}).get('objective', []))
    return {
        'name': f'MuJoCo {mujoco.__version__} sysid, {found.size} parameters, {iterations} iterations',
        'processor': processor,
        'mass': fitted.body_mass[1:],
        'centre': fitted.body_ipos[1:],
        'inertia': inertia,
        'armature': fitted.dof_armature,
        'damping': fitted.dof_damping,
        'frictionloss': fitted.dof_frictionloss,
    }
