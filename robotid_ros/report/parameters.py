# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Parameters with their error bars, beside the robot description and, in a simulation, the truth."""

import re
from collections.abc import Iterator, Sequence

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.model.inertia import joint_unit, split_inertial_parameters
from robotid_ros.report.content import Chart, Figure, Item, Level, Table, Trace, axis, spread
from robotid_ros.report.subject import Subject, friction_used, parameters_of
from robotid_ros.report.wording import number, percent, unit

NORMAL_95 = 1.96
_GOOD_SHARE, _FAIR_SHARE = 10.0, 50.0  # one deviation in percent of the value: known well, and hardly
_STRONG_CORRELATION = 0.9
_CORRELATION_SAMPLES = 2000  # more do not change a correlation that is read as a colour
_LEVEL_COLOURS: dict[Level, str] = {'good': '#007d5d', 'caution': '#b07a00', 'bad': '#c0391b'}


def short_name(name: str) -> str:
    """Return the first term of a base parameter's name, with dots where there are more."""
    first, *more = name.split(' ')
    return f'{first} …' if more and more[0] in '+-' else name


def by_link(names: Sequence[str], links: Sequence[str]) -> dict[str, list[int]]:
    """Return the indices of base parameters by the link of their first term; what names no link comes last."""
    groups: dict[str, list[int]] = {link: [] for link in links}
    for k, name in enumerate(names):
        found = re.match(r'[A-Za-z]+(\d+)', name)
        link = links[int(found[1]) - 1] if found and 0 < int(found[1]) <= len(links) else 'other'
        groups.setdefault(link, []).append(k)
    return {link: members for link, members in groups.items() if members}


def relative_deviation(values: Array, std: Array) -> Array:
    """Return 100 std / |value| [%], infinite for a value of zero; all of shape (p,)."""
    with np.errstate(divide='ignore', invalid='ignore'):
        return np.nan_to_num(100.0 * std / np.abs(values), nan=np.inf, posinf=np.inf)


def _share_level(share: float) -> Level:
    """Return the traffic light of a relative deviation [%]."""
    return 'good' if share <= _GOOD_SHARE else 'caution' if share <= _FAIR_SHARE else 'bad'


def parameter_items(subject: Subject) -> Iterator[Item]:
    """Yield what the data determine and what they do not, as sentences, figures and tables."""
    result = subject.result
    yield _undetermined(subject)
    yield _link_figure(subject)
    names, correlation = _parameter_correlation(subject)
    # A paragraph about the pairs of parameters that the motion tells apart least.
    first, second = np.triu_indices(len(names), 1)
    size = np.abs(correlation[first, second])
    pairs = '; '.join(
        f'{short_name(names[first[k]])} and {short_name(names[second[k]])} '
        f'({number(correlation[first[k], second[k]], 2)})'
        for k in np.argsort(-size)[:5]
        if size[k] > _STRONG_CORRELATION
    )
    if pairs:
        yield f'Hardest to tell apart (correlation of their errors): {pairs}.'
    yield _correlation_figure(names, correlation)
    yield _parameter_table(subject)
    impossible = [
        name
        for name, value, std in zip(result.base_names, result.base_values, result.base_std, strict=True)
        if name.startswith('Ia') and ' ' not in name and value < -2.0 * std
    ]
    if impossible:
        yield (
            f'No rotor can have a negative inertia, as {", ".join(impossible)} here: the motion, or the torque signal, '
            'does not tell it from other terms. The table of links below holds what a real arm can have.'
        )
    yield _link_table(subject)


