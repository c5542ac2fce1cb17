// The curves of the live page, as they come; stop.js has the connection.
robotid.ready.then(() => {
  const KEPT = 1500;  // samples of a curve
  const config = {...robotid.config, displayModeBar: false};
  const axisTitle = text => ({title: {text}});
  const framed = axes => robotid.layoutOf({...axes, showlegend: true,
    legend: {orientation: 'h', x: 0, y: 1, yanchor: 'bottom'}, margin: {l: 54, r: 12, t: 27, b: 40}});
  const curve = (label, color, dash) => ({type: 'scatter', mode: 'lines', name: label, x: [], y: [], line: {color, width: 1.4, dash: dash || 'solid'}});
  // One panel for each joint, drawn anew when the joints or the curves change.
  const panelsOf = (place, kind, hint) => {
    let key = null, panels = [];
    return (joints, unit, curves, shapes) => {
      const wanted = JSON.stringify([joints, unit, curves.map(each => each[0]), shapes]);
      if (wanted === key) return panels;
      key = wanted;
      if (hint) hint.hidden = joints.length > 0;
      place.replaceChildren();
      panels = joints.map((name, j) => {
        const panel = document.createElement('div'), title = document.createElement('p'), chart = document.createElement('div');
        panel.className = 'panel';
        title.className = 'panel-title';
        title.innerHTML = '<b></b><span></span>';
        title.firstChild.textContent = name;
        chart.style.height = '230px';
        chart.className = kind;
        panel.append(title, chart);
        place.append(panel);
        Plotly.newPlot(chart, curves.map(each => curve(...each)),
          framed({xaxis: axisTitle('time [s]'), yaxis: axisTitle(unit), shapes: shapes[j] || []}), config);
        return {chart, note: title.lastChild};
      });
      return panels;
    };
  };
  const byId = id => document.getElementById(id);
  const motion = panelsOf(byId('motion'), 'moved', byId('still')), torque = panelsOf(byId('torque'), 'live', null);
  const extend = (panels, notes, t, rows, anew) => panels.forEach((panel, j) => {
    panel.note.textContent = notes[j] || '';
    const all = rows.map((_, k) => k);
    if (anew) Plotly.restyle(panel.chart, {x: all.map(() => []), y: all.map(() => [])});
    if (t.length) Plotly.extendTraces(panel.chart, {x: rows.map(() => t), y: rows.map(row => row.map(v => v === null ? null : v[j]))}, all, KEPT);
  });
  const limit = y => ({type: 'line', xref: 'paper', x0: 0, x1: 1, y0: y, y1: y, line: {color: '#b3261e', width: 1, dash: 'dot'}});
  const convergence = byId('convergence');
  const curves = [['relative_error', 'torque unexplained [%]', '#0072b2'], ['median_relative_std', 'median deviation [%]', '#007d5d'],
    ['change', 'last change', '#b07a00']];
  Plotly.newPlot(convergence, curves.map(([, name, color]) => ({type: 'scatter', mode: 'lines+markers', name, x: [], y: [], line: {color}})),
    framed({xaxis: {...axisTitle('recordings'), dtick: 1}, yaxis: {...axisTitle(''), type: 'log'}}), config);
  let predicted = false;
  live.follow(message => {
    const moved = message.motion;
    extend(motion(moved.joints, 'position [rad or m]', [['measured', '#848e9a'], ['reference', '#0072b2', 'dash']],
      moved.limits.map(ends => ends.filter(end => end !== null).map(limit))),
    moved.notes, moved.t, [moved.position, moved.reference], message.everything);
    const anew = message.everything || message.fitted !== predicted;
    predicted = message.fitted;
    if (predicted) {
      byId('waiting').hidden = true;
      const {t, measured, predicted: model} = message.samples;
      extend(torque(message.joints, 'torque [N·m]', [['measured', '#848e9a'], ['predicted', '#0072b2']], []), message.notes, t, [measured, model], anew);
    } else {
      const reporting = moved.effort.some(row => row !== null) || moved.reports;
      extend(torque(reporting ? moved.joints : [], 'effort as reported', [['reported', '#848e9a']], []), [], moved.t, [moved.effort], anew);
    }
    if (message.history) {
      const x = message.history.map(entry => entry.recordings);
      Plotly.restyle(convergence, {x: curves.map(() => x), y: curves.map(([key]) => message.history.map(e => e[key] > 0 ? e[key] : null))});
    }
  });
}).catch(() => {
  document.getElementById('still').textContent = 'This browser cannot unpack the charts (Chrome 80, Firefox 113, Safari 16.4 or newer can). '
    + 'The state of the nodes and the stop work.';
});
