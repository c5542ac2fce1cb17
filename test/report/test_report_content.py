# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""What reports say: decimation, numbers, verdicts, figures."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from identification_helpers import as_described
from report_helpers import moving_arm

from robotid_ros.arrays import Array
from robotid_ros.data import Dataset
from robotid_ros.dynamics import inverse_dynamics
from robotid_ros.identification import IdentificationResult, TorquePredictor, identify
from robotid_ros.identification.judge import Alternative, Decision
from robotid_ros.identification.verdict import JointVerdict
from robotid_ros.model import RobotModel
from robotid_ros.report import Report, Table
from robotid_ros.report.content import Chart, Item, Trace, envelope, spread
from robotid_ros.report.identification import identification_report, ripple_figure
from robotid_ros.report.subject import predicted_run
from robotid_ros.report.verdict import velocity_share
from robotid_ros.report.wording import integer, number, percent, unit

Identified = tuple[RobotModel, Dataset, Dataset, IdentificationResult]


@pytest.fixture(scope='module')
def identified() -> Identified:
    model, training = moving_arm(0)
    _, validation = moving_arm(1, samples=800)
    with as_described():
        result = identify(training, model, friction='coulomb_viscous', validation=validation)
    return model, training, validation, result


@given(
    y=arrays.arrays(np.float64, st.integers(1, 3000), elements=st.floats(-1e6, 1e6)),
    points=st.integers(2, 600),
)
def test_decimation_keeps_every_extreme(y: Array, points: int) -> None:
    x = np.arange(len(y), dtype=float)
    kept_x, kept_y = envelope(x, y, points)
    kept = kept_x.astype(int)
    assert len(kept_x) <= points + 4
    assert (np.diff(kept_x) > 0).all()
    np.testing.assert_array_equal(y[kept], kept_y)
    assert kept_x[0] == 0
    assert kept_x[-1] == len(y) - 1
    if len(y) > points + 2:  # the highest point of any stretch is within two of the kept ones of it
        longest = 2 * -(-len(y) // (points // 2))
        for start in range(0, len(y) - longest, longest):
            inside = (kept >= start) & (kept < start + longest)
            assert kept_y[inside].max() >= y[start : start + longest // 2].max() or kept_y[inside].size == 0


def test_a_single_peak_among_a_million_samples_survives() -> None:
    y = np.zeros(1_000_000)
    y[123_456] = 1.0
    x, kept = envelope(np.arange(len(y), dtype=float), y)
    assert kept.max() == 1.0
    assert x[kept.argmax()] == 123_456


def test_spread_is_even_and_complete() -> None:
    assert spread(5, 10).tolist() == [0, 1, 2, 3, 4]
    kept = spread(1000, 11)
    assert kept[0] == 0
    assert kept[-1] == 999
    assert np.ptp(np.diff(kept)) <= 1


@pytest.mark.parametrize(
    ('value', 'text'),
    [
        (4.0625, '4.06'),
        (-0.03125, '−0.0312'),
        (12345.0, '12300'),
        (1.2e-7, '1.20·10⁻⁷'),
        (-3e9, '−3.00·10⁹'),
        (0.0, '0'),
        (float('inf'), '∞'),
        (float('nan'), '–'),
        (9.999, '10.0'),
    ],
)
def test_numbers_are_written_as_people_write_them(value: float, text: str) -> None:
    assert number(value) == text


def test_other_notations() -> None:
    assert percent(97.34) == '97.3 %'
    assert percent(float('inf')) == '∞'
    assert integer(1250000).replace('\u202f', ' ') == '1 250 000'
    assert unit('kg*m^2') == 'kg·m²'
    assert unit('N*m*s/rad') == 'N·m·s/rad'


def _report(identified: Identified, **changes: object) -> Report:
    model, training, validation, result = identified
    changed = replace(result, **changes)  # type: ignore[arg-type]
    return identification_report(model, changed, training, validation=validation)


def _words(report: Report) -> str:
    """Return all paragraphs and tables."""
    found = []
    for _, items in report.sections:
        for item in items:
            if isinstance(item, Table):
                found += [item.caption, item.reading, *(cell for row in item.rows for cell in row)]
            elif isinstance(item, str):
                found.append(item)
    return '\n'.join(found)


@pytest.mark.slow
def test_a_good_run_gets_green(identified: Identified) -> None:
    report = _report(identified)
    assert report.verdict.level == 'good'
    assert 'had not seen' in report.verdict.reasons[0]


def test_what_is_not_usable_gets_red_with_the_reason(identified: Identified) -> None:
    verdict = _report(identified, usable=False, reason='joint elbow hardly moves').verdict
    assert verdict.level == 'bad'
    assert verdict.reasons == ('Joint elbow hardly moves.',)


def test_unvalidated_runs_get_amber(identified: Identified) -> None:
    model, training, _, result = identified
    metrics = {'training': result.metrics['training']}
    report = identification_report(model, replace(result, metrics=metrics), training)
    assert report.verdict.level == 'caution'
    assert any('not checked' in reason for reason in report.verdict.reasons)


def test_much_worse_validation_and_bad_excitation_get_amber(identified: Identified) -> None:
    result = identified[3]
    worse = replace(result.metrics['validation'], relative_error_total=40.0)
    metrics = {**result.metrics, 'validation': worse}
    reasons = _report(identified, metrics=metrics, condition_scaled=5000.0).verdict.reasons
    assert any('times that of the training' in reason for reason in reasons)
    assert any('undetermined' in reason for reason in reasons)


def _items(report: Report, title: str) -> tuple[Item, ...]:
    (found,) = (items for name, items in report.sections if name == title)
    return found


def test_the_first_table_says_what_the_model_is_good_for(identified: Identified) -> None:
    *_, result = identified
    (table,) = _report(identified).sections[0][1]
    assert isinstance(table, Table)
    assert [row[0] for row in table.rows] == [use.name for use in result.good_for]
    assert all(
        row[1].startswith('Yes: ' if use.good else 'No: ') for row, use in zip(table.rows, result.good_for, strict=True)
    )
    assert [level == 'good' for level in table.levels] == [use.good for use in result.good_for]


def test_an_error_that_is_all_noise_is_green(identified: Identified) -> None:
    model, training, validation, result = identified
    metrics = result.metrics['validation']
    weak = replace(metrics, relative_error=np.full(6, 80.0))
    report = identification_report(
        model,
        replace(result, metrics={**result.metrics, 'validation': weak}),
        training,
        validation=replace(validation, noise_std=metrics.rmse * [1.0, 1.0, 1.0, 1.0, 1.0, 0.1]),
    )
    table = next(item for item in _items(report, 'Torque') if isinstance(item, Table))
    assert table.levels == ('good', 'good', 'good', 'good', 'good', 'bad', None)
    assert [name for name, _, _ in table.columns][-2:] == ['Noise', 'Unit']
    assert {len(row) for row in table.rows} == {len(table.columns)}
    assert any(
        model.joint_names[5] in reason and model.joint_names[4] not in reason for reason in report.verdict.reasons[1:]
    )


def nearer_description(model: RobotModel, data: Dataset) -> np.ndarray:
    """Return the torque of the description without its friction, or with it where that is nearer in all."""
    rigid = inverse_dynamics(model, data.q, data.dq, data.ddq)
    whole = rigid + model.damping * data.dq + model.friction * np.sign(data.dq)
    return whole if np.linalg.norm(data.tau - whole) <= np.linalg.norm(data.tau - rigid) else rigid


def test_a_description_whose_friction_the_efforts_do_not_hold_is_not_blamed_for_it(identified: Identified) -> None:
    model, _, validation, result = identified
    stiff = replace(model, damping=np.full(model.n, 14.0), friction=np.full(model.n, 12.0))
    rigid = inverse_dynamics(model, validation.q, validation.dq, validation.ddq)
    whole = rigid + 14.0 * validation.dq + 12.0 * np.sign(validation.dq)
    for described, torque in ((model, rigid), (stiff, rigid), (stiff, whole)):
        seen = predicted_run('Validation', replace(validation, tau=torque), TorquePredictor(described, result))
        np.testing.assert_allclose(seen.described, torque, atol=1e-9)


def test_figures_show_the_data(identified: Identified) -> None:
    model, _, validation, result = identified
    report = _report(identified)
    figures = {figure.name: figure for figure in report.figures}
    predicted = TorquePredictor(model, result).measured_torque(validation)
    described = nearer_description(model, validation)
    for j, chart in enumerate(figures['torque_validation'].charts):
        lines = _named(chart)
        assert lines['measured']['y'].max() == validation.tau[:, j].max()
        np.testing.assert_array_equal(lines['robot description']['y'], described[:, j])
        np.testing.assert_array_equal(lines['identified']['y'], predicted[:, j])
        np.testing.assert_array_equal(lines['difference']['y'], (validation.tau - predicted)[:, j])
        assert lines['difference']['yaxis'] == 'y2'
    for j, chart in enumerate(figures['friction'].charts):
        cloud = _named(chart)['measured, rigid body subtracted']
        strength = 5.0 / (1.0 + j)
        fast = np.abs(cloud['x']) > 0.1
        truth = strength * (np.sign(cloud['x']) + cloud['x'])
        assert np.abs(cloud['y'] - truth)[fast].mean() < 0.4  # noise of 0.2 N m and what the fit misses
    for chart in figures['friction_parameters'].charts:
        assert tuple(chart.layout['yaxis']['ticktext']) == model.joint_names


def _named(chart: Chart) -> dict[str, Trace]:
    return {trace['name']: trace for trace in chart.traces}


def test_non_linear_friction_is_shown_beside_linear_friction() -> None:
    """Friction that rises with the arctangent leaves a share of itself to the best straight lines."""
    (model, training), (_, validation) = moving_arm(0), moving_arm(1, samples=800)

    def bent(data: Dataset) -> Dataset:
        rigid = inverse_dynamics(model, data.q, data.dq, data.ddq)
        torque = rigid + 20.0 * np.arctan(3.0 * data.dq) + 0.01 * np.sin(50.0 * data.time)[:, None]
        return replace(data, tau=torque, tau_filtered=torque)

    result = identify(bent(training), model, friction='daemi_heimann', estimator='wls', validation=bent(validation))
    report = identification_report(model, result, bent(training), validation=bent(validation))
    (figure,) = (each for each in report.figures if each.name == 'friction_gain')
    assert [chart.title for chart in figure.charts] == list(model.joint_names)
    for chart in figure.charts:
        linear, bent_error = (np.sqrt(np.mean(trace['y'] ** 2)) for trace in chart.traces)
        assert bent_error < 0.5 * linear


def test_linear_friction_has_no_such_figure(identified: Identified) -> None:
    assert 'friction_gain' not in {figure.name for figure in _report(identified).figures}


def test_before_and_after_stand_in_the_table(identified: Identified) -> None:
    model, _, validation, result = identified
    described = nearer_description(model, validation)
    table = next(item for item in _items(_report(identified), 'Torque') if isinstance(item, Table))
    assert [(name, below) for name, below, _ in table.columns[1:5]] == [
        ('Match', 'before'),
        ('Match', 'after'),
        ('RMSE', 'before'),
        ('RMSE', 'after'),
    ]
    for j, row in enumerate(table.rows[:-1]):
        left = validation.tau[:, j] - described[:, j]
        share = 100.0 * (1.0 - np.linalg.norm(left) / np.linalg.norm(validation.tau[:, j]))
        assert row[1] == ('none' if share < 0.0 else percent(float(share)))
        assert row[2] == percent(float(result.metrics['validation'].match[j]))
        assert row[3] == number(float(np.sqrt(np.mean(left**2))))


def test_parameters_stand_with_their_link(identified: Identified) -> None:
    model, _, _, result = identified
    figure = next(figure for figure in _report(identified).figures if figure.name == 'parameters')
    assert {chart.title for chart in figure.charts} <= set(model.link_names)
    shown = [text for chart in figure.charts for text in chart.traces[0]['customdata']]
    assert sorted(text.partition('<br>')[0] for text in shown) == sorted(result.base_names)
    share = np.concatenate([chart.traces[1]['x'] for chart in figure.charts])
    order = [text.partition('<br>')[0] for text in shown]
    expected = {
        name: 100.0 * std / abs(value)
        for name, value, std in zip(result.base_names, result.base_values, result.base_std, strict=True)
    }
    np.testing.assert_allclose(share, np.clip([expected[name] for name in order], 1e-2, 1e4))


def test_the_correlation_is_that_of_many_fits(identified: Identified) -> None:
    """Noise is drawn anew 300 times; the correlation of the linear fits to it is the one shown."""
    model, training, _, result = identified
    figure = next(figure for figure in _report(identified).figures if figure.name == 'correlation')
    shown = figure.charts[0].traces[0]['z']
    predictor = TorquePredictor(model, result)
    rows = np.linspace(0, len(training) - 1, len(training)).astype(int)
    rigid = predictor.base.regressor(training.q[rows], training.dq[rows], training.ddq[rows])
    n, b = 6, rigid.shape[2]
    blocks = np.zeros((len(rows), n, 2 * n))
    scale = 1.0 if result.friction.velocity_scale is None else result.friction.velocity_scale
    sign = np.sign(training.dq) if result.friction.velocity_scale is None else np.tanh(training.dq / scale)
    for j in range(n):
        blocks[:, j, 2 * j], blocks[:, j, 2 * j + 1] = sign[:, j], training.dq[:, j]
    columns = np.concatenate([rigid, blocks], axis=2).reshape(-1, b + 2 * n)
    noise = np.random.default_rng(0).normal(0.0, 0.2, (len(columns), 300))
    found = np.corrcoef(np.linalg.lstsq(columns, noise, rcond=None)[0])
    assert shown.shape == found.shape
    assert np.abs(shown - found).max() < 0.3  # four deviations of a correlation of 300 draws
    assert np.abs(shown - found).mean() < 0.06


def test_what_the_data_do_not_determine_is_said(identified: Identified) -> None:
    result = identified[3]
    std = np.abs(result.base_values) * 0.01
    (words,) = (
        item for item in _items(_report(identified, base_std=std), 'Parameters') if 'determine' in str(item)[:40]
    )
    assert 'all 40' in words
    std[2] = np.inf
    (words,) = (
        item for item in _items(_report(identified, base_std=std), 'Parameters') if 'determine' in str(item)[:40]
    )
    assert 'not determine 1 of the 40' in words
    assert f'{result.link_names[1]}: {result.base_names[2]}' in words


def test_the_error_of_what_the_urdf_holds_is_told(identified: Identified) -> None:
    model, _, validation, result = identified
    body = model.with_inertial(result.inertial, rotor_inertia=result.rotor_inertia)
    rigid = inverse_dynamics(body, validation.q, validation.dq, validation.ddq)
    rigid = rigid if result.has_rotor_inertia else rigid - body.rotor_inertia * validation.ddq
    torque = rigid + result.friction.torque(validation.dq, result.friction_values, rigid, validation.q)
    error = 100.0 * np.linalg.norm(validation.tau - torque) / np.linalg.norm(validation.tau)
    assert f'leave {error:.2f} % of the torque unexplained' in _words(_report(identified))


def test_a_urdf_that_is_much_worse_than_the_base_parameters_gets_amber(identified: Identified) -> None:
    report = _report(identified, inertial=1.3 * identified[3].inertial)
    assert report.verdict.level == 'caution'
    assert any('calibrated.urdf' in reason for reason in report.verdict.reasons)
    assert 'calibrated.urdf' not in ' '.join(_report(identified).verdict.reasons)


def test_a_negative_rotor_inertia_is_pointed_out(identified: Identified) -> None:
    result = identified[3]
    rotors = [k for k, name in enumerate(result.base_names) if name.startswith('Ia')]
    values, std = np.array(result.base_values), np.array(result.base_std)
    values[rotors], std[rotors] = 0.5, 0.1
    assert 'No rotor can have' not in _words(_report(identified, base_values=values, base_std=std))
    values[rotors[-1]] = -0.5
    sentence = f'No rotor can have a negative inertia, as {result.base_names[rotors[-1]]} here'
    assert sentence in _words(_report(identified, base_values=values, base_std=std))


def test_ripple_is_shown_where_there_is_some(identified: Identified) -> None:
    _, training, _, _ = identified
    frequency = np.array([0.0, 100.0, 0.0, 0.0, 0.0, 200.0])

    def ripple(dq: np.ndarray, q: np.ndarray) -> np.ndarray:
        return np.sin(frequency * q) * (frequency > 0.0)

    figure = ripple_figure(training, training.tau + 0.25, ripple, frequency, ('revolute',) * 6)
    assert [chart.title for chart in figure.charts] == [training.joint_names[1], training.joint_names[5]]
    measured, curve, fitted = figure.charts[1].traces
    np.testing.assert_allclose(measured['y'] - fitted['y'], -0.25)
    np.testing.assert_allclose(curve['y'], np.sin(200.0 * curve['x']))
    assert 0.0 < np.ptp(curve['x']) < 10.5 * 2.0 * np.pi / 200.0


def test_the_worst_of_several_runs_is_shown(identified: Identified) -> None:
    model, training, validation, result = identified
    half = len(validation) // 2
    labels = np.repeat([0, 1], [half, len(validation) - half])
    tau = validation.tau + 5.0 * labels[:, None]
    runs = replace(validation, trajectory=labels, sources=('first', 'second'), tau=tau, tau_filtered=tau)
    report = identification_report(model, result, training, validation=runs)
    figure = next(figure for figure in report.figures if figure.name == 'torque_validation')
    assert figure.reading.endswith('second.')


def test_odd_data_are_reported_too(identified: Identified) -> None:
    model, training, _, result = identified
    still = replace(training.select(np.arange(40)), q=np.zeros((40, 6)), dq=np.zeros((40, 6)), ddq=np.zeros((40, 6)))
    open_parameters = replace(result, base_std=np.full(len(result.base_values), np.inf))
    assert '∞' in _words(identification_report(model, open_parameters, training, validation=still))


def test_joint_order_of_the_data_does_not_matter(identified: Identified) -> None:
    model, training, validation, result = identified
    back = [5, 4, 3, 2, 1, 0]
    columns = {name: getattr(validation, name)[:, back] for name in ('q', 'dq', 'ddq', 'tau', 'tau_filtered')}
    turned = replace(validation, joint_names=validation.joint_names[::-1], **columns)
    assert [
        chart.note
        for figure in identification_report(model, result, training, validation=turned).figures
        for chart in figure.charts
    ] == [chart.note for figure in _report(identified).figures for chart in figure.charts]


def test_provenance_is_told_without_what_is_empty(identified: Identified) -> None:
    provenance = {
        'command': 'robotid identify run.csv',
        'folder': '/data',
        'robot': {'file': 'arm.urdf', 'sha256': 'cd34'},
        'seed': 7,
        'training': [
            {'samples': 1500, 'recording': {'file': 'run.csv', 'sha256': 'ab12', 'ignored': []}, 'noise': [0.25, 1e-7]}
        ],
        'validation': [{'samples': 9, 'sources': ['run at 3 s']}],
        'test': [],
        'settings': {'cutoff': None, 'friction': 'auto'},
    }
    tried = (Alternative(name='8 Hz', error=np.full(6, 2.0)), Alternative(name='12 Hz', error=np.full(6, 1.5)))
    decisions = (Decision(subject='cutoff', chosen='12 Hz', alternatives=tried),)
    report = _report(identified, provenance=provenance, decisions=decisions)
    chosen, files, command, rest = (item for item in report.sections[-1][1] if isinstance(item, Table))
    assert chosen.rows == (('cutoff', '12 Hz', '12 Hz 1.50; 8 Hz 2.00'),)
    assert files.rows == (
        ('arm.urdf', 'robot description', '', 'cd34'),
        ('run.csv', 'training', '1\u202f500', 'ab12'),
        ('run at 3 s', 'validation', '9', ''),
    )
    assert command.rows == (('/data', 'robotid identify run.csv'),)
    assert rest.rows[:2] == (('run', 'seed: 7'), ('settings', 'friction: auto'))
    assert ('training 1', 'samples: 1500; noise: 0.25, 1e-07') in rest.rows


def test_each_joint_has_a_finding_and_a_next_step(identified: Identified) -> None:
    model, training, validation, result = identified
    told = (*(JointVerdict(joint=name, usable=True) for name in model.joint_names[:5]),)
    stuck = JointVerdict(joint=model.joint_names[5], usable=False, reason='it did not move', advice='excite it')
    table = _items(_report(identified, joints=(*told, stuck)), 'Joints')[0]
    assert isinstance(table, Table)
    assert table.levels == (*('good',) * 5, 'bad')
    assert table.rows[5][1:] == ('It did not move.', 'Excite it.')
    assert all(row[1] and row[2] for row in table.rows)
    # Stribeck friction that the model does not have: a difference that is a function of velocity
    missed = validation.tau + 8.0 * np.sign(validation.dq) * np.exp(-np.abs(validation.dq) / 0.3) * np.eye(6)[4]
    report = identification_report(
        model, replace(result, metrics={'training': result.metrics['training']}, joints=()), training,
        validation=replace(validation, tau=missed, tau_filtered=missed),
    )  # fmt: skip
    table = _items(report, 'Joints')[0]
    assert isinstance(table, Table)
    assert 'depends on velocity alone' in table.rows[4][1]
    assert 'friction sweep' in table.rows[4][2]
    assert 'velocity' not in table.rows[1][1]


def test_the_share_of_velocity_is_one_for_a_function_of_it_and_small_for_noise() -> None:
    rng = np.random.default_rng(0)
    velocity, noise = rng.normal(size=20_000), rng.normal(size=20_000)
    assert velocity_share(velocity, np.sign(velocity)) > 0.95
    assert velocity_share(velocity, noise) < 20.0 / 20_000 * 3.0
    assert velocity_share(velocity, np.sign(velocity) + noise) == pytest.approx(0.5, abs=0.03)