def _undetermined(subject: Subject) -> str:
    """Return a paragraph about the base parameters that the data do not determine."""
    result = subject.result
    share = relative_deviation(result.base_values, result.base_std)
    open_ = {
        link: [short_name(result.base_names[k]) for k in members if _share_level(share[k]) == 'bad']
        for link, members in by_link(result.base_names, result.link_names).items()
    }
    listed = '; '.join(f'{link}: {", ".join(names)}' for link, names in open_.items() if names)
    count, total = sum(map(len, open_.values())), len(result.base_names)
    if not count:
        return (
            f'The data determine all {total} base parameters: each deviation is below {_FAIR_SHARE:.0f} % of its value.'
        )
    return (
        f'The data do not determine {count} of the {total} base parameters: their deviation exceeds {_FAIR_SHARE:.0f} '
        '% of the value. The torque of these motions hardly depends on them, so the prediction does not need them, '
        f'but do not use them on their own. They are, by link: {listed}. A motion with more acceleration of these '
        'links, or a heavier load on them, would determine more of them.'
    )


def _stretched(value: Array) -> Array:
    """Return sign(z) log10(1 + |z|): a scale on which 2 and 2000 deviations are both read."""
    value = np.nan_to_num(np.clip(value, -1e6, 1e6))
    return np.asarray(np.sign(value) * np.log10(1.0 + np.abs(value)))


def _link_figure(subject: Subject) -> Figure:
    """Return how far the data moved each base parameter, and how well they determine it, one chart per link."""
    result, prior, truth = subject.result, subject.prior, subject.true_base
    names, values, std = result.base_names, result.base_values, result.base_std
    share = np.clip(relative_deviation(values, std), 1e-2, 1e4)
    deviations = (values - prior) / std
    full = [
        f'{name}<br>found {number(values[k], 4)} ± {number(std[k], 2)} {unit(result.base_units[k])}'
        f'<br>described {number(prior[k], 4)} {unit(result.base_units[k])}'
        for k, name in enumerate(names)
    ]
    change = axis(
        'change [σ]',
        domain=[0.0, 0.47],
        tickvals=[float(_stretched(np.array(z))) for z in (-1e5, -1e3, -10.0, 0.0, 10.0, 1e3, 1e5)],
        ticktext=['−10⁵', '−10³', '−10', '0', '10', '10³', '10⁵'],
        tickangle=0,
    )
    part = axis(
        'σ [% of value]',
        domain=[0.53, 1.0],
        log=True,
        limits=(0.05, 2e3),
        tickvals=[0.1, 1, 10, 100, 1000],
        ticktext=['0.1', '1', '10', '100', '10³'],
        tickangle=0,
    )
    figure = Figure(
        'parameters',
        'Base parameters by link: what the data changed, and how well they know it',
        'Left: found less described, in standard deviations; between the dotted lines the data do not '
        'contradict the robot description. Right: the standard deviation in percent of the value; green is known to '
        f'{_GOOD_SHARE:.0f} %, amber to {_FAIR_SHARE:.0f} %, red is not determined. Point at a bar for the whole name.'
        + (' Crosses: the true values.' if truth is not None else ''),
    )
    for link, members in by_link(names, result.link_names).items():
        text, levels = [full[k] for k in members], [_share_level(share[k]) for k in members]
        open_ = sum(level == 'bad' for level in levels)
        largest = number(float(np.abs(deviations[members]).max()), 2)
        chart = figure.chart(
            link,
            change,
            axis(rows=[short_name(names[k]) for k in members], showgrid=False),
            note=f'{len(members) - open_} of {len(members)} determined',
            alt=f'{link}: {len(members)} base parameters; the data moved them by up to {largest} '
            f'deviations from the robot description; {open_} are not determined. The table gives the numbers.',
            height=90 + 22 * max(len(members), 3),
            xaxis2=part,
            bargap=0.35,
        )
        chart.traces.append(_bars(_stretched(deviations[members]), text, '#0072b2', 'x'))
        chart.traces.append(_bars(share[members], text, [_LEVEL_COLOURS[level] for level in levels], 'x2'))
        if truth is not None:
            chart.intervals('truth', _stretched((truth - prior) / std)[members], 'true', text)
        for end in _stretched(np.array([-NORMAL_95, NORMAL_95])).tolist():
            chart.rule('x', end)
    return figure


def _bars(x: Array, text: Sequence[str], colour: str | Sequence[str], along: str) -> Trace:
    return {
        'type': 'bar',
        'orientation': 'h',
        'x': x,
        'y': np.arange(len(x)),
        'xaxis': along,
        'customdata': text,
        'hovertemplate': '%{customdata}<extra></extra>',
        'marker': {'color': colour},
    }


def interval_chart(title: str, rows: Sequence[str], of: str, values: Array, std: Array) -> Chart:
    """Return one chart of values with 95 % intervals, a row for each, arrays of shape (p,), in a unit as printed."""
    half = np.where(np.isfinite(std), NORMAL_95 * std, np.nan)
    clear = int(np.sum(np.abs(values) > half))
    chart = Chart(
        title,
        of,
        axis(rows=rows, showgrid=False),
        note=f'{clear} of {len(rows)} differ from 0',
        alt=f'{title}: {rows[0]} to {rows[-1]}, from {number(values.min())} to '
        f'{number(values.max())} {of}; {clear} of {len(rows)} clearly differ from zero.',
        height=75 + 24 * max(len(rows), 3),
    )
    chart.intervals('predicted', values, 'found, 95 %', rows, half)
    chart.rule('x', 0.0)
    return chart


def _parameter_correlation(subject: Subject) -> tuple[list[str], Array]:
    """Return the names of p base and friction parameters, and the correlation of their errors, shape (p, p).

    From the information matrix J^T W J of the training samples, J the derivative of the torque with respect to the
    parameters and W the inverse variance of each joint's difference.
    """
    predictor, result, data = subject.predictor, subject.result, subject.training.dataset
    rows = spread(len(data), _CORRELATION_SAMPLES)
    q, dq, ddq = predictor.at_motors(data.q[rows], data.dq[rows], data.ddq[rows])
    left = np.std(subject.training.residual, axis=0) + 1e-12
    rigid = predictor.base.regressor(q, dq, ddq)
    load = rigid @ result.base_values
    linear, shape = np.split(result.friction_values, [len(result.friction.linear_names)], axis=1)
    columns, bends = result.friction.basis(dq, shape, load, q)
    own = np.concatenate([columns, np.einsum('Njks,jk->Njs', bends, linear)], axis=2)
    n, b, k = data.n, rigid.shape[2], own.shape[2]
    jacobian = np.concatenate([rigid, np.zeros((len(rows), n, n * k))], axis=2)
    for j in range(n):  # each joint's friction depends on its own parameters
        jacobian[:, j, b + j * k : b + (j + 1) * k] = own[:, j]
    if predictor.model.has_coupled_drives:  # of the motors until here
        jacobian = np.einsum('mj,Nmp->Njp', predictor.model.drives, jacobian, optimize=True)
    jacobian /= left[:, None]
    used = np.concatenate([np.ones(b, dtype=bool), friction_used(result).ravel()])
    stacked = jacobian.reshape(-1, b + n * k)[:, used]
    size = np.linalg.norm(stacked, axis=0)
    scaled = stacked / np.where(size > 0.0, size, 1.0)
    covariance = np.linalg.pinv(scaled.T @ scaled, rcond=1e-12, hermitian=True)
    deviation = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
    return [*parameters_of(result)], np.clip(covariance / np.outer(deviation, deviation), -1.0, 1.0)


def _correlation_figure(names: Sequence[str], correlation: Array) -> Figure:
    """Return a map of how the errors of p parameters go together; the correlation has the shape (p, p)."""
    count = len(names)
    strong = int((np.abs(correlation[np.triu_indices(count, 1)]) > _STRONG_CORRELATION).sum())
    rows: Trace = {
        'tickvals': list(range(count)),
        'ticktext': [short_name(name) for name in names],
        'showgrid': False,
        'automargin': True,
        'tickfont': {'size': 9},
        'ticks': '',
    }
    heat: Trace = {
        'type': 'heatmap',
        'z': correlation,
        'customdata': [[f'{a}<br>{b}' for b in names] for a in names],
        'hovertemplate': '%{customdata}<br>correlation %{z:.2f}<extra></extra>',
        'zmin': -1,
        'zmax': 1,
        'colorscale': [[0, '#a34a00'], [0.25, '#efb98a'], [0.5, '#ffffff'], [0.75, '#8fc1e3'], [1, '#00507d']],
        'colorbar': {'thickness': 10, 'outlinewidth': 0, 'tickvals': [-1, -0.5, 0, 0.5, 1]},
    }
    figure = Figure(
        'correlation',
        'Correlation of the parameters',
        'Dark off the diagonal: the motion tells only a combination of the two apart, so both deviations are '
        'large although their common effect is known. Another motion separates them.',
        wide=True,
    )
    note, across = (
        f'{strong} {"pair" if strong == 1 else "pairs"} above {_STRONG_CORRELATION:g}',
        axis(tickangle=-90, **rows),
    )
    down = axis(autorange='reversed', **rows)
    figure.chart(f'{count} parameters', across, down, note=note, height=130 + 13 * count).traces.append(heat)
    return figure


def _parameter_table(subject: Subject) -> Table:
    """Return all base parameters by link, with a light for how well each is determined."""
    result, prior, truth = subject.result, subject.prior, subject.true_base
    found, std = result.base_values, result.base_std
    share = relative_deviation(found, std)
    heads = ['#Described', '#Found', '#Deviation [1 σ]', *([] if truth is None else ['#True']), '#Relative [1 σ]']
    table = Table(
        'Base parameters',
        ('Parameter', 'Link', *heads, 'Unit'),
        reading=f'Green: known to {_GOOD_SHARE:.0f} % or better (1 σ). Amber: to {_FAIR_SHARE:.0f} %. Red: the data '
        'do not determine it; do not use it on its own.',
    )
    for link, members in by_link(result.base_names, result.link_names).items():
        for k in members:
            cells = [number(prior[k], 4), number(found[k], 4), number(std[k], 2)]
            cells += [] if truth is None else [number(truth[k], 4)]
            cells.append('> 1000 %' if share[k] > 1000.0 else '< 0.1 %' if share[k] < 0.1 else percent(share[k]))
            name, of = result.base_names[k], unit(result.base_units[k])
            table.add(name, link, *cells, of, level=_share_level(share[k]))
    return table


def _link_table(subject: Subject) -> Table:
    result = subject.result
    mass, centre, inertia = split_inertial_parameters(result.inertial)
    prior, _, _ = split_inertial_parameters(subject.model.inertial)
    figures = np.column_stack([prior, mass, centre, np.linalg.eigvalsh(inertia)])
    heads = ['#Prior mass [kg]', '#Mass [kg]']
    heads += [*(f'#c{axis} [m]' for axis in 'xyz'), *(f'#I{k} [kg·m²]' for k in (1, 2, 3))]
    if result.has_rotor_inertia:
        figures = np.column_stack([figures, result.rotor_inertia])
        units = {joint_unit('kg*m^2', kind).replace('*m^2', '·m²') for kind in result.joint_types}
        heads.append(f'#Ia [{" or ".join(sorted(units))}]')
    return Table(
        'Links: physically consistent standard parameters',
        ('Link', *heads),
        ((link, *map(number, row)) for link, row in zip(result.link_names, figures, strict=True)),
        reading='One set out of many with the same torques, the one closest to the robot description that a real body '
        'can have. c: centre of mass in the link frame; I1 to I3: principal moments about it; Ia: rotor inertia seen '
        f'at the joint. They leave {percent(subject.consistent_error, 2)} of the torque unexplained, the base '
        f'parameters {percent(subject.metrics.relative_error_total, 2)} ({subject.judged.title.lower()}).',
    )
